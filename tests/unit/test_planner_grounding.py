"""From what a model named to what can be done on the Scene that it saw."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planner_world import call, element, network, scene

from apex_planner.grounding import Grounded, Refusal, ground
from apex_planner.tools import TABLE
from apex_schemas import actions
from apex_schemas.geometry import Bounds, Point
from apex_schemas.scene import Scene

ALL = frozenset(tool.name for tool in TABLE)


def done(tool: str, a_scene: Scene | None = None, **arguments: Any) -> Grounded:
    found = ground(call(tool, **arguments), a_scene or network(), ALL)
    assert isinstance(found, Grounded), found
    return found


def refused(tool: str, a_scene: Scene | None = None, **arguments: Any) -> str:
    found = ground(call(tool, **arguments), a_scene or network(), ALL)
    assert isinstance(found, Refusal), found
    return found.fault


@pytest.mark.parametrize("name", ["e2", "E2", "[e2]", "2", 2, "e2 switch"])
def test_an_element_is_tapped_at_its_tap_point_however_its_id_is_spelled(name: Any) -> None:
    found = done("tap", element=name)
    assert found.action == actions.Tap(at=Point(x=540, y=250))
    assert found.target is not None
    assert (found.target.element, found.target.label, found.ungrounded) == ("e2", "Wi-Fi", False)


def test_an_id_that_is_not_on_this_screen_is_refused_with_those_that_are() -> None:
    assert refused("tap", element="e99") == "there is no element 'e99' on this screen; its ids are: e1, e2, e3, e4."


@pytest.mark.parametrize(
    ("obstacle", "word"), [("off_screen", "swipe it into view"), ("occluded", "covered"), ("no_bounds", "no place")]
)
def test_an_element_that_cannot_be_reached_is_refused_with_the_reason(obstacle: Any, word: str) -> None:
    hidden = scene(element(1, "button", "OK", tap_point=None, obstacle=obstacle))
    assert word in refused("tap", hidden, element="e1")


def test_coordinates_take_the_smallest_thing_around_them_that_can_be_acted_on() -> None:
    nested = scene(
        element(1, "list", "", bounds=Bounds(left=0, top=0, right=1080, bottom=2000), scrollable=True),
        element(2, "row", "Display", parent="e1"),
        element(3, "text", "Display", top=210, bounds=Bounds(left=10, top=210, right=300, bottom=250), parent="e2"),
    )
    found = done("tap", nested, x="40", y=220.0)
    assert (found.action, found.target and found.target.element) == (actions.Tap(at=Point(x=40, y=220)), "e2")


@pytest.mark.parametrize(
    ("x", "y", "word"), [(5, 2300, "lies in no element"), (2000, 5, "not on the screen"), (-1, 5, "not on")]
)
def test_coordinates_outside_every_element_are_refused(x: int, y: int, word: str) -> None:
    assert word in refused("tap", x=x, y=y)


def test_on_a_picture_alone_any_point_of_the_screen_is_taken_and_called_ungrounded() -> None:
    bare = scene(source="screenshot-only")
    assert done("tap", bare, x=5, y=2300) == Grounded(actions.Tap(at=Point(x=5, y=2300)), None, True)
    assert "not on the screen" in refused("tap", bare, x=5, y=2400)


def test_inside_an_opaque_surface_any_point_is_taken_and_called_ungrounded() -> None:
    game = scene(
        element(
            1, "image", "", class_name="android.view.SurfaceView", bounds=Bounds(left=0, top=0, right=1080, bottom=2400)
        )
    )
    assert done("tap", game, x=500, y=2000).ungrounded
    page = scene(element(1, "web", "", interactive=False))
    assert done("tap", page, x=500, y=150).target is None
    assert not done("tap", page, element="e1").ungrounded


@pytest.mark.parametrize(
    ("tool", "arguments", "word"),
    [
        ("fly", {}, "there is no tool 'fly'"),
        ("tap", {}, "needs an element, or x and y"),
        ("tap", {"x": 5}, "needs an element, or x and y"),
        ("tap", {"x": "left", "y": 1}, "must be a whole number"),
        ("tap", {"x": True, "y": 1}, "must be a whole number"),
        ("swipe", {"x1": 1, "y1": 1, "x2": 1}, "needs the argument y2"),
        ("swipe", {"x1": 5, "y1": 5, "x2": 5, "y2": 5}, "ends where it begins"),
        ("swipe", {"x1": 5, "y1": 9000, "x2": 5, "y2": 5}, "not on the screen"),
        ("input_text", {"element": "e3"}, "needs the argument text"),
        ("input_text", {"element": "e1", "text": "x"}, "no field that takes text"),
        ("launch_app", {"app": " "}, "name or package"),
        ("launch_app", {"app": ["x"]}, "must be text"),
        ("finish_task", {"reason": "done"}, "needs the argument success"),
        ("finish_task", {"success": True, "reason": ""}, "needs a reason"),
        ("finish_task", {"success": "perhaps", "reason": "x"}, "true or false"),
        ("wait", {"seconds": 0}, "more than 0"),
        ("scroll", {"direction": "sideways"}, "one of up, down"),
    ],
)
def test_a_call_that_does_not_fit_its_tool_is_refused_with_the_fault(tool: str, arguments: Any, word: str) -> None:
    assert word in refused(tool, **arguments)


@pytest.mark.parametrize(
    ("purpose", "expected", "word"),
    [("", "x", "a purpose"), ("x", None, "an expected_outcome"), (" ", " ", "a purpose and an expected")],
)
def test_a_device_tool_without_purpose_or_expected_outcome_is_refused(purpose: Any, expected: Any, word: str) -> None:
    blank = call("tap", purpose=purpose, expected=expected, element="e2")
    found = ground(blank, network(), ALL)
    assert isinstance(found, Refusal)
    assert word.split()[-1] in found.fault


def test_ending_the_task_needs_neither() -> None:
    end = call("finish_task", purpose=None, expected=None, success="true", reason="it is on", evidence="Wi-Fi")
    assert ground(end, network(), ALL) == Grounded(
        actions.FinishTask(success=True, reason="it is on", evidence="Wi-Fi")
    )


def test_a_tool_that_is_not_offered_in_this_turn_is_refused() -> None:
    found = ground(call("tap", element="e2"), network(), frozenset({"finish_task"}))
    assert isinstance(found, Refusal)
    assert found.fault == "there is no tool 'tap'; the tools are finish_task."


def test_text_goes_into_the_named_field_or_the_one_with_the_focus() -> None:
    named = done("input_text", element="e4", text=1234)
    assert named.action == actions.InputText(text="1234", at=Point(x=540, y=450))
    assert named.target is not None
    assert (named.target.role, named.target.text) == ("password", None)  # a secret is no part of an identity
    focused = done("input_text", text="")
    assert (focused.action, focused.target and focused.target.element) == (
        actions.InputText(text="", at=Point(x=540, y=350)), "e3",
    )  # fmt: skip
    assert "no field has the focus" in refused("input_text", scene(element(1, "button", "OK")), text="x")


def test_a_swipe_may_end_on_the_edge_and_names_the_list_that_it_starts_in() -> None:
    a_list = scene(element(1, "list", "Apps", scrollable=True, bounds=Bounds(left=0, top=0, right=1080, bottom=2000)))
    found = done("swipe", a_list, x1="540", y1="1500", x2=1080, y2=0)
    assert found.action == actions.Swipe(start=Point(x=540, y=1500), end=Point(x=1079, y=0))
    assert found.target is not None
    assert found.target.label == "Apps"


@given(
    st.sampled_from([tool.name for tool in TABLE]),
    st.dictionaries(
        st.sampled_from(
            [
                "element",
                "x",
                "y",
                "x1",
                "y1",
                "x2",
                "y2",
                "text",
                "app",
                "success",
                "reason",
                "direction",
                "key",
                "seconds",
            ]
        ),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=20)
        | st.just("e2")
        | st.lists(st.integers(), max_size=2),
    ),
)
def test_whatever_the_arguments_are_the_answer_is_an_action_on_the_screen_or_a_refusal(
    tool: str, arguments: Any
) -> None:
    found = ground(call(tool, **arguments), network(), ALL)
    if isinstance(found, Refusal):
        assert found.fault.endswith(".")
    elif isinstance(found.action, actions.Tap | actions.LongPress):
        assert 0 <= found.action.at.x < 1080
        assert 0 <= found.action.at.y < 2400
