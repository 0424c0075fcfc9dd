"""Whether something lies over the point that an act is for: what came up between the look and the act.

By look-ups of the driver alone, each of which is one request. Android: a target that `UiSelector` finds is in the
active window, and windows above that one may cover it; one that it does not find may be under the active window, which
then is a dialog, a menu or a sheet. iOS: XCUITest's own hit test, then alerts and the keyboard. A page of a browser is
asked in `targets`.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webelement import WebElement
from selenium.common.exceptions import InvalidSelectorException, UnknownMethodException

from apex_executor.locators import either, quoted
from apex_executor.phone import Phone
from apex_executor.windows import BARS, Window, active_of, listed, uppermost
from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.steps import Target

_DIALOGS_OF: Final = ("com.android.permissioncontroller", "com.google.android.permissioncontroller", "android")
_SHEETS: Final = ("design_bottom_sheet", "touch_outside", "parentPanel", "alertTitle")
"""Ids of Material's and AppCompat's dialogs and sheets, whose window may be as large as the screen."""
_OF_DIALOGS: Final = ("android:id/button", "android:id/alertTitle", "android:id/message", "android:id/parentPanel")
_WHOLE: Final = (0.9, 0.75)
"""Of the screen's width and height: what a page's window covers at least."""
_ALERTS: Final = "type == 'XCUIElementTypeAlert' OR type == 'XCUIElementTypeSheet'"
_KEYBOARDS: Final = "type == 'XCUIElementTypeKeyboard'"


class Elsewhere(NamedTuple):
    """A target that is not in the active window: what covers it; or the window above the active one that a touch at
    its place reaches, in which it may be. Neither: it is gone."""

    over: str | None = None
    above: str | None = None


def covered(
    phone: Phone, target: Target, at: Point, elements: Sequence[WebElement] = (), *, by_words: bool = False
) -> str | None:
    """What lies over the point, in words; None when nothing is known to. `elements` are the target where it was found,
    or parts of it; on Android it was found in the active window, or cannot be looked for. `by_words`: it was taken for
    the target for what it says alone, which another app may say as well."""
    try:
        match phone.dialect:
            case "android":
                return _by_window(listed(phone), target, at, by_words=by_words)
            case "ios":
                return _by_hit(phone, target, at, elements)
            case "web":
                return None
    except (InvalidSelectorException, UnknownMethodException):
        return None  # this driver cannot tell


def elsewhere(phone: Phone, target: Target, at: Point) -> Elsewhere:
    """What has become of a target that the driver does not find."""
    try:
        match phone.dialect:
            case "android":
                return _missing(phone, target, at)
            case "ios":
                return Elsewhere(over=_by_alert(phone, target))
            case "web":
                return Elsewhere()
    except (InvalidSelectorException, UnknownMethodException):
        return Elsewhere()


def _by_window(windows: Sequence[Window], target: Target, at: Point, *, by_words: bool) -> str | None:
    app = _package(target)
    told = any(window.active for window in windows)
    above: str | None = None
    for window in windows:
        if by_words and window.active and app and window.package not in ("", app):
            return _named(window, app)
        if window.active or (not told and window.package == app):
            return above
        if window.package in BARS or not window.bounds.contains(at):
            continue
        if app is None and not told:  # of the apps' own windows it is not known which one is meant
            return _named(window, app) if window.package in _DIALOGS_OF else None
        above = above or _named(window, app)
    return None  # the app is not on the screen at all


def _missing(phone: Phone, target: Target, at: Point) -> Elsewhere:
    app = _package(target)
    windows = listed(phone)
    active = active_of(phone, windows)
    if active is None:
        return Elsewhere()
    top = uppermost(windows, at)
    if top is not None and active in windows and windows.index(top) < windows.index(active):
        return Elsewhere(above=_named(top, app))
    own = active.package == app
    if active.package in _DIALOGS_OF:
        return Elsewhere(over=None if own else _named(active, app))
    if not _whole(active.bounds, phone.screen()):
        in_a_dialog = own and (target.resource_id or "").startswith(_OF_DIALOGS)
        return Elsewhere(over=None if in_a_dialog else f"a dialog of {active.package or 'the app'}")
    return Elsewhere(over=_by_sheet(phone, active, target) if own else None)


def _whole(window: Bounds, screen: Size) -> bool:
    width, height = window.right - window.left, window.bottom - window.top
    return width >= _WHOLE[0] * screen.width and height >= _WHOLE[1] * screen.height


def _by_sheet(phone: Phone, active: Window, target: Target) -> str | None:
    ids = (*(f"{active.package}:id/{name}" for name in _SHEETS), "android:id/parentPanel")
    if target.resource_id in ids:
        return None
    sheets = phone.find(*either(f".resourceId({quoted(each)})" for each in ids))
    return f"a dialog of {active.package}" if sheets else None


def _package(target: Target) -> str | None:
    """The app that a resource id belongs to; the framework's own ids tell nothing, then it is that of the Scene."""
    package, found, _ = (target.resource_id or "").partition(":id/")
    return package if found and package != "android" else target.app


def _named(window: Window, app: str | None) -> str:
    if window.keyboard:
        return "the keyboard"
    if window.package and window.package == app:
        return f"another window of {app}"
    kind = "dialog" if window.package in _DIALOGS_OF else "window"
    return f"a {kind} of {window.package or 'the system'}"


def _by_hit(phone: Phone, target: Target, at: Point, elements: Sequence[WebElement]) -> str | None:
    hit: bool | None = None
    for element in elements:
        hit = _hittable(element)
        if hit is not False:
            break  # one part that can be hit is enough, and a driver that cannot tell will not tell of the next one
    if hit is True:
        return None
    if (alert := _by_alert(phone, target)) is not None or hit is None:
        return alert
    keyboards = (phone.bounds_of(keyboard) for keyboard in phone.find(AppiumBy.IOS_PREDICATE, _KEYBOARDS))
    return "the keyboard" if any(bounds.contains(at) for bounds in keyboards) else "something"


def _hittable(element: WebElement) -> bool | None:
    """What XCUITest's hit test says; None where the driver is older than the attribute."""
    try:
        told = element.get_attribute("hittable")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    except InvalidSelectorException:
        return None
    return {"true": True, "false": False}.get(str(told).lower())  # pyright: ignore[reportUnknownArgumentType]


def _by_alert(phone: Phone, target: Target) -> str | None:
    if target.bounds is None:
        return None
    for alert in phone.find(AppiumBy.IOS_PREDICATE, _ALERTS):
        inside = phone.bounds_of(alert).intersection(target.bounds)
        if inside is None or inside.area < target.bounds.area:
            return "an alert"
    return None
