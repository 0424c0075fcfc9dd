"""Finding the target again at the moment of acting, by the driver's own element look-up.

The Scene on which an act was decided may be seconds old. A target with an identity is looked up; moved a little, it
is followed; gone, or moved out of all likeness, the act is refused. The page source is never read here: what is on
the screen is perception's to say.
"""

from typing import Final

from appium.webdriver.common.appiumby import AppiumBy
from selenium.common.exceptions import (
    InvalidSelectorException,
    StaleElementReferenceException,
    UnknownMethodException,
)

from apex_executor.errors import ActRefused
from apex_executor.phone import Phone
from apex_schemas.geometry import Bounds, Point
from apex_schemas.steps import Target

_LOOKED_AT: Final = 20
_Locator = tuple[str, str]


def locator(target: Target, *, platform: str) -> _Locator | None:
    """How to look a target up; None when it has nothing to be recognised by."""
    if platform == "ios":
        return _ios(target)
    if target.resource_id is None and target.description is None and target.text is None:
        return None
    terms = [
        f".{method}({_quoted(value)})"
        for method, value in (
            ("resourceId", target.resource_id),
            ("className", target.class_name),
            ("description", target.description),
            # A field's text changes by being typed into: it is no identity where there is a better one.
            ("text", None if target.resource_id or target.role == "field" else target.text),
        )
        if value
    ]
    return (AppiumBy.ANDROID_UIAUTOMATOR, "new UiSelector()" + "".join(terms)) if terms else None


def _ios(target: Target) -> _Locator | None:
    name = target.resource_id or target.description or target.text
    if not name:
        return None
    kind = f"type == {_quoted(target.class_name)} AND " if target.class_name else ""
    return AppiumBy.IOS_PREDICATE, f"{kind}name == {_quoted(name)}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def point_now(phone: Phone, target: Target | None, planned: Point) -> Point:
    """Where to act, in pixels: the planned point, or its like on the target where that has moved to.

    Raises ActRefused(STALE_SCENE) when the target is gone or cannot be told from others.
    """
    if target is None or target.bounds is None or phone.web:
        return planned
    how = locator(target, platform=phone.config.platform)
    if how is None:
        return planned
    places = _places(phone, how)
    if places is None:
        return planned
    if not places:
        raise ActRefused("STALE_SCENE", f"{target.role} {target.label!r} is no longer on the screen")
    now = max(places, key=lambda place: _overlap(place, target.bounds))
    if _overlap(now, target.bounds) == 0 and len(places) > 1:
        raise ActRefused("STALE_SCENE", f"{target.role} {target.label!r} has moved and has look-alikes")
    if now.area == 0:
        return planned
    return _followed(planned, target.bounds, now)


def _followed(planned: Point, seen: Bounds, now: Bounds) -> Point:
    moved = Point(x=planned.x + now.left - seen.left, y=planned.y + now.top - seen.top)
    return moved if now.contains(moved) else now.center


def _overlap(one: Bounds, other: Bounds | None) -> int:
    common = one.intersection(other) if other else None
    return common.area if common else 0


def _places(phone: Phone, how: _Locator) -> list[Bounds] | None:
    """Where the matching elements are, in pixels; None when this driver cannot look up that way."""
    try:
        return [phone.bounds_of(element) for element in phone.find(*how)[:_LOOKED_AT]]
    except (InvalidSelectorException, UnknownMethodException):
        return None
    except StaleElementReferenceException:
        return []
