"""W3C actions, as ActionChains and ActionBuilder send them, become taps, long presses, swipes and typed text.

Pure. Time does not pass here: pauses and durations only tell a tap from a long press.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from apex_lab.phone.errors import InvalidArgument, InvalidElementState
from apex_lab.phone.geometry import Point

LONG_PRESS_MS = 500
SLOP = 8
ELEMENT_KEY = "element-6066-11e4-a52e-4f735466cecf"
Locate = Callable[[str], Point]


@dataclass(frozen=True, kw_only=True, slots=True)
class Touch:
    """One finger from down to up; `held_ms` is how long it rested before it moved or left."""

    start: Point
    end: Point
    held_ms: int

    @property
    def moved(self) -> bool:
        return abs(self.end.x - self.start.x) > SLOP or abs(self.end.y - self.start.y) > SLOP

    @property
    def long(self) -> bool:
        return self.held_ms >= LONG_PRESS_MS


@dataclass(frozen=True, kw_only=True, slots=True)
class Typed:
    """Keys pressed, as text."""

    text: str


class _Action(msgspec.Struct, frozen=True):
    type: str
    duration: float = 0
    x: float = 0
    y: float = 0
    origin: str | dict[str, str] = "viewport"
    value: str = ""


class _Source(msgspec.Struct, frozen=True):
    type: str
    id: str = ""
    actions: list[_Action] = []


class _Body(msgspec.Struct, frozen=True):
    actions: list[_Source]


def read_actions(body: object, size: tuple[int, int], locate: Locate) -> list[Touch | Typed]:
    """The gestures of an actions request, finger by finger.

    `locate` gives the centre of an element. Raises InvalidArgument for what is no action and InvalidElementState, as
    the UiAutomator2 server does, for a place off the screen.
    """
    try:
        sources = msgspec.convert(body, _Body).actions
    except msgspec.ValidationError as error:
        raise InvalidArgument(f"The actions cannot be read: {error}") from error
    found: list[Touch | Typed] = []
    for source in sources:
        match source.type:
            case "pointer":
                found += _pointer(source.actions, size, locate)
            case "key":
                text = "".join(action.value for action in source.actions if action.type == "keyDown")
                found += [Typed(text=text)] if text else []
            case "none" | "wheel":
                continue
            case _:
                raise InvalidArgument(f"'{source.type}' is not a type of input source")
    if not any(source.actions for source in sources):
        raise InvalidArgument("The actions are empty: nothing to perform")
    return found


def _pointer(actions: list[_Action], size: tuple[int, int], locate: Locate) -> list[Touch]:
    touches: list[Touch] = []
    at = Point(0, 0)
    down: Point | None = None
    held = 0.0
    moved = False
    for action in actions:
        match action.type:
            case "pointerMove":
                at = _target(action, at, locate)
                if not (0 <= at.x < size[0] and 0 <= at.y < size[1]):
                    raise InvalidElementState(
                        "Unable to perform W3C actions. Check the logcat output for possible error reports and make "
                        f"sure your input actions chain is valid. (simulated: {tuple(at)} is off the screen {size})"
                    )
                moved = moved or (down is not None and at != down)
            case "pointerDown":
                down, held, moved = at, 0.0, False
            case "pause":
                held += action.duration if down is not None and not moved else 0
            case "pointerUp":
                if down is None:
                    raise InvalidArgument("pointerUp without a pointerDown before it")
                touches.append(Touch(start=down, end=at, held_ms=round(held)))
                down = None
            case "pointerCancel":
                down = None
            case _:
                raise InvalidArgument(f"'{action.type}' is not an action of a pointer")
    return touches


def _target(action: _Action, at: Point, locate: Locate) -> Point:
    x, y = round(action.x), round(action.y)
    if isinstance(action.origin, dict):
        centre = locate(action.origin.get(ELEMENT_KEY, action.origin.get("ELEMENT", "")))
        return Point(centre.x + x, centre.y + y)
    return Point(at.x + x, at.y + y) if action.origin == "pointer" else Point(x, y)
