"""One finger: presses and swipes as W3C actions, in one request each."""

from typing import Any, Final

from selenium.webdriver.remote.command import Command

from apex_executor.phone import Phone
from apex_schemas.geometry import Point

_PRESS_MS: Final = 50
_MOST_SCROLLED: Final = 0.3
"""Of the screen's side, each way from the middle."""


def press(phone: Phone, at: Point, *, hold_ms: int = _PRESS_MS) -> None:
    x, y = phone.units(at)
    _pointer(
        phone,
        {"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": "viewport"},
        {"type": "pointerDown", "button": 0},
        {"type": "pause", "duration": hold_ms},
        {"type": "pointerUp", "button": 0},
    )


def swipe(phone: Phone, start: Point, end: Point, duration_ms: int) -> None:
    (x1, y1), (x2, y2) = phone.units(start), phone.units(end)
    _pointer(
        phone,
        {"type": "pointerMove", "duration": 0, "x": x1, "y": y1, "origin": "viewport"},
        {"type": "pointerDown", "button": 0},
        {"type": "pointerMove", "duration": duration_ms, "x": x2, "y": y2, "origin": "viewport"},
        {"type": "pointerUp", "button": 0},
    )


def scroll(phone: Phone, direction: str, at: Point | None) -> None:
    """Move the view of the content: the finger goes the other way, over six tenths of the screen at most, and stays
    on it."""
    size = phone.screen()
    at = at or Point(x=size.width // 2, y=size.height // 2)
    dx, dy = {"up": (0, 1), "down": (0, -1), "left": (1, 0), "right": (-1, 0)}[direction]
    reach_x = min(round(size.width * _MOST_SCROLLED), at.x, size.width - 1 - at.x)
    reach_y = min(round(size.height * _MOST_SCROLLED), at.y, size.height - 1 - at.y)
    start = Point(x=at.x - dx * reach_x, y=at.y - dy * reach_y)
    end = Point(x=at.x + dx * reach_x, y=at.y + dy * reach_y)
    swipe(phone, start, end, 400)


def _pointer(phone: Phone, *moves: dict[str, Any]) -> None:
    """The client's own gestures add a quarter of a second of movement."""
    finger = {"type": "pointer", "id": "finger", "parameters": {"pointerType": "touch"}, "actions": list(moves)}
    phone.driver.execute(Command.W3C_ACTIONS, {"actions": [finger]})
