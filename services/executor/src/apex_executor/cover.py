"""Whether something lies over the point that an act is for: what came up between the look and the act.

By look-ups of the driver alone: windows above the app's own (UiAutomator2 tells them from version 8 on), dialogs of the
system, alerts of iOS. A page of a browser is asked in `targets`. Each look-up is one request.
"""

from typing import Any, Final, cast

from appium.webdriver.common.appiumby import AppiumBy
from selenium.common.exceptions import InvalidSelectorException, UnknownMethodException, WebDriverException

from apex_executor.phone import Phone
from apex_schemas.geometry import Bounds, Point
from apex_schemas.steps import Target

_DIALOGS_OF: Final = ("com.android.permissioncontroller", "com.google.android.permissioncontroller", "android")
_BARS: Final = ("com.android.systemui",)
_ALERTS: Final = "type == 'XCUIElementTypeAlert' OR type == 'XCUIElementTypeSheet'"


def covered(phone: Phone, target: Target, at: Point) -> str | None:
    """What lies over the point, in words; None when nothing is known to."""
    try:
        match phone.dialect:
            case "android":
                return _by_window(phone, target, at) if phone.lists_windows else _by_dialog(phone, target)
            case "ios":
                return _by_alert(phone, target)
            case "web":
                return None
    except (InvalidSelectorException, UnknownMethodException):
        return None  # this driver cannot tell


def _by_window(phone: Phone, target: Target, at: Point) -> str | None:
    """Windows come uppermost first. What lies over something within the app's own window is not told."""
    try:
        told = phone.script("mobile: listWindows", skipScreenshots=True)
    except WebDriverException:
        phone.lists_windows = False
        return _by_dialog(phone, target)
    app = _package(target)
    above: str | None = None
    for window in cast("list[dict[str, Any]]", told):
        package = str(window.get("packageName") or "")
        if package == app:
            return above
        rect = cast("dict[str, int]", window.get("rect") or {})
        if package in _BARS or not rect or not Bounds(**rect).contains(at):
            continue
        if app is None:  # of the apps' own windows it is not known which one is meant
            return f"a dialog of {package}" if package in _DIALOGS_OF else None
        above = above or f"a window of {package or 'the system'}"
    return None  # the app is not on the screen at all


def _package(target: Target) -> str | None:
    """The app that a resource id belongs to; the framework's own ids tell nothing, then it is that of the Scene."""
    package, found, _ = (target.resource_id or "").partition(":id/")
    return package if found and package != "android" else target.app


def _by_dialog(phone: Phone, target: Target) -> str | None:
    if (target.resource_id or "").partition(":id/")[0] in _DIALOGS_OF:
        return None
    for package in _DIALOGS_OF:
        if package == target.app:
            continue  # it was seen in that dialog
        if phone.find(AppiumBy.ANDROID_UIAUTOMATOR, f'new UiSelector().packageName("{package}")'):
            return f"a dialog of {package}"
    return None


def _by_alert(phone: Phone, target: Target) -> str | None:
    if target.bounds is None:
        return None
    for alert in phone.find(AppiumBy.IOS_PREDICATE, _ALERTS):
        inside = phone.bounds_of(alert).intersection(target.bounds)
        if inside is None or inside.area < target.bounds.area:
            return "an alert"
    return None
