"""What the wire is made of: W3C actions to gestures, locators to elements, rectangles on the screen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_lab.phone import Phone
from apex_lab.phone.errors import InvalidArgument, InvalidElementState, InvalidSelector, InvalidSession
from apex_lab.phone.geometry import Point
from apex_lab.phone.gestures import ELEMENT_KEY, Touch, Typed, read_actions
from apex_lab.phone.layout import Node
from apex_lab.phone.locators import Locator, find
from apex_lab.phone.sessions import Sessions
from apex_lab.phone.xmltree import literal, root, xpath

SIZE = (540, 1200)


def pointer(*actions: dict[str, object]) -> dict[str, object]:
    return {"actions": [{"type": "pointer", "id": "touch", "actions": list(actions)}]}


def move(x: float, y: float, **more: object) -> dict[str, object]:
    return {"type": "pointerMove", "duration": 250, "x": x, "y": y, **more}


DOWN: dict[str, object] = {"type": "pointerDown", "duration": 0, "button": 0}
UP: dict[str, object] = {"type": "pointerUp", "duration": 0, "button": 0}


def pause(ms: int) -> dict[str, object]:
    return {"type": "pause", "duration": ms}


def one(body: dict[str, object]) -> Touch:
    (touch,) = read_actions(body, SIZE, lambda element: Point(270, 600))
    assert isinstance(touch, Touch)
    return touch


def test_down_pause_up_is_a_tap_and_a_long_pause_a_long_press() -> None:
    tap, press = one(pointer(move(10, 20), DOWN, pause(100), UP)), one(pointer(move(10, 20), DOWN, pause(700), UP))
    assert (tap.start, tap.moved, tap.long) == ((10, 20), False, False)
    assert (press.moved, press.long) == (False, True)


def test_a_way_shorter_than_the_slop_is_no_swipe() -> None:
    assert not one(pointer(move(10, 20), DOWN, move(15, 25), UP)).moved
    swipe = one(pointer(move(10, 900), DOWN, move(10, 300), pause(900), UP))
    assert (swipe.start, swipe.end, swipe.moved, swipe.held_ms) == ((10, 900), (10, 300), True, 0)


def test_moves_count_from_an_elements_centre_and_from_the_last_place() -> None:
    origin = {ELEMENT_KEY: "e"}
    touch = one(pointer(move(1, 2, origin=origin), DOWN, move(0, -100, origin="pointer"), UP))
    assert (touch.start, touch.end) == ((271, 602), (271, 502))


def test_keys_become_text_and_empty_sources_nothing() -> None:
    keys = [{"type": "keyDown", "value": "é"}, {"type": "keyUp", "value": "é"}]
    body = {"actions": [{"type": "key", "id": "key", "actions": keys}, {"type": "none", "id": "n", "actions": []}]}
    assert read_actions(body, SIZE, lambda element: Point(0, 0)) == [Typed(text="é")]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, InvalidArgument),
        ({"actions": []}, InvalidArgument),
        (pointer(UP), InvalidArgument),
        (pointer(move(1, 1), {"type": "pointerJump"}), InvalidArgument),
        (pointer(move(540, 1), DOWN, UP), InvalidElementState),
        (pointer(move(1, -1), DOWN, UP), InvalidElementState),
    ],
)
def test_actions_that_cannot_be_done_are_refused(body: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        read_actions(body, SIZE, lambda element: Point(0, 0))


@pytest.mark.parametrize(
    ("using", "value", "count"),
    [
        ("id", "recycler_view", 1),
        ("id", "com.android.settings:id/recycler_view", 1),
        ("id", "android:id/title", 12),
        ("accessibility id", "Navigate up", 0),
        ("class name", "androidx.recyclerview.widget.RecyclerView", 1),
        ("xpath", "//android.widget.TextView[@text='Battery']", 1),
        ("xpath", "//*[contains(@text, 'Not')]/..", 1),
        ("-android uiautomator", 'new UiSelector().resourceId("android:id/title").text("Apps")', 1),
        ("-android uiautomator", 'new UiSelector().textContains("on").instance(1)', 1),
        ("-android uiautomator", "new UiSelector().scrollable(true);", 1),
        ("-android uiautomator", 'new UiSelector().textStartsWith("S").clickable(true)', 0),
    ],
)
def test_a_locator_finds(using: str, value: str, count: int) -> None:
    phone = Phone("sim-1")
    phone.launch("com.android.settings")
    assert len(find(phone.snapshot(), Locator(using, value), phone.package)) == count


@pytest.mark.parametrize(
    ("using", "value"),
    [
        ("xpath", "//*[@text="),
        ("xpath", "count(//*)"),
        ("css selector", "a"),
        ("-android uiautomator", "new UiScrollable(x)"),
        ("-android uiautomator", 'new UiSelector().colour("red")'),
    ],
)
def test_a_locator_that_cannot_be_read_is_an_invalid_selector(using: str, value: str) -> None:
    with pytest.raises(InvalidSelector):
        find(Phone("sim-1").snapshot(), Locator(using, value), "p")


def test_a_session_unused_for_longer_than_its_command_timeout_is_over() -> None:
    now = [0.0]
    sessions = Sessions(clock=lambda: now[0])
    session, forever = sessions.create(Phone("sim-1"), {}, 60), sessions.create(Phone("sim-2"), {}, 0)
    now[0] = 59.0
    sessions.used(sessions.get(session.id))
    now[0] = 119.0
    assert sessions.get(session.id) is session
    now[0] = 119.1
    with pytest.raises(InvalidSession):
        sessions.get(session.id)
    assert sessions.get(forever.id) is forever


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF)))
def test_any_text_can_be_looked_for(text: str) -> None:
    tree = root("a", {"text": text})
    assert len(xpath(tree, f"self::a[@text={literal(text)}]")) == 1


@given(st.integers(200, 1400), st.integers(300, 2600), st.integers(0, 5000), st.booleans())
def test_on_any_screen_every_node_lies_inside_its_window(width: int, height: int, way: int, turned: bool) -> None:
    phone = Phone("sim-1", width=width, height=height)
    phone.landscape = turned
    phone.launch("com.android.settings")
    middle = Point(phone.size[0] // 2, phone.size[1] // 2)
    phone.swipe(middle, Point(middle.x, middle.y - way), "s")

    def check(node: Node) -> None:
        for child in node.children:
            assert child.rect.clip(node.rect) == child.rect
            assert not child.rect.empty
            check(child)

    (view, *_) = phone.snapshot().views.values()
    assert view.node is not None
    check(view.node)
