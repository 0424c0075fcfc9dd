"""The acts: what each action does to a phone through its driver. Blocking; each call is one or few requests.

An act ends in an Outcome, or raises ActRefused when nothing was done; any other error is left to `failures`.
"""

import time
from typing import Any, Final, assert_never

from appium.webdriver.webelement import WebElement
from selenium.common.exceptions import (
    InvalidSelectorException,
    NoSuchElementException,
    UnknownMethodException,
    WebDriverException,
)
from selenium.webdriver.remote.command import Command

from apex_executor.apps import candidates
from apex_executor.errors import ActRefused
from apex_executor.outcomes import Outcome
from apex_executor.phone import Phone
from apex_executor.targets import locator, point_now
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

_PRESS_MS: Final = 50
_KEYCODES: Final = {
    "enter": 66, "delete": 67, "tab": 61, "search": 84, "volume_up": 24, "volume_down": 25, "app_switch": 187,
}  # fmt: skip
_HOME: Final = 3
_FOREGROUND: Final = 4


_DONE: Final = Outcome(success=True)


def perform(phone: Phone, action: DeviceAction, target: Target | None, *, verify: bool) -> Outcome:
    """Do one action on the phone. Points are in pixels."""
    match action:
        case Tap(at=at):
            place, verify_ms = _verified(phone, target, at, verify=verify)
            _press(phone, place, hold_ms=_PRESS_MS)
            return _DONE._replace(verify_ms=verify_ms)
        case LongPress(at=at, duration_ms=duration_ms):
            place, verify_ms = _verified(phone, target, at, verify=verify)
            _press(phone, place, hold_ms=duration_ms)
            return _DONE._replace(verify_ms=verify_ms)
        case Swipe(start=start, end=end, duration_ms=duration_ms):
            _swipe(phone, start, end, duration_ms)
            return _DONE
        case InputText():
            return _input_text(phone, action, target, verify=verify)
        case LaunchApp(app=app):
            return _launch(phone, app)
        case TerminateApp(app=app):
            return _terminate(phone, app)
        case Scroll():
            return _scroll(phone, action)
        case Back():
            phone.driver.back()
            return _DONE
        case Home():
            _home(phone)
            return _DONE
        case PressKey(key=key):
            phone.driver.press_keycode(_KEYCODES[key])
            return _DONE
        case Wait(seconds=seconds):
            time.sleep(seconds)
            return _DONE
        case _:
            assert_never(action)


def _verified(phone: Phone, target: Target | None, at: Point, *, verify: bool) -> tuple[Point, int]:
    began = time.monotonic()
    place = point_now(phone, target, at) if verify else at
    return place, _since(began)


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1_000)


def _press(phone: Phone, at: Point, *, hold_ms: int) -> None:
    x, y = _units(phone, at)
    _pointer(
        phone,
        {"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": "viewport"},
        {"type": "pointerDown", "button": 0},
        {"type": "pause", "duration": hold_ms},
        {"type": "pointerUp", "button": 0},
    )


def _swipe(phone: Phone, start: Point, end: Point, duration_ms: int) -> None:
    (x1, y1), (x2, y2) = _units(phone, start), _units(phone, end)
    _pointer(
        phone,
        {"type": "pointerMove", "duration": 0, "x": x1, "y": y1, "origin": "viewport"},
        {"type": "pointerDown", "button": 0},
        {"type": "pointerMove", "duration": duration_ms, "x": x2, "y": y2, "origin": "viewport"},
        {"type": "pointerUp", "button": 0},
    )


def _pointer(phone: Phone, *moves: dict[str, Any]) -> None:
    """One finger in one request: the client's own gestures add a quarter of a second of movement."""
    finger = {"type": "pointer", "id": "finger", "parameters": {"pointerType": "touch"}, "actions": list(moves)}
    phone.driver.execute(Command.W3C_ACTIONS, {"actions": [finger]})


def _units(phone: Phone, point: Point) -> tuple[int, int]:
    """Pixels to the session's units."""
    return round(point.x / phone.scale), round(point.y / phone.scale)


