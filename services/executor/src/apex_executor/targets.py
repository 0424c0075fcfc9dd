"""Finding the target again at the moment of acting, by the driver's own element look-up.

The Scene on which an act was decided may be seconds old. A target with an identity is looked up; moved a little, it
is followed; gone, or moved among others of its like, the act is refused; and so where it lies off the screen now, or
under something. The page source is never read here: what is on the screen is perception's to say.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webelement import WebElement
from selenium.common.exceptions import (
    InvalidSelectorException,
    StaleElementReferenceException,
    UnknownMethodException,
)

from apex_executor.cover import covered, elsewhere
from apex_executor.errors import ActRefused
from apex_executor.locators import Locator, in_all_windows, locator, quoted
from apex_executor.phone import Phone
from apex_schemas.geometry import Bounds, Point
from apex_schemas.steps import Target

_LOOKED_AT: Final = 20
_WORDS: Final = 40
_NAMED_BESIDE: Final = frozenset((
    "field", "password", "select", "slider", "progress", "switch", "checkbox", "radio",
))  # fmt: skip
"""Their words may stand beside them, so that nothing follows from where these are."""
_STILL_THERE: Final = 0.9
"""How much of its place must be covered by what is taken for the target among look-alikes."""

_ON_THE_PAGE: Final = """return (function ({id, x, y, left, top}) {
  const all = document.querySelectorAll('#' + CSS.escape(id));
  if (all.length !== 1) {
    const inner = document.querySelector('iframe') || [...document.querySelectorAll('*')].some(e => e.shadowRoot);
    return all.length || inner ? null : {gone: true};
  }
  const rect = all[0].getBoundingClientRect();
  const at = {x: x + rect.left - left, y: y + rect.top - top};
  const hit = document.elementFromPoint(at.x, at.y);
  if (!hit) return {off: true};
  const labels = all[0].labels ? [...all[0].labels] : [];
  const own = all[0].contains(hit) || hit.contains(all[0]) || labels.some(label => label.contains(hit));
  return own ? at : {over: hit.id || hit.localName};
})(arguments[0])"""


class _Place(NamedTuple):
    """An element that was found, and where it is, in pixels."""

    element: WebElement
    bounds: Bounds


class _At(NamedTuple):
    """Where to act. `checked`: that nothing lies over it is known already. `by_words`: see `cover`."""

    point: Point
    elements: Sequence[WebElement] = ()
    by_words: bool = False
    checked: bool = False


def point_now(phone: Phone, target: Target | None, planned: Point) -> Point:
    """Where to act, in pixels: the planned point, or its like on the target where that has moved to.

    Raises ActRefused: STALE_SCENE when the target is gone or cannot be told from others, OFF_SCREEN when it has moved
    out of sight, OCCLUDED when something lies over it.
    """
    if target is None or target.bounds is None:
        return planned
    if phone.web:
        return _on_the_page(phone, target, target.bounds, planned)
    if target.context == "web":  # a page inside an app: its elements are not the driver's
        return planned
    at = _followed(phone, target, target.bounds, planned)
    if at.checked:
        return at.point
    if (over := covered(phone, target, at.point, at.elements, by_words=at.by_words)) is not None:
        raise _occluded(target, over)
    return at.point


def _on_the_page(phone: Phone, target: Target, seen: Bounds, planned: Point) -> Point:
    """In a browser the page itself tells where its element is, and what lies there."""
    if not target.resource_id:
        return planned
    scale = phone.scale
    told = cast(
        "dict[str, Any] | None",
        phone.script(
            _ON_THE_PAGE, id=target.resource_id, x=planned.x / scale, y=planned.y / scale,
            left=seen.left / scale, top=seen.top / scale,
        ),
    )  # fmt: skip
    match told:
        case {"gone": True}:
            raise _gone(target)
        case {"off": True}:
            raise _off_screen(target)
        case {"over": over}:
            raise _occluded(target, str(over))
        case {"x": x, "y": y}:
            return Point(x=round(x * scale), y=round(y * scale))
        case _:
            return planned


def _followed(phone: Phone, target: Target, seen: Bounds, planned: Point) -> _At:
    how = locator(target, platform=phone.dialect)
    if how is None:
        return _followed_by_words(phone, target, seen, planned)
    places = _places(phone, how)
    if places is None:
        return _At(planned)
    alone = len(places) == 1
    if not places and (looser := locator(target, platform=phone.dialect, with_text=False)) is not None:
        places = _places(phone, looser) or []
    if not places:
        return _elsewhere(phone, target, seen, planned)
    return _nearest(phone, target, seen, planned, places, alone=alone)


def _nearest(
    phone: Phone, target: Target, seen: Bounds, planned: Point, places: Sequence[_Place], *, alone: bool
) -> _At:
    place = max(places, key=lambda each: _overlap(each.bounds, seen))
    now = place.bounds
    if not alone and _overlap(now, seen) < _STILL_THERE * seen.area:
        raise _unclear(target)
    if now.area == 0 or now == seen:
        return _At(planned, (place.element,))
    moved = Point(x=planned.x + now.left - seen.left, y=planned.y + now.top - seen.top)
    return _At(_on_screen(phone, target, moved if now.contains(moved) else now.center), (place.element,))


def _followed_by_words(phone: Phone, target: Target, seen: Bounds, planned: Point) -> _At:
    """A row without a name of its own has the words of what is in it: where these are, it is."""
    words = target.label.partition(", ")[0][:_WORDS].strip()
    if not words or target.role in _NAMED_BESIDE:
        return _At(planned)
    found: list[_Place] = []
    for part in dict.fromkeys(
        (words, words.split()[0])
    ):  # what was written in several lines begins with its first word
        for how in _saying(part, platform=phone.dialect):
            places = _places(phone, how)
            if places is None:
                return _At(planned)
            found += [place for place in places if place.bounds.area]
        there = [each.element for each in found if _overlap(each.bounds, seen) >= _STILL_THERE * each.bounds.area]
        if there:
            return _At(planned, there, by_words=True)
        if found:
            break
    if not found:
        return _elsewhere(phone, target, seen, planned)
    if len({place.bounds.center for place in found}) > 1:
        raise _unclear(target)
    at = _on_screen(phone, target, found[0].bounds.center)
    return _At(at, [each.element for each in found], by_words=True)


def _elsewhere(phone: Phone, target: Target, seen: Bounds, planned: Point) -> _At:
    """The driver does not find the target where it looks: it may be in a window above, or under one, or gone."""
    missing = elsewhere(phone, target, planned)
    if missing.over is not None:
        raise _occluded(target, missing.over)
    if missing.above is None:
        raise _gone(target)
    ways = in_all_windows(target)
    if ways is None:
        raise _occluded(target, missing.above)  # in that window it cannot be looked up
    here, everywhere = ways
    places = [] if _places(phone, here) else _places(phone, everywhere)
    if not places:
        raise _gone(target)
    return _nearest(phone, target, seen, planned, places, alone=len(places) == 1)._replace(checked=True)


def _saying(words: str, *, platform: str) -> tuple[Locator, ...]:
    text = quoted(words)
    if platform == "ios":
        return ((AppiumBy.IOS_PREDICATE, f"label BEGINSWITH {text} OR name BEGINSWITH {text}"),)
    return tuple(
        (AppiumBy.ANDROID_UIAUTOMATOR, f"new UiSelector().{attribute}StartsWith({text})")
        for attribute in ("text", "description")
    )


def _on_screen(phone: Phone, target: Target, at: Point) -> Point:
    size = phone.screen()
    if not Bounds(left=0, top=0, right=size.width, bottom=size.height).contains(at):
        raise _off_screen(target)
    return at


def _named(target: Target) -> str:
    return f"{target.role} {target.label!r}"


def _gone(target: Target) -> ActRefused:
    return ActRefused("STALE_SCENE", f"{_named(target)} is no longer on the screen")


def _unclear(target: Target) -> ActRefused:
    return ActRefused("STALE_SCENE", f"{_named(target)} has moved, and cannot be told from its like")


def _off_screen(target: Target) -> ActRefused:
    return ActRefused("OFF_SCREEN", f"{_named(target)} has moved out of sight; scroll to it")


def _occluded(target: Target, over: str) -> ActRefused:
    return ActRefused("OCCLUDED", f"{_named(target)} lies under {over} now; deal with that first")


def _overlap(one: Bounds, other: Bounds) -> int:
    common = one.intersection(other)
    return common.area if common else 0


def _places(phone: Phone, how: Locator) -> list[_Place] | None:
    """The matching elements and where they are; None when this driver cannot look up that way."""
    try:
        return [_Place(element, phone.bounds_of(element)) for element in phone.find(*how)[:_LOOKED_AT]]
    except (InvalidSelectorException, UnknownMethodException):
        return None
    except StaleElementReferenceException:
        return []
