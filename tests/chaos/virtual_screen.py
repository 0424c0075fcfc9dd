"""What a phone shows in virtual time, and the Appium server that the real AppiumPhone of perception asks for it.

A screen of one button for each turn, whose title tells how many were tapped. A phone may lose its session once.
"""

import asyncio
import base64
import concurrent.futures
import functools
import hashlib
import struct
from collections.abc import Callable
from typing import Any

from chaos.virtual_phone import VirtualPhone
from chaos.virtual_process import Life
from selenium.common.exceptions import InvalidSessionIdException

from apex_perception import picture
from apex_perception.perceive import perceive
from apex_schemas.geometry import Point

WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven")
BUTTONS = 5
_TOP, _STEP, _WIDTH, _HEIGHT = 100, 100, 360, 720
_PURE = (perceive, picture.portable)


class ShownPhone(VirtualPhone):
    """A phone with a screen. Its session is lost before the first look that comes after `loses_after` acts."""

    def __init__(self, *, loses_after: int | None = None) -> None:
        super().__init__()
        self.loses_after = loses_after

    def looked_at(self, session: str) -> None:
        """Raises InvalidSessionIdException."""
        if self.loses_after is not None and len(self.acts) >= self.loses_after:
            self.loses_after = None
            self.sessions.clear()
        if session not in self.sessions:
            raise InvalidSessionIdException("invalid session id")

    @property
    def source(self) -> str:
        return _source(len(self.acts))

    @property
    def screenshot(self) -> bytes:
        return _screenshot(len(self.acts))


def meant(at: Point) -> int:
    """The turn whose button lies at a point."""
    return (at.y - _TOP) // _STEP


@functools.cache
def _source(taps: int) -> str:
    always = 'clickable="{}" enabled="true" displayed="true" package="lab.shop" index="0"'
    buttons = "".join(
        f'<android.widget.Button class="android.widget.Button" text="Step {WORDS[n]}" {always.format("true")} '
        f'resource-id="lab.shop:id/{WORDS[n]}" bounds="[0,{_TOP + n * _STEP}][{_WIDTH},{_TOP + n * _STEP + 90}]"/>'
        for n in range(BUTTONS)
    )
    return (
        f'<hierarchy rotation="0" width="{_WIDTH}" height="{_HEIGHT}"><android.widget.FrameLayout '
        f'class="android.widget.FrameLayout" text="" {always.format("false")} bounds="[0,0][{_WIDTH},{_HEIGHT}]">'
        f'<android.widget.TextView class="android.widget.TextView" text="{WORDS[taps]} tapped" '
        f'{always.format("false")} bounds="[0,0][{_WIDTH},90]"/>{buttons}</android.widget.FrameLayout></hierarchy>'
    )


@functools.cache
def _screenshot(taps: int) -> bytes:
    """As much of a PNG as is ever read of one that needs no cutting."""
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", _WIDTH, _HEIGHT) + b"\x08\x02\0\0\0" + bytes([taps])


def shows(sha256: str) -> int | None:
    """How many taps the screen shows whose picture has this hash."""
    hashes = [hashlib.sha256(_screenshot(taps)).hexdigest() for taps in range(len(WORDS))]
    return hashes.index(sha256) if sha256 in hashes else None


def asked(phone: ShownPhone, command: str, session: str) -> dict[str, Any]:
    """What the Appium server answers. Raises InvalidSessionIdException."""
    phone.looked_at(session)
    match command:
        case "getPageSource":
            return {"value": phone.source}
        case "screenshot":
            return {"value": base64.b64encode(phone.screenshot).decode()}
        case "getWindowRect":
            return {"value": {"x": 0, "y": 0, "width": _WIDTH, "height": _HEIGHT}}
        case _:
            raise AssertionError(f"perception asks a phone for {command}")


class Threads(concurrent.futures.Executor):
    """Perception's threads, in which it asks phones."""

    def __init__(self, life: Life) -> None:
        self.life = life


async def run_in_executor(_: Any, threads: Any, call: Callable[..., Any], *args: Any) -> Any:
    """In place of the loop's own: done at once, with a gap before and after it where it is a phone that is asked."""
    if not isinstance(threads, Threads) or getattr(call, "func", call) in _PURE:
        return call(*args)
    await threads.life.point()
    await asyncio.sleep(threads.life.world.rng.uniform(0.01, 0.2))
    try:
        return call(*args)
    finally:
        await threads.life.point()
