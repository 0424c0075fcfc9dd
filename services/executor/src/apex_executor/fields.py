"""Typing: find the field, clear it, type by element, read back what it shows.

What a field shows in place of a text (Android's hint, iOS's placeholder) is no text. A field that hides its text is
told as filled or empty and never repeated.
"""

import time
from typing import Final, cast

from appium.webdriver.webelement import WebElement
from selenium.common.exceptions import (
    InvalidSelectorException,
    NoSuchElementException,
    UnknownMethodException,
    WebDriverException,
)

from apex_executor.locators import locator
from apex_executor.outcomes import Outcome
from apex_executor.phone import Phone
from apex_executor.pointer import press
from apex_executor.targets import point_now
from apex_schemas.actions import InputText
from apex_schemas.geometry import Point
from apex_schemas.steps import Target

_NO_FIELDS: Final = frozenset(("body", "html"))
"""What a browser calls active when nothing is."""
_HIDING: Final = frozenset("•*●")
_DONE: Final = Outcome(success=True)


def input_text(phone: Phone, action: InputText, target: Target | None, *, verify: bool) -> Outcome:
    """Replace what a field holds. The text is compared as the field shows it."""
    field, verify_ms = _field(phone, action, target, verify=verify)
    if field is None:
        return Outcome(False, "NO_FOCUS", "no field has the focus; tap the field first", verify_ms)
    field.clear()
    if action.text:
        field.send_keys(action.text)
    began = time.monotonic()
    shown = _shown(phone, field)
    outcome = compared(action.text, shown, password=target is not None and target.role == "password")
    return outcome._replace(verify_ms=verify_ms, read_back_ms=_since(began))


def _field(phone: Phone, action: InputText, target: Target | None, *, verify: bool) -> tuple[WebElement | None, int]:
    """The field to type into, tapped if it could not be looked up, and the milliseconds of the look-up; None when
    nothing has the focus."""
    began = time.monotonic()
    verify_ms = 0
    if action.at is not None:
        place = point_now(phone, target, action.at) if verify else action.at
        found = _field_at(phone, target, place)
        verify_ms = _since(began)
        if found is not None:
            return found, verify_ms
        press(phone, place)
    try:
        active = cast("WebElement", phone.driver.switch_to.active_element)
    except NoSuchElementException:
        return None, verify_ms
    return (None if phone.web and active.tag_name in _NO_FIELDS else active), verify_ms


def _field_at(phone: Phone, target: Target | None, place: Point) -> WebElement | None:
    """The field itself, so that typing needs no focus; None when it cannot be looked up."""
    how = locator(target, platform=phone.dialect) if target and not phone.web else None
    if how is None:
        return None
    try:
        return next((element for element in phone.find(*how) if phone.bounds_of(element).contains(place)), None)
    except (InvalidSelectorException, UnknownMethodException):
        return None


def _shown(phone: Phone, field: WebElement) -> str | None:
    """What the field shows now; None when it cannot be read."""
    try:
        match phone.dialect:
            case "web":
                return field.get_property("value")  # pyright: ignore
            case "android":
                hinting = field.get_attribute("showing-hint") == "true"  # pyright: ignore[reportUnknownMemberType]
                return "" if hinting else field.text
            case "ios":
                value = field.get_attribute("value")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
                if not value or value == field.get_attribute("placeholderValue"):  # pyright: ignore[reportUnknownMemberType]
                    return ""
                return str(value)  # pyright: ignore[reportUnknownArgumentType]
    except WebDriverException:
        return None


def compared(typed: str, shown: str | None, *, password: bool) -> Outcome:
    """What became of typed text."""
    if shown is None:
        return Outcome(success=True, code="UNREADABLE", message="typed, but the field could not be read back")
    if shown == typed and not password:
        return _DONE
    if password or (shown and set(shown) <= _HIDING):
        if bool(typed) == bool(shown):
            return Outcome(success=True, message="typed; the field hides its text")
        return Outcome(success=False, code="TEXT_DIFFERS", message="the field is not filled as it was typed into")
    return Outcome(
        success=False, code="TEXT_DIFFERS", message=f"the field shows {shown[:200]!r} instead of {typed[:200]!r}"
    )


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1_000)
