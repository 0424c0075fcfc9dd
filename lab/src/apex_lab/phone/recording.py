"""A page source as a screen: what of it can be read, how large it is, what its elements are called."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from apex_lab.phone.acts import Hit
from apex_lab.phone.device import Platform
from apex_lab.phone.geometry import Rect
from apex_lab.phone.views import Path, View
from apex_lab.phone.xmltree import Element, read

_BOUNDS = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")
EDITABLE = ("EditText", "TextField", "SecureTextField", "SearchField")
FALLBACK = {"Android": (1080, 2400), "iOS": (390, 844)}


@dataclass(kw_only=True)
class Recording:
    """One page source: `data` as recorded, `raw` as text, `tree` as far as it can be read.

    `changed` after something was typed into the tree.
    """

    name: str
    data: bytes
    raw: str
    tree: Element | None
    platform: Platform
    size: tuple[int, int]
    changed: bool = False


def record(name: str, raw: bytes) -> Recording:
    """A page source as a screen; never raises: what cannot be read is served as it is."""
    tree = read(raw)
    text = raw.decode("utf-8", "replace")
    platform: Platform = "iOS" if "XCUIElementType" in text or "<AppiumAUT" in text else "Android"
    boxes = [box for each in elements_of(tree) if (box := bounds(each)) is not None]
    declared = _number(tree, "width"), _number(tree, "height")
    largest = (max((b.right for b in boxes), default=0), max((b.bottom for b in boxes), default=0))
    if declared[0] and declared[1]:
        size = declared
    elif platform == "iOS" and boxes:
        size = (boxes[0].width, boxes[0].height)
    else:
        size = largest
    return Recording(
        name=name, data=raw, raw=text, tree=tree, platform=platform, size=size if min(size) > 0 else FALLBACK[platform]
    )


def bounds(element: Element) -> Rect | None:
    """The rectangle of an element of either platform; None when it says none."""
    if (found := _BOUNDS.search(element.get("bounds", ""))) is not None:
        left, top, right, bottom = (int(part) for part in found.groups())
        return Rect(left, top, right, bottom)
    x, y, wide, tall = (_number(element, name) for name in ("x", "y", "width", "height"))
    return Rect(x, y, x + wide, y + tall) if element.get("x", "") and element.get("width", "") else None


def elements_of(tree: Element | None) -> Iterable[Element]:
    """The elements in document order, comments left out."""
    return () if tree is None else (each for each in tree.iter() if isinstance(each.tag, str))


def _number(element: Element | None, name: str) -> int:
    value = element.get(name, "") if element is not None else ""
    return round(float(value)) if re.fullmatch(r"-?\d+(\.\d+)?", value) else 0


def collect(element: Element, path: Path, views: dict[Element, View]) -> None:
    """Adds the element and all below it."""
    views[element] = View(element=element, rect=bounds(element) or Rect(0, 0, 0, 0), path=path)
    for number, child in enumerate(each for each in element if isinstance(each.tag, str)):
        collect(child, (*path, number), views)


def label_of(element: Element) -> str:
    """What is written on it; dots for a password."""
    text = (
        element.get("text", "")
        or element.get("label", "")
        or element.get("value", "")
        or element.get("content-desc", "")
    )
    return "•" * len(text) if element.get("password", "") == "true" or "Secure" in str(element.tag) else text


def hit_of(view: View) -> Hit:
    """An element for the act log."""
    element = view.element
    return Hit(
        id=element.get("resource-id", "") or element.get("name", ""),
        cls=element.get("class", "") or view.tag,
        text=label_of(element),
        desc=element.get("content-desc", ""),
        bounds=view.rect.bounds(),
        package=element.get("package", ""),
        acted=element.get("clickable", "") == "true" or element.get("accessible", "") == "true",
    )
