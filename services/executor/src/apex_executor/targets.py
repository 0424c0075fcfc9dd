"""Finding the target again at the moment of acting, by the driver's own element look-up.

The Scene on which an act was decided may be seconds old. A target with an identity is looked up; moved a little, it
is followed; gone, or moved among others of its like, the act is refused. The page source is never read here: what is on
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
_FIELDS: Final = frozenset(("field", "password"))
_STILL_THERE: Final = 0.9
"""How much of its place must be covered by what is taken for the target among look-alikes."""
_Locator = tuple[str, str]


def locator(target: Target, *, platform: str, with_text: bool = True) -> _Locator | None:
    """How to look a target up; None when it has nothing to be recognised by.

    `with_text` False leaves out what may have changed since: an element that has nothing else is then None.
    """
    if platform == "ios":
        return _ios(target) if with_text else None
    known = (target.resource_id, target.description, *((target.text,) if with_text else ()))
    if not any(known):
        return None
    terms = [
        f".{method}({_quoted(value)})"
        for method, value in (
            ("resourceId", target.resource_id),
            ("className", target.class_name),
            ("description", target.description),
            # A field's text changes by being typed into. Elsewhere it tells the rows of a list apart.
            ("text", target.text if with_text and target.role not in _FIELDS else None),
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
    platform, seen = phone.config.platform, target.bounds
    how = locator(target, platform=platform)
    places = _places(phone, how) if how else None
    if places is None:
        return planned
    alone = len(places) == 1
    if not places and (looser := locator(target, platform=platform, with_text=False)) is not None:
        places = _places(phone, looser) or []
    if not places:
        raise ActRefused("STALE_SCENE", f"{target.role} {target.label!r} is no longer on the screen")
    now = max(places, key=lambda place: _overlap(place, seen))
    if not alone and _overlap(now, seen) < _STILL_THERE * seen.area:
        raise ActRefused("STALE_SCENE", f"{target.role} {target.label!r} has moved, and cannot be told from its like")
    if now.area == 0:
        return planned
    return _followed(planned, seen, now)


def _followed(planned: Point, seen: Bounds, now: Bounds) -> Point:
    moved = Point(x=planned.x + now.left - seen.left, y=planned.y + now.top - seen.top)
    return moved if now.contains(moved) else now.center


def _overlap(one: Bounds, other: Bounds) -> int:
    common = one.intersection(other)
    return common.area if common else 0


def _places(phone: Phone, how: _Locator) -> list[Bounds] | None:
    """Where the matching elements are, in pixels; None when this driver cannot look up that way."""
    try:
        return [phone.bounds_of(element) for element in phone.find(*how)[:_LOOKED_AT]]
    except (InvalidSelectorException, UnknownMethodException):
        return None
    except StaleElementReferenceException:
        return []
