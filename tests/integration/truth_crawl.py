"""Every screen of a simulated phone, found by tapping and scrolling through it as a curious user would.

Phones are copied before each touch, so that one screen can be touched at all its elements; nothing goes over HTTP.
A new app is walked through without being named here.
"""

import copy
import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from apex_lab.phone import Phone
from apex_lab.phone.acts import Act
from apex_lab.phone.geometry import Point, Rect
from apex_lab.phone.layout import Node
from apex_perception.perceive import View, perceive
from apex_schemas.geometry import Size
from apex_schemas.scene import Element, Scene

VARIANTS = 3
"""So many states of one screen are looked at: with other things enabled, covered or switched on."""
_MESSAGES = {"Android": "com.google.android.apps.messaging", "iOS": "com.apple.MobileSMS"}


class Visit(NamedTuple):
    """A screen: `still` is the phone as it was when `scene` was made of it; `touched` what came of a tap on each."""

    still: Phone
    scene: Scene
    touched: list[tuple[Element, Act]]

    @property
    def name(self) -> str:
        return f"{self.still.package}:{self.still.state()['page']}"


def look(phone: Phone) -> Scene:
    """What perception makes of the screen, told what it is told in service."""
    (width, height), ratio = phone.size, phone.ratio
    known = View(
        platform="ios" if phone.platform == "iOS" else "android",
        window=Size(width=width, height=height),
        scale=float(ratio),
        picture=Size(width=width * ratio, height=height * ratio),
    )
    return perceive(phone.source(all_windows=True).encode(), known)


def touch(still: Phone, element: Element) -> tuple[Phone, Act]:
    """A copy of the phone after a tap on the element's tap point, converted as the executor does; and the act."""
    assert element.tap_point is not None
    phone = fork(still)
    ratio = phone.ratio
    phone.tap(Point(round(element.tap_point.x / ratio), round(element.tap_point.y / ratio)), "crawl")
    return phone, phone.acts.since()[-1]


def fork(phone: Phone) -> Phone:
    """A copy that nothing done to it tells the phone of."""
    phone.changed()
    phone.acts.clear()
    return copy.deepcopy(phone)


def crawl(phone: Phone) -> Iterator[Visit]:
    """All screens that can be reached from the one shown, each a few times in different states."""
    floating = fork(phone)
    floating.patch({_MESSAGES[phone.platform]: {"bubble": True}})
    floating.launch(_MESSAGES[phone.platform])
    seen: dict[tuple[object, ...], set[tuple[str, ...]]] = {}
    ahead = deque([phone, floating])
    while ahead:
        still = ahead.popleft()
        scene = look(fork(still))
        shape = tuple(sorted(f"{e.role} {e.enabled} {e.checked} {e.obstacle}" for e in scene.elements if e.interactive))
        windows = still.screen().windows
        variants = seen.setdefault((still.package, still.state()["page"], *(window.kind for window in windows)), set())
        if shape in variants or len(variants) == VARIANTS:
            continue
        variants.add(shape)
        able = [element for element in scene.elements if element.interactive and element.tap_point is not None]
        touched = [(element, *touch(still, element)) for element in able]
        yield Visit(still, scene, [(element, act) for element, _, act in touched])
        ahead += _beyond(still, scene, [after for _, after, _ in touched])


def _beyond(still: Phone, scene: Scene, touched: list[Phone]) -> Iterator[Phone]:
    for phone in touched:
        yield phone
        if phone.keyboard_shown:
            written = fork(phone)
            written.write("ada", "crawl")
            written.hide_keyboard("crawl")
            yield written
    if any(element.scrollable for element in scene.elements):
        width, height = still.size
        scrolled = fork(still)
        for _ in range(3):
            scrolled.swipe(Point(width // 2, height * 3 // 4), Point(width // 2, height // 4), "crawl")
        yield scrolled


def acting(phone: Phone) -> list[Node]:
    """The widgets that do something when touched, in windows that a page source shows, inside opaque surfaces not."""
    ios = phone.platform == "iOS"
    found: list[Node] = []
    screen = phone.screen()
    for window in screen.windows if ios else screen.told:
        if window.kind == "keyboard" or (ios and (window.kind == "bar" or window.package != phone.package)):
            continue
        ahead = [window.root]
        while ahead:
            node = ahead.pop()
            if not node.hidden:
                ahead += () if node.widget.opaque else node.children
                if node.widget.clickable or node.widget.on_long is not None:
                    found.append(node)
    return found


def opaque_at(phone: Phone, point: Point) -> bool:
    """Whether a point lies in a surface that the page source says nothing of."""
    nodes = (node for window in phone.screen().windows for node in window.root.walk())
    return any(node.widget.opaque and node.rect.holds(point) for node in nodes)


def box(element: Element) -> Rect | None:
    bounds = element.bounds
    return bounds and Rect(bounds.left, bounds.top, bounds.right, bounds.bottom)


def hit_box(act: Act, ratio: int) -> Rect | None:
    """Where the widget lies that an act hit, in pixels."""
    if act.hit is None:
        return None
    left, top, right, bottom = (int(side) for side in re.findall(r"-?\d+", act.hit.bounds))
    return Rect(left, top, right, bottom).times(ratio)
