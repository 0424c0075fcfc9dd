"""The windows on an Android screen, as its driver tells of them.

UiAutomator2 lists them from version 8 on; of older ones the active window alone is known, by its root. What lies under
a modal window (a dialog, a menu, a sheet) is in no list: Android does not report it.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from appium.webdriver.common.appiumby import AppiumBy
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException

from apex_executor.phone import Phone
from apex_schemas.geometry import Bounds, Point

BARS: Final = ("com.android.systemui",)
_KEYBOARD: Final = 2
"""AccessibilityWindowInfo.TYPE_INPUT_METHOD."""
_ROOT: Final = "new UiSelector().instance(0)"


class Window(NamedTuple):
    """`active` is where `UiSelector` looks; None where the driver does not say."""

    package: str
    bounds: Bounds
    active: bool | None = None
    keyboard: bool = False


def listed(phone: Phone) -> tuple[Window, ...]:
    """The windows of the display that is in use, uppermost first; none where the driver does not list them."""
    if not phone.lists_windows:
        return ()
    try:
        told = cast("list[dict[str, Any]]", phone.script("mobile: listWindows", skipScreenshots=True))
    except WebDriverException:
        phone.lists_windows = False
        return ()
    if all(isinstance(each.get("layer"), int) for each in told):
        told = sorted(told, key=lambda each: -each["layer"])
    display = next((each.get("displayId") for each in told if each.get("isActive")), None)
    return tuple(_window(each) for each in told if each.get("rect") and each.get("displayId") in (display, None))


def _window(told: dict[str, Any]) -> Window:
    return Window(
        package=str(told.get("packageName") or ""),
        bounds=Bounds(**{side: told["rect"][side] for side in ("left", "top", "right", "bottom")}),
        active=told.get("isActive"),
        keyboard=told.get("type") == _KEYBOARD,
    )


def active_of(phone: Phone, windows: Sequence[Window]) -> Window | None:
    """The active window; where no list tells, by the root that `UiSelector` begins with."""
    if (told := next((window for window in windows if window.active), None)) is not None:
        return told
    try:
        for root in phone.find(AppiumBy.ANDROID_UIAUTOMATOR, _ROOT):
            package = root.get_attribute("package")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            return Window(package=str(package or ""), bounds=phone.bounds_of(root), active=True)  # pyright: ignore[reportUnknownArgumentType]
    except StaleElementReferenceException:
        pass  # it went away meanwhile: then it is not known
    return None


def uppermost(windows: Sequence[Window], at: Point) -> Window | None:
    """The window that a touch at this point reaches, the system's bars aside."""
    return next((each for each in windows if each.package not in BARS and each.bounds.contains(at)), None)
