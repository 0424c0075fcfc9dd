"""What the providers refuse in tool definitions. Pure: a schema in, nothing out or `RequestRefused`.

Checked are the rules that real servers enforce before a model sees anything: names, object schemas, known types,
lists of strings in `required`, and the extra demands of `strict`.
"""

import re
from collections.abc import Callable, Iterator
from typing import cast

from apex_lab.model.errors import RequestRefused
from apex_lab.model.tools import Json, Tool, is_json

_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_COMBINED = ("oneOf", "allOf", "anyOf")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength")


def check_anthropic_tool(index: int, tool: Json) -> Tool:
    """The tool at `tools.<index>` of a Messages request.

    Raises:
        RequestRefused: with the path of the fault in Anthropic's notation.
    """
    where = f"tools.{index}.custom"
    name = _name(tool.get("name"), pattern=r"[a-zA-Z0-9_-]{1,128}", refuse=lambda why: _anthropic(f"{where}.name", why))
    schema = tool.get("input_schema")
    if not is_json(schema):
        raise _anthropic(f"{where}.input_schema", "Field required" if schema is None else "Input should be an object")
    if "type" not in schema:
        raise _anthropic(f"{where}.input_schema.type", "Field required")
    if schema["type"] != "object":
        raise _anthropic(f"{where}.input_schema.type", "Input should be 'object'")
    if any(word in schema for word in _COMBINED):
        combined = "input_schema does not support oneOf, allOf, or anyOf at the top level"
        raise _anthropic(f"{where}.input_schema", combined)
    if fault := next(_faults(schema), None):
        draft = "JSON schema is invalid. It must match JSON Schema draft 2020-12"
        raise _anthropic(f"{where}.input_schema", f"{draft} ({fault})")
    if tool.get("strict") is True and (fault := next(_not_strict(schema, bounds=True, all_required=False), None)):
        raise RequestRefused(f"{where}: {fault}")
    return Tool(name=name, schema=schema)


def check_openai_tool(index: int, function: Json, *, path: str) -> Tool:
    """A function definition of Chat Completions (`tools[i].function`) or Responses (`tools[i]`).

    Raises:
        RequestRefused: with OpenAI's `param` and `code`.
    """

    def refused(why: str, field: str) -> RequestRefused:
        return RequestRefused(why, param=f"{path}.{field}", code="invalid_function_parameters")

    def bad_name(why: str) -> RequestRefused:
        return RequestRefused(f"Invalid '{path}.name': {why}.", param=f"{path}.name", code="invalid_value")

    name = _name(function.get("name"), pattern=r"[a-zA-Z0-9_-]{1,64}", refuse=bad_name)
    schema = function.get("parameters")
    if schema is None:
        return Tool(name=name, schema={"type": "object", "properties": {}})
    if not is_json(schema) or schema.get("type") != "object":
        got = schema.get("type") if is_json(schema) else type(schema).__name__
        message = (
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got {got!r}."
        )
        raise refused(message, "parameters")
    if any(word in schema for word in _COMBINED):
        message = (
            f"Invalid schema for function '{name}': schema must not have 'oneOf'/'anyOf'/'allOf' at the top level."
        )
        raise refused(message, "parameters")
    if fault := next(_faults(schema), None):
        raise refused(f"Invalid schema for function '{name}': {fault}.", "parameters")
    if function.get("strict") is True and (fault := next(_not_strict(schema, bounds=False, all_required=True), None)):
        raise refused(f"Invalid schema for function '{name}': {fault}.", "parameters")
    return Tool(name=name, schema=schema)


def by_name(tools: list[Tool], *, refuse: RequestRefused) -> dict[str, Tool]:
    """The tools by name; raises `refuse` when two share one."""
    named = {tool.name: tool for tool in tools}
    if len(named) != len(tools):
        raise refuse
    return named


def _anthropic(path: str, why: str) -> RequestRefused:
    return RequestRefused(f"{path}: {why}")


def _name(value: object, *, pattern: str, refuse: Callable[[str], RequestRefused]) -> str:
    if not isinstance(value, str) or not value:
        raise refuse("Field required")
    if not re.fullmatch(pattern, value):
        raise refuse(f"String should match pattern '^{pattern}$'")
    return value


def _faults(schema: Json, path: str = "$") -> Iterator[str]:
    """Where this is no JSON schema."""
    kinds = schema.get("type", [])
    for kind in cast(list[object], kinds) if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            yield f"{path}.type: {kind!r} is not a type"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast(list[object], required)):
        yield f"{path}.required: {required!r} is not a list of names"
    choices = schema.get("enum", [None])
    if not isinstance(choices, list) or not choices:
        yield f"{path}.enum: {choices!r} is not a list of values"
    properties = schema.get("properties", {})
    if not is_json(properties):
        yield f"{path}.properties: {properties!r} is not an object"
        return
    for name, part in properties.items():
        if is_json(part):
            yield from _faults(part, f"{path}.{name}")
        elif not isinstance(part, bool):
            yield f"{path}.{name}: {part!r} is not a schema"
    for part in _parts(schema):
        yield from _faults(part, f"{path}[]")


def _not_strict(schema: Json, *, bounds: bool, all_required: bool) -> Iterator[str]:
    """Where a schema falls short of strict mode."""
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        names = list(properties) if is_json(properties) else []
        if schema.get("additionalProperties") is not False:
            yield "For 'object' type, 'additionalProperties' must be explicitly set to false"
        required = cast(list[object], schema.get("required", []))
        missing = [name for name in names if name not in required]
        if all_required and missing:
            yield f"'required' must be an array including every key in properties. Missing '{missing[0]}'"
        for part in (cast(Json, properties)[name] for name in names):
            if is_json(part):
                yield from _not_strict(part, bounds=bounds, all_required=all_required)
    elif bounds and (used := [word for word in _BOUNDS if word in schema]):
        yield f"For '{schema.get('type')}' type, properties {', '.join(used)} are not supported"
    for part in _parts(schema):
        yield from _not_strict(part, bounds=bounds, all_required=all_required)


def _parts(schema: Json) -> Iterator[Json]:
    for word in _COMBINED:
        options = schema.get(word, [])
        if isinstance(options, list):
            yield from (part for part in cast(list[object], options) if is_json(part))
    if is_json(items := schema.get("items")):
        yield items
