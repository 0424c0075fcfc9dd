"""Going round in circles: the same act on the same screen, again and again. Pure; works from the World alone.

Consumes the events before a turn and its Scene; emits a Loop, with what to tell the model about it. A screen is known
by its masked fingerprint, so that clocks and progress bars do not hide a loop; an act by what it is done to, not by the
pixel. Waiting and going back are no loops, and a movement counts only where the screen did not change by it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from apex_planner.history import describe
from apex_schemas import actions
from apex_schemas.actions import Action
from apex_schemas.geometry import Point
from apex_schemas.scene import Scene
from apex_schemas.steps import Target, WorldEvent

NUDGE: Final = 3
STRONG: Final = 5
FAIL: Final = 8
WINDOW: Final = 24
"""Turns looked back on: room for eight rounds of three screens."""

_SAME_POINT: Final = 24
"""Points this near to each other, in pixels, are one."""

_EXEMPT: Final = (actions.Wait, actions.Back, actions.Look, actions.DescribeScreen, actions.FinishTask)


class Loop(NamedTuple):
    """An act that was done `times` times on the screen of this turn; `act` says it in words."""

    times: int
    act: str

    def note(self, limit: int = FAIL) -> str | None:
        """What the model is told; None where there is nothing to tell yet."""
        if self.times < NUDGE:
            return None
        said = f"on this very screen you did {self.act} {self.times} times, and you are here again."
        if self.times < STRONG:
            return f"{said} Try another way."
        ending = f" The task fails at {limit} times." if limit else ""
        return (
            f"{said} Do not do it again: do something else, go back, or finish with success false and say what is in "
            f"the way.{ending}"
        )

    def reason(self, limit: int = FAIL) -> str | None:
        """Why the task fails; None while it does not. With a limit of 0 it never does."""
        if not limit or self.times < limit:
            return None
        return f"the same act was done {self.times} times on the same screen without getting on: {self.act}"


def loop_of(history: Sequence[WorldEvent], scene: Scene) -> Loop | None:
    """What was repeated most on the screen of this turn; None where nothing was done on it before."""
    counted: Counter[str] = Counter()
    words: dict[str, str] = {}
    for event, after in _with_what_followed(history, scene):
        if event.fingerprint != scene.fingerprint or not event.fingerprint or not _counts(event, after):
            continue
        key = _normalised(event.action, event.target)
        counted[key] += 1
        words[key] = describe(event.action, event.target)
    if not counted:
        return None
    key, times = counted.most_common(1)[0]
    return Loop(times, words[key])


def _with_what_followed(history: Sequence[WorldEvent], scene: Scene) -> Iterator[tuple[WorldEvent, str]]:
    """The latest events, each with the fingerprint of the screen after it."""
    latest = history[-WINDOW:]
    followed = [event.fingerprint for event in latest[1:]]
    return zip(latest, [*followed, scene.fingerprint], strict=False)


def _counts(event: WorldEvent, after: str) -> bool:
    if isinstance(event.action, _EXEMPT):
        return False
    moves = isinstance(event.action, actions.Swipe | actions.Scroll)
    return not moves or after == event.fingerprint


def _normalised(action: Action, target: Target | None) -> str:
    """What makes two acts the same: the tool, what it is done to, and what it says."""
    name = actions.tool_name(action)
    match action:
        case actions.Tap(at=at) | actions.LongPress(at=at):
            return f"{name} {_place(at, target)}"
        case actions.InputText(text=text, at=at):
            return f"{name} {_place(at, target)} {text}"
        case actions.Swipe():
            return describe(action, target)
        case _:
            return f"{name} {action!r}"


def _place(at: Point | None, target: Target | None) -> str:
    """Look-alikes of a list are told apart by where they are."""
    place = "" if at is None else f"{at.x // _SAME_POINT},{at.y // _SAME_POINT}"
    return place if target is None else f"{target.role} {target.resource_id} {target.label} {place}"