def _input_text(phone: Phone, action: InputText, target: Target | None, *, verify: bool) -> Outcome:
    """Focus, clear, type by element, read back. The text is compared as the field shows it."""
    field, verify_ms = _field(phone, action, target, verify=verify)
    if field is None:
        return Outcome(False, "NO_FOCUS", "no field has the focus; tap the field first", verify_ms)
    field.clear()
    if action.text:
        field.send_keys(action.text)
    began = time.monotonic()
    shown = _shown(phone, field)
    read_back_ms = _since(began)
    outcome = _compared(action.text, shown, password=target is not None and target.role == "password")
    return outcome._replace(verify_ms=verify_ms, read_back_ms=read_back_ms)


def _field(phone: Phone, action: InputText, target: Target | None, *, verify: bool) -> tuple[WebElement | None, int]:
    """The field to type into, tapped if it could not be looked up; None when nothing has the focus."""
    began = time.monotonic()
    if action.at is not None:
        place = point_now(phone, target, action.at) if verify else action.at
        if (found := _field_at(phone, target, place)) is not None:
            return found, _since(began)
        verify_ms = _since(began)
        _press(phone, place, hold_ms=_PRESS_MS)
    else:
        verify_ms = 0
    try:
        return phone.driver.switch_to.active_element, verify_ms  # pyright: ignore[reportReturnType]
    except NoSuchElementException:
        return None, verify_ms


def _field_at(phone: Phone, target: Target | None, place: Point) -> WebElement | None:
    """The field itself, so that typing needs no focus; None when it cannot be looked up."""
    how = locator(target, platform=phone.config.platform) if target and not phone.web else None
    if how is None:
        return None
    try:
        return next((element for element in phone.find(*how) if phone.bounds_of(element).contains(place)), None)
    except (InvalidSelectorException, UnknownMethodException):
        return None


def _shown(phone: Phone, field: WebElement) -> str | None:
    """What the field shows now; None when it cannot be read. A shown hint is no text."""
    try:
        if phone.web:
            return field.get_property("value")  # pyright: ignore
        if field.get_attribute("showing-hint") == "true":  # pyright: ignore[reportUnknownMemberType]
            return ""
        return field.text
    except WebDriverException:
        return None


def _compared(typed: str, shown: str | None, *, password: bool) -> Outcome:
    if shown is None:
        return Outcome(success=True, code="UNREADABLE", message="typed, but the field could not be read back")
    if shown == typed and not password:
        return _DONE
    if password or (shown and set(shown) <= {"•", "*", "●"}):
        return _filled(typed, shown)
    return Outcome(
        success=False, code="TEXT_DIFFERS", message=f"the field shows {shown[:200]!r} instead of {typed[:200]!r}"
    )


def _filled(typed: str, shown: str) -> Outcome:
    if bool(typed) == bool(shown):
        return Outcome(success=True, message="typed; the field hides its text")
    return Outcome(success=False, code="TEXT_DIFFERS", message="the field is not filled as it was typed into")


def _launch(phone: Phone, app: str) -> Outcome:
    for package in candidates(app, phone.config.platform, phone.config.apps):
        if phone.driver.is_app_installed(package):
            phone.driver.activate_app(package)
            return _DONE
    raise ActRefused("APP_NOT_INSTALLED", f"no app {app!r} is installed; give its package, or tap its icon")


def _terminate(phone: Phone, app: str) -> Outcome:
    for package in candidates(app, phone.config.platform, phone.config.apps):
        if phone.driver.is_app_installed(package):
            phone.driver.terminate_app(package)
            if phone.driver.query_app_state(package) == _FOREGROUND:
                return Outcome(success=False, code="STILL_RUNNING", message=f"{app!r} is still in the foreground")
            return _DONE
    raise ActRefused("APP_NOT_INSTALLED", f"no app {app!r} is installed")


def _home(phone: Phone) -> None:
    if phone.config.platform == "ios":
        phone.driver.execute_script("mobile: pressButton", {"name": "home"})  # pyright: ignore
    else:
        phone.driver.press_keycode(_HOME)


def _scroll(phone: Phone, action: Scroll) -> Outcome:
    """Move the view of the content: the finger goes the other way, over six tenths of the screen."""
    size = phone.screen()
    at = action.at or Point(x=size.width // 2, y=size.height // 2)
    dx, dy = {"up": (0, 1), "down": (0, -1), "left": (1, 0), "right": (-1, 0)}[action.direction]
    reach_x, reach_y = round(dx * size.width * 0.3), round(dy * size.height * 0.3)
    start = Point(x=at.x - reach_x, y=at.y - reach_y)
    end = Point(x=at.x + reach_x, y=at.y + reach_y)
    _swipe(phone, start, end, 400)
    return _DONE
