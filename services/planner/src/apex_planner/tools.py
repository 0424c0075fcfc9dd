"""The tools offered to a model, from one table: the core six, and the extended set by `AI_PLANNER_TOOLS`.

A tool on a device needs a non-empty `purpose` and `expected_outcome`; both are carried apart from what is executed.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from apex_schemas.decision import ToolSpec

Kind = Literal["text", "integer", "number", "boolean"]
ToolSet = Literal["core", "extended"]

REASONS: Final = ("purpose", "expected_outcome")
FINISH: Final = "finish_task"
_JSON_TYPE: Final[Mapping[Kind, str]] = {
    "text": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}


class Argument(NamedTuple):
    kind: Kind = "text"
    required: bool = True
    hint: str = ""
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": _JSON_TYPE[self.kind]}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.hint:
            schema["description"] = self.hint
        return schema


class Tool(NamedTuple):
    name: str
    description: str
    arguments: Mapping[str, Argument]
    on_device: bool = True
    extended: bool = False

    def spec(self) -> ToolSpec:
        properties = {name: argument.schema() for name, argument in self.arguments.items()}
        required = [name for name, argument in self.arguments.items() if argument.required]
        if self.on_device:
            properties |= {name: {"type": "string"} for name in REASONS}
            required.extend(REASONS)
        parameters = {"type": "object", "properties": properties, "required": required}
        return ToolSpec(name=self.name, description=self.description, parameters=parameters)


_ELEMENT: Final = Argument(required=False, hint="id, e.g. e12")
_X, _Y = Argument("integer", required=False), Argument("integer", required=False)
_PLACE: Final = {"element": _ELEMENT, "x": _X, "y": _Y}
_KEYS: Final = ("enter", "delete", "tab", "search", "volume_up", "volume_down", "app_switch")
_DIRECTIONS: Final = ("up", "down", "left", "right")

TABLE: Final = (
    Tool("tap", "Tap an element, or a point.", _PLACE),
    Tool(
        "swipe",
        "Move a finger from x1,y1 to x2,y2; the content follows it.",
        {name: Argument("integer") for name in ("x1", "y1", "x2", "y2")},
    ),
    Tool(
        "input_text",
        "Replace what a field holds.",
        {"element": _ELEMENT._replace(hint="id of the field; without it the focused one"), "text": Argument()},
    ),
    Tool("launch_app", "Open an app.", {"app": Argument(hint="name or package id")}),
    Tool("terminate_app", "Close an app.", {"app": Argument()}),
    Tool(
        FINISH,
        "End the task.",
        {
            "success": Argument("boolean"),
            "reason": Argument(),
            "answer": Argument(required=False),
            "evidence": Argument(required=False),
        },
        on_device=False,
    ),
    Tool("back", "Press the back key.", {}, extended=True),
    Tool("home", "Go to the home screen.", {}, extended=True),
    Tool("long_press", "Press an element, or a point, for a second.", _PLACE, extended=True),
    Tool(
        "scroll",
        "Show what lies further in a direction.",
        {"direction": Argument(choices=_DIRECTIONS), "element": _ELEMENT},
        extended=True,
    ),
    Tool("press_key", "Press a key.", {"key": Argument(choices=_KEYS)}, extended=True),
    Tool("wait", "Wait, 30 seconds at most.", {"seconds": Argument("number")}, extended=True),
)
BY_NAME: Final[Mapping[str, Tool]] = {tool.name: tool for tool in TABLE}


def offered(tool_set: ToolSet, *, only_finish: bool = False) -> tuple[ToolSpec, ...]:
    """What a model may call in a turn; on the last one only the end of the task."""
    chosen = (tool for tool in TABLE if tool_set == "extended" or not tool.extended)
    return tuple(tool.spec() for tool in chosen if tool.name == FINISH or not only_finish)


class BadArgument(NamedTuple):
    """`fault` is a sentence for the model."""

    fault: str


def read_arguments(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any] | BadArgument:
    """Arguments by the table's types: numbers and truth values may come as text; null counts as left out; what the
    table does not know is ignored."""
    read: dict[str, Any] = {}
    for name, argument in tool.arguments.items():
        value = given.get(name)
        if value is None or (value == "" and argument.kind != "text"):
            if argument.required:
                return BadArgument(f"{tool.name} needs the argument {name}.")
            continue
        converted = _convert(argument.kind, value)
        if converted is None:
            return BadArgument(f"the argument {name} of {tool.name} must be {_WANTED[argument.kind]}.")
        if argument.choices and converted not in argument.choices:
            return BadArgument(f"the argument {name} of {tool.name} must be one of {', '.join(argument.choices)}.")
        read[name] = converted
    return read


_WANTED: Final[Mapping[Kind, str]] = {
    "text": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}
_NUMBER: Final = re.compile(r"^[+-]?\d{1,9}(\.\d{1,9})?$")
_LARGEST: Final = 1e9


def _convert(kind: Kind, value: Any) -> str | int | float | bool | None:
    match kind:
        case "text":
            if isinstance(value, str):
                return value
            return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return {"true": True, "false": False}.get(str(value).strip().lower())
        case "integer" | "number":
            number = _number(value)
            return round(number) if number is not None and kind == "integer" else number


def _number(value: Any) -> float | None:
    if isinstance(value, str) and _NUMBER.match(value.strip()):
        return float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return float(value)
    return None
