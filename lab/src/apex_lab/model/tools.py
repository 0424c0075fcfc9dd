"""The tools of a request, and a move written as a call of one of them.

Consumes tool definitions as the request holds them (name and JSON schema); emits `ToolCall`s that satisfy those
schemas. Property names are read from the schema, never assumed: what a move knows is offered under several names,
what the schema requires beyond that is filled by type.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard, assert_never, cast

from msgspec import Struct

from apex_lab.model.moves import Act, Finish, Launch, Move, Swipe, Tap, Terminate, Type

Json = dict[str, object]

_ELEMENT = ("element", "element_id", "target", "id")
_TEXT = ("text", "value", "input")
_APP = ("app", "app_id", "package", "bundle_id", "name")
_STARTS = (("x1", "y1"), ("start_x", "start_y"), ("from_x", "from_y"), ("x", "y"))
_ENDS = (("x2", "y2"), ("end_x", "end_y"), ("to_x", "to_y"))
_AGAINST = {"up": "down", "down": "up", "left": "right", "right": "left"}


class Tool(Struct, frozen=True, kw_only=True):
    """One tool as defined by the request. `schema` is a JSON schema of an object."""

    name: str
    schema: Json

    @property
    def properties(self) -> dict[str, Json]:
        """Property schemas by name; those that are no objects read as empty."""
        found = self.schema.get("properties")
        return {key: part if is_json(part) else {} for key, part in found.items()} if is_json(found) else {}

    @property
    def required(self) -> frozenset[str]:
        """Names that a call must carry."""
        found = self.schema.get("required")
        return frozenset(str(name) for name in cast(list[object], found)) if isinstance(found, list) else frozenset()


class ToolCall(Struct, frozen=True, kw_only=True):
    """A tool's name and arguments."""

    name: str
    arguments: Json


def is_json(value: object) -> TypeGuard[Json]:
    """Whether a decoded JSON value is an object."""
    return isinstance(value, dict)


def tool_for(act: Act, tools: Mapping[str, Tool]) -> Tool | None:
    """The tool that does this act, or None when the request offers none."""
    match act:
        case Tap():
            wanted = ("tap", "click")
        case Type():
            wanted = ("input_text", "type_text", "type")
        case Swipe():
            wanted = ("swipe", "scroll")
        case Launch():
            wanted = ("launch_app", "open_app")
        case Terminate():
            wanted = ("terminate_app", "close_app")
        case Finish():
            wanted = ("finish_task", "finish")
        case _:
            assert_never(act)
    return next((tools[name] for name in wanted if name in tools), None)


def write_call(move: Move, tool: Tool) -> ToolCall:
    """The call of `tool` that carries the move, with every required property present."""
    known: Json = {"purpose": _sentence(move.intent), "expected_outcome": move.expect, **_known(move.act, tool)}
    arguments: Json = {}
    for name, schema in tool.properties.items():
        value = known.get(name)
        if value is not None:
            arguments[name] = value
        elif name in tool.required:
            arguments[name] = filler(schema)
    return ToolCall(name=tool.name, arguments=arguments)


def fill_call(tool: Tool) -> ToolCall:
    """A call of a tool that no move stands behind: what a model does when it is forced to call it."""
    return ToolCall(name=tool.name, arguments={name: filler(tool.properties.get(name, {})) for name in tool.required})


def filler(schema: Json) -> object:
    """The plainest value that the schema of a required property allows."""
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return cast(list[object], choices)[0]
    kinds = schema.get("type")
    kind = cast(list[object], kinds) if isinstance(kinds, list) else [kinds]
    parts = schema.get("anyOf") or schema.get("oneOf")
    options = [part for part in cast(list[object], parts) if is_json(part)] if isinstance(parts, list) else []
    if "null" in kind or any(part.get("type") == "null" for part in options):
        return None
    if options:
        return filler(options[0])
    plain: dict[object, object] = {"integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
    return plain.get(kind[0], "none")


def _known(act: Act, tool: Tool) -> Json:
    match act:
        case Tap(element=element):
            return _at(element.id, element.centre, tool)
        case Type(text=text, element=element):
            place = _at(element.id, element.centre, tool) if element is not None else {}
            return {**dict.fromkeys(_TEXT, text), **place}
        case Swipe():
            return _stroke(act, scroll=tool.name == "scroll")
        case Launch(app=app) | Terminate(app=app):
            return dict.fromkeys(_APP, app)
        case Finish():
            return {"success": act.success, "reason": act.reason, "answer": act.answer, "evidence": act.evidence}
        case _:
            assert_never(act)


def _at(ident: str | None, centre: tuple[int, int] | None, tool: Tool) -> Json:
    if any(name in tool.properties for name in _ELEMENT):
        return dict.fromkeys(_ELEMENT, ident)
    return {"x": centre[0], "y": centre[1]} if centre is not None else {}


def _stroke(act: Swipe, *, scroll: bool) -> Json:
    width, height = act.size
    low, high = (45, 18) if act.short else (70, 30)
    near, far = (width // 2, height * low // 100), (width // 2, height * high // 100)
    if act.towards in ("left", "right"):
        near, far = (width * 8 // 10, height // 2), (width * 2 // 10, height // 2)
    start, end = (near, far) if act.towards in ("down", "right") else (far, near)
    known: Json = {"direction": act.towards if scroll else _AGAINST[act.towards]}
    known |= {name: place for names in _STARTS for name, place in zip(names, start, strict=True)}
    known |= {name: place for names in _ENDS for name, place in zip(names, end, strict=True)}
    spots: dict[str, Any] = {"start": start, "from": start, "end": end, "to": end}
    return known | {name: {"x": spot[0], "y": spot[1]} for name, spot in spots.items()}


def _sentence(intent: str) -> str:
    return f"{intent[:1].upper()}{intent[1:]}."
