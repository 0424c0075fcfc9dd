"""The commands of a session: each takes what the client sent and answers the `value` of a WebDriver response."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast

from apex_lab.phone.errors import InvalidArgument, UnknownError
from apex_lab.phone.geometry import Point
from apex_lab.phone.gestures import Touch, Typed, read_actions
from apex_lab.phone.sessions import Session
from apex_lab.phone.views import View

NATIVE = "NATIVE_APP"


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One request within a session: `path` holds the variable parts of the URL, `body` the JSON sent."""

    session: Session
    path: Mapping[str, str]
    body: Mapping[str, object]

    def need(self, name: str) -> object:
        """A required parameter; raises InvalidArgument."""
        if self.body.get(name) is None:
            raise InvalidArgument(f"Parameter '{name}' is required; got {sorted(self.body)}")
        return self.body[name]

    def text(self, name: str) -> str:
        value = self.need(name)
        if not isinstance(value, str):
            raise InvalidArgument(f"Parameter '{name}' must be a string, not {type(value).__name__}")
        return value

    def view(self) -> View:
        return self.session.view(self.path["element"])


Command = Callable[[Call], Awaitable[object]]


async def settle(session: Session) -> None:
    """Waits for the screen to be idle, as both drivers do before they read, and not longer than the settings say."""
    if session.phone.busy_seconds:
        await asyncio.sleep(min(session.phone.busy_seconds, session.idle_seconds))


async def source(call: Call) -> object:
    await settle(call.session)
    return call.session.phone.source(all_windows=call.session.all_windows)


async def screenshot(call: Call) -> object:
    return base64.b64encode(call.session.phone.picture()).decode()


async def window_rect(call: Call) -> object:
    width, height = call.session.phone.size
    return {"x": 0, "y": 0, "width": width, "height": height}


async def get_orientation(call: Call) -> object:
    return "LANDSCAPE" if call.session.phone.landscape else "PORTRAIT"


async def set_orientation(call: Call) -> object:
    wanted = call.text("orientation").upper()
    if wanted not in ("LANDSCAPE", "PORTRAIT"):
        raise InvalidArgument(f"Orientation must be either LANDSCAPE or PORTRAIT, not {wanted}")
    call.session.phone.rotate(wanted == "LANDSCAPE", call.session.id)
    return wanted


async def get_rotation(call: Call) -> object:
    return {"x": 0, "y": 0, "z": 90 if call.session.phone.landscape else 0}


async def set_rotation(call: Call) -> object:
    call.session.phone.rotate(call.need("z") in (90, 270), call.session.id)
    return None


async def actions(call: Call) -> object:
    session = call.session
    phone = session.phone
    for gesture in read_actions(dict(call.body), phone.size, lambda element: session.view(element).middle):
        match gesture:
            case Typed(text=text):
                phone.write(text, session.id)
            case Touch() if gesture.moved:
                phone.swipe(gesture.start, gesture.end, session.id)
            case Touch() if gesture.long:
                phone.long_press(gesture.start, session.id)
            case Touch():
                phone.tap(gesture.start, session.id)
    return None


async def nothing(call: Call) -> object:
    return None


IMES = ("com.android.inputmethod.latin/.LatinIME", "io.appium.settings/.UnicodeIME")


async def imes(call: Call) -> object:
    return list(IMES)


async def ime(call: Call) -> object:
    return IMES[call.session.phone.faults.ime_left]


async def set_ime(call: Call) -> object:
    """Puts the keyboard back, or Appium's own input method in its place, on which no keyboard comes up."""
    engine = call.text("engine")
    if engine not in IMES:
        raise UnknownError(f"IME not found: {engine}")
    phone = call.session.phone
    phone.faults = phone.faults.changed({"ime_left": engine == IMES[1]})
    phone.patch({})
    return None


async def back(call: Call) -> object:
    call.session.phone.key(4, call.session.id)
    return None


async def contexts(call: Call) -> object:
    return [NATIVE]


async def get_context(call: Call) -> object:
    return NATIVE


async def set_context(call: Call) -> object:
    if call.body.get("name") not in (NATIVE, None):
        raise UnknownError("No such context found.")
    return None


async def get_settings(call: Call) -> object:
    return call.session.settings


async def update_settings(call: Call) -> object:
    new = call.need("settings")
    if not isinstance(new, dict):
        raise InvalidArgument("Parameter 'settings' must be an object")
    call.session.settings.update(cast("dict[str, object]", new))
    return None


async def get_timeouts(call: Call) -> object:
    return {"command": round(call.session.timeout * 1000), "implicit": call.session.implicit_ms}


async def set_timeouts(call: Call) -> object:
    implicit = call.body.get("implicit")
    if isinstance(implicit, int | float) and implicit >= 0:
        call.session.implicit_ms = round(implicit)
    elif implicit is not None:
        raise InvalidArgument(f"The implicit timeout must be a number of ms from 0, not {implicit!r}")
    return None


async def capabilities(call: Call) -> object:
    return call.session.capabilities


def at(x: object, y: object) -> Point:
    """A point from JSON; raises InvalidArgument."""
    if isinstance(x, int | float) and isinstance(y, int | float):
        return Point(round(x), round(y))
    raise InvalidArgument(f"x and y must be numbers, not {x!r} and {y!r}")
