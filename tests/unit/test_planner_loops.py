"""What counts as going round in circles, and what does not."""

import pytest
from planner_world import element, event, network, scene

from apex_perception import fingerprint
from apex_planner.loops import FAIL, NUDGE, STRONG, WINDOW, loop_of
from apex_schemas import actions
from apex_schemas.actions import Action
from apex_schemas.geometry import Point
from apex_schemas.scene import Element
from apex_schemas.steps import Target, WorldEvent

HERE = network()
TARGET = Target(element="e7", role="row", label="Wi-Fi")


def tap(x: int = 100, y: int = 100, *, on: str = "f1", target: Target | None = TARGET) -> WorldEvent:
    return event(actions.Tap(at=Point(x=x, y=y)), fingerprint=on, target=target)


def did(action: Action, *, on: str = "f1", target: Target | None = None) -> WorldEvent:
    return event(action, fingerprint=on, target=target)


def times(*events: WorldEvent) -> int:
    loop = loop_of(events, HERE)
    return 0 if loop is None else loop.times


def test_the_same_act_on_the_same_screen_is_counted() -> None:
    assert times() == 0
    assert times(tap()) == 1
    assert times(*[tap()] * 4) == 4


@pytest.mark.parametrize(("count", "nudged", "failed"), [(2, 0, 0), (3, 1, 0), (5, 1, 0), (7, 1, 0), (8, 1, 1)])
def test_at_three_the_model_is_told_and_at_eight_the_task_fails(count: int, nudged: int, failed: int) -> None:
    loop = loop_of([tap()] * count, HERE)
    assert loop is not None
    assert (loop.note() is not None, loop.reason() is not None) == (bool(nudged), bool(failed))
    assert (NUDGE, STRONG, FAIL) == (3, 5, 8)


def test_from_five_on_it_is_told_urgently() -> None:
    mild, urgent = (loop_of([tap()] * count, HERE) for count in (4, 5))
    assert mild is not None
    assert urgent is not None
    assert "Do not do it again" not in (mild.note() or "")
    assert "Do not do it again" in (urgent.note() or "")


def test_the_limit_can_be_set_and_without_one_no_loop_fails_a_task() -> None:
    loop = loop_of([tap()] * 12, HERE)
    assert loop is not None
    assert loop.reason(13) is None
    assert loop.reason(12) is not None
    assert loop.reason(0) is None
    assert "fails at 13 times" in (loop.note(13) or "")
    assert "fails at" not in (loop.note(0) or "")


def test_a_ring_of_two_or_three_screens_is_a_loop_too() -> None:
    assert times(*[tap(), tap(on="f2")] * 8) == 8
    assert times(*[tap(), tap(on="f2"), tap(on="f3")] * 8) == 8
    assert WINDOW >= 3 * FAIL


def test_what_was_done_on_another_screen_is_none_of_this_ones_loops() -> None:
    assert times(*[tap(on="f2")] * 8) == 0


def test_an_event_of_a_screen_without_a_fingerprint_counts_nowhere() -> None:
    assert times(*[tap(on="")] * 8) == 0
    assert loop_of([tap(on="")] * 8, scene(element(1))) is None


@pytest.mark.parametrize(
    "action",
    [
        actions.Wait(seconds=2),
        actions.Back(),
        actions.Look(code="SCENE_TOO_OLD", reason="r"),
        actions.DescribeScreen(),
    ],
)
def test_waiting_going_back_and_looking_are_exempt(action: Action) -> None:
    assert times(*[did(action)] * 9) == 0


MOVES = [
    actions.Swipe(start=Point(x=500, y=1800), end=Point(x=500, y=600)),
    actions.Scroll(direction="down"),
]


@pytest.mark.parametrize("move", MOVES)
def test_a_movement_counts_only_where_the_screen_did_not_change_by_it(move: Action) -> None:
    assert times(*[did(move)] * 4) == 4
    moved_on = [did(move), did(move, on="f2")] * 4
    assert times(*moved_on) == 0
    # Each time the screen changed, and is back only now.
    assert times(did(move), tap(on="f2"), did(move), tap(on="f2")) == 0


def test_swipes_of_one_direction_are_the_same_and_of_another_are_not() -> None:
    up = [did(actions.Swipe(start=Point(x=500, y=1800 + n), end=Point(x=500, y=600 - n))) for n in range(4)]
    down = did(actions.Swipe(start=Point(x=500, y=600), end=Point(x=500, y=1800)))
    assert times(*up) == 4
    assert times(*up[:2], down) == 2


def test_taps_near_one_point_are_the_same_and_look_alikes_of_a_list_are_not() -> None:
    assert times(tap(100, 100), tap(101, 102), tap(103, 101)) == 3
    assert times(tap(100, 100), tap(100, 300), tap(100, 500)) == 1
    assert times(tap(target=None), tap(101, 101, target=None)) == 2


def test_other_text_typed_is_another_act() -> None:
    assert times(*(did(actions.InputText(text=text)) for text in ("a", "b", "a"))) == 2
    assert times(*(did(actions.LaunchApp(app=app)) for app in ("a", "b", "c"))) == 1


def test_the_model_can_get_out_by_doing_something_else() -> None:
    other = tap(900, 900, target=Target(element="e9", role="row", label="Other"))
    assert times(tap(), tap(), tap(), other) == 3
    assert loop_of([tap(), tap(), tap(), other, tap(on="f2")], scene(fingerprint="f9", page="P")) is None


def test_a_loop_is_seen_through_a_clock_and_a_progress_bar() -> None:
    """The screens' own fingerprints are deaf to both, and so is what stands on them."""

    def shown(clock: str, percent: str) -> tuple[Element, ...]:
        return (element(1, "text", clock), element(2, "progress", percent), element(3, "button", "Retry"))

    prints = [fingerprint.of(shown(f"12:{minute:02}", f"{minute} %"), page="P", keyboard=None) for minute in range(8)]
    now = scene(*shown("12:59", "59 %"), fingerprint=prints[0])
    loop = loop_of([tap(on=each) for each in prints], now)
    assert loop is not None
    assert loop.times == 8
