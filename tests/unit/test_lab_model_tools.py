"""Tool definitions of a request: what is refused, and calls that satisfy any schema that is not."""

from typing import Any

import pytest

from apex_lab.model.errors import RequestRefused
from apex_lab.model.moves import Act, Finish, Launch, Move, Swipe, Tap, Type
from apex_lab.model.reply import Ask, reply
from apex_lab.model.schema_rules import check_anthropic_tool, check_openai_tool
from apex_lab.model.screen import Element
from apex_lab.model.tools import Tool, filler, write_call

BUTTON = Element(id="e7", role="button", label="OK", caption="OK", depth=0, centre=(30, 40))
NULLABLE = {"type": ["string", "null"]}


def written(act: Act, name: str = "tap", required: tuple[str, ...] = (), **properties: Any) -> dict[str, object]:
    tool = Tool(name=name, schema={"type": "object", "properties": properties, "required": list(required)})
    return write_call(Move(act=act, intent="do it", expect="It is done."), tool).arguments


@pytest.mark.parametrize(
    ("act", "properties", "arguments"),
    [
        (Tap(element=BUTTON), {"element": {}, "x": {}, "y": {}}, {"element": "e7"}),
        (Tap(element=BUTTON), {"x": {}, "y": {}}, {"x": 30, "y": 40}),
        (Tap(element=BUTTON), {"target": {}}, {"target": "e7"}),
        (Type(text="a", element=BUTTON), {"element_id": {}, "value": {}}, {"element_id": "e7", "value": "a"}),
        (Type(text="a"), {"element": {}, "text": {}}, {"text": "a"}),
        (Launch(app="x.y"), {"package": {}}, {"package": "x.y"}),
        (Swipe(towards="down", size=(100, 200)), {"start": {}}, {"start": {"x": 50, "y": 140}}),
        (Swipe(towards="down", size=(100, 200)), {"direction": {}}, {"direction": "up"}),
        (Finish(success=True, reason="r"), {"success": {}, "reason": {}, "x": {}}, {"success": True, "reason": "r"}),
    ],
)  # fmt: skip
def test_a_move_is_written_under_the_names_that_the_schema_has(
    act: Act, properties: dict[str, Any], arguments: dict[str, object]
) -> None:
    assert written(act, **properties) == arguments


def test_scroll_means_the_content_and_swipe_the_finger() -> None:
    down = Swipe(towards="down", size=(100, 200))

    assert written(down, "scroll", direction={}) == {"direction": "down"}
    assert written(down, "swipe", y1={}, y2={}) == {"y1": 140, "y2": 60}


def test_every_required_property_is_there_whatever_it_is() -> None:
    required = ("purpose", "expected_outcome", "x", "mode", "maybe")
    given = written(
        Tap(element=BUTTON), required=required,
        element={}, purpose={}, expected_outcome={}, x=NULLABLE, mode={"enum": ["fast"]}, maybe={"type": "boolean"},
    )  # fmt: skip

    assert given == {
        "element": "e7",
        "purpose": "Do it.",
        "expected_outcome": "It is done.",
        "x": None,
        "mode": "fast",
        "maybe": False,
    }


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 0),
        (NULLABLE, None),
        ({"anyOf": [{"type": "number"}]}, 0),
        ({}, "none"),
        ({"type": "array"}, []),
    ],
)
def test_the_filler_is_the_plainest_value_of_the_type(schema: dict[str, object], value: object) -> None:
    assert filler(schema) == value


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({"input_schema": {"type": "object"}}, "tools.3.custom.name: Field required"),
        ({"name": "a b", "input_schema": {"type": "object"}}, "should match pattern"),
        ({"name": "a"}, "tools.3.custom.input_schema: Field required"),
        ({"name": "a", "input_schema": {}}, "tools.3.custom.input_schema.type: Field required"),
        ({"name": "a", "input_schema": {"type": "string"}}, "should be 'object'"),
        ({"name": "a", "input_schema": {"type": "object", "oneOf": []}}, "at the top level"),
        ({"name": "a", "input_schema": {"type": "object", "properties": {"x": {"type": "text"}}}}, "not a type"),
        ({"name": "a", "input_schema": {"type": "object", "required": "x"}}, "not a list of names"),
        ({"name": "a", "input_schema": {"type": "object", "properties": []}}, "is not an object"),
        ({"name": "a", "strict": True, "input_schema": {"type": "object"}}, "'additionalProperties' must be"),
        ({"name": "a", "strict": True, "input_schema": {"type": "object", "additionalProperties": False,
          "properties": {"x": {"type": "integer", "minimum": 0}}}}, "minimum are not supported"),
    ],
)  # fmt: skip
def test_a_malformed_tool_is_refused_with_its_path_and_reason(tool: dict[str, object], said: str) -> None:
    with pytest.raises(RequestRefused, match=r"tools\.3\.custom") as refused:
        check_anthropic_tool(3, tool)

    assert said.lower() in refused.value.message.lower()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ({}, "Invalid 'tools[0].name'"),
        ({"name": "a", "parameters": {"type": "array"}}, "type: \"object\""),
        ({"name": "a", "parameters": {"type": "object", "anyOf": []}}, "top level"),
        ({"name": "a", "strict": True, "parameters": {"type": "object", "additionalProperties": False,
          "properties": {"x": {"type": "integer"}}, "required": []}}, "Missing 'x'"),
    ],
)  # fmt: skip
def test_openai_refuses_malformed_functions_in_its_own_words(function: dict[str, object], said: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        check_openai_tool(0, function, path="tools[0]")

    assert said in refused.value.message
    assert refused.value.param


def test_a_sound_tool_is_accepted_with_its_schema() -> None:
    schema: dict[str, object] = {"type": "object", "properties": {"x": {"type": "integer", "minimum": 0}}}

    assert check_anthropic_tool(0, {"name": "tap", "input_schema": schema}) == Tool(name="tap", schema=schema)


def test_a_move_without_its_tool_ends_the_task_false() -> None:
    finish = Tool(name="finish_task", schema={"type": "object", "properties": {"success": {}, "reason": {}}})
    text = 'Goal: tap "A"\n<screen app="a" page="p" size="1x1">\ne1 button "A"\n</screen>'

    said = reply(Ask(text=text, tools={"finish_task": finish}))

    assert said.call is not None
    assert said.call.arguments == {"success": False, "reason": 'there is no tool to step 1 of 1: tap "A"'}


def test_a_message_without_a_goal_gets_text_and_a_call_only_when_forced() -> None:
    tools = {"tap": Tool(name="tap", schema={"type": "object", "required": ["element"], "properties": {"element": {}}})}

    assert reply(Ask(text="hello", tools=tools)).call is None
    assert reply(Ask(text="hello", tools=tools, forced="")).call is not None
