"""The acts: what each action does to a phone through its driver. Blocking; each call is one or few requests.

An act ends in an Outcome, or raises ActRefused when nothing was done; any other error is left to `failures`.
"""

import time
from typing import Final, assert_never

from apex_executor import keys, launching
from apex_executor.fields import input_text
from apex_executor.outcomes import Outcome
from apex_executor.phone import Phone
from apex_executor.pointer import press, scroll, swipe
from apex_executor.targets import point_now
from apex_schemas.actions import (
    Back,
    DeviceAction,
    Home,
    InputText,
    LaunchApp,
    LongPress,
    PressKey,
    Scroll,
    Swipe,
    Tap,
    TerminateApp,
    Wait,
)
from apex_schemas.geometry import Point
from apex_schemas.steps import Target

_DONE: Final = Outcome(success=True)


def perform(phone: Phone, action: DeviceAction, target: Target | None, *, verify: bool) -> Outcome:
    """Do one action on the phone. Points are in pixels."""
    match action:
        case Tap(at=at):
            place, verify_ms = _verified(phone, target, at, verify=verify)
            press(phone, place)
            return _DONE._replace(verify_ms=verify_ms)
        case LongPress(at=at, duration_ms=duration_ms):
            place, verify_ms = _verified(phone, target, at, verify=verify)
            press(phone, place, hold_ms=duration_ms)
            return _DONE._replace(verify_ms=verify_ms)
        case Swipe(start=start, end=end, duration_ms=duration_ms):
            swipe(phone, start, end, duration_ms)
        case InputText():
            return input_text(phone, action, target, verify=verify)
        case LaunchApp(app=app):
            return launching.launch(phone, app)
        case TerminateApp(app=app):
            return launching.terminate(phone, app)
        case Scroll(direction=direction, at=at):
            scroll(phone, direction, at)
        case Back():
            keys.back(phone)
        case Home():
            keys.home(phone)
        case PressKey(key=key):
            keys.press_key(phone, key)
        case Wait():
            raise AssertionError("a wait touches no phone: see `waiting`")
        case _:
            assert_never(action)
    return _DONE


def _verified(phone: Phone, target: Target | None, at: Point, *, verify: bool) -> tuple[Point, int]:
    began = time.monotonic()
    place = point_now(phone, target, at) if verify else at
    return place, round((time.monotonic() - began) * 1_000)
