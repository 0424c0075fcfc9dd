"""Perception against the simulator's truth: on every screen that can be reached, upright and on its side, a tap on an
element's tap point hits that element, and nothing that can be touched is missing.

The screens are found by walking: each way to a screen is a list of points touched on a phone that is as new.
"""

from typing import Any, NamedTuple

import pytest

from apex_lab.phone import Phone
from apex_lab.phone.geometry import Point as Place
from apex_perception.perceive import View, perceive
from apex_planner.scene_text import write_scene
from apex_schemas.geometry import Bounds, Size
from apex_schemas.scene import Element, Scene

pytestmark = pytest.mark.slow

MOST_SCREENS, MOST_STEPS = 60, 4
_Key = tuple[object, ...]


class Way(NamedTuple):
    """A started app (none: the launcher) and the points touched since."""

    app: str | None
    points: tuple[Place, ...] = ()


def phone_at(way: Way, *, landscape: bool) -> Phone:
    phone = Phone("sim-1", permission_popup=False)
    if landscape:
        phone.rotate(True, "t")
    if way.app is not None:
        phone.launch(way.app)
    for point in way.points:
        phone.tap(point, "t")
    return phone


def look(phone: Phone) -> Scene:
    size = Size(width=phone.size[0], height=phone.size[1])
    return perceive(phone.source(all_windows=True).encode(), View(platform="android", window=size))


def key_of(phone: Phone) -> _Key:
    """What makes a screen another one; what is typed, switched or shown on it does not."""
    return phone.package, phone.state()["page"], phone.keyboard_shown


def acting(scene: Scene) -> list[Element]:
    return [element for element in scene.elements if element.interactive and element.tap_point is not None]


def place_of(element: Element) -> Place:
    assert element.tap_point is not None
    return Place(element.tap_point.x, element.tap_point.y)


def walk(*, landscape: bool) -> dict[_Key, Way]:
    """All screens within a few taps of an app's first one."""
    start = phone_at(Way(None), landscape=landscape)
    ways = [Way(None), *(Way(package) for package, _ in start.installed())]
    found: dict[_Key, Way] = {}
    while ways and len(found) < MOST_SCREENS:
        way = ways.pop(0)
        phone = phone_at(way, landscape=landscape)
        if key_of(phone) in found:
            continue
        found[key_of(phone)] = way
        if len(way.points) < MOST_STEPS:
            new = [place_of(element) for element in acting(look(phone)) if element.role != "keyboard-key"]
            ways += [Way(way.app, (*way.points, point)) for point in new]
    return found


def truly_acting(phone: Phone) -> list[Bounds]:
    """Where the simulator has something on the screen that takes touches."""
    views = phone.snapshot(all_windows=True).views.values()
    return [
        Bounds(left=view.rect.left, top=view.rect.top, right=view.rect.right, bottom=view.rect.bottom)
        for view in views
        if view.node is not None and view.node.widget.clickable and not view.rect.empty
    ]


def wrong_on(way: Way, *, landscape: bool) -> tuple[list[str], int]:
    """What is not as it is told on one screen, and how many elements were touched."""
    phone = phone_at(way, landscape=landscape)
    scene = look(phone)
    text = write_scene(scene)
    keys = scene.keyboard.keys if scene.keyboard is not None else 0
    listed = [element.bounds for element in scene.elements if element.interactive]
    missing = [bounds for bounds in truly_acting(phone) if bounds not in listed]
    wrong = [f"missing at {bounds}" for bounds in missing] if len(missing) > keys + scene.omitted else []
    for element in acting(scene):
        if f"{element.id} " not in text:
            wrong.append(f"{element.id} {element.label!r} is not in the text")
        again = phone_at(way, landscape=landscape)
        last = len(again.acts.since())
        again.tap(place_of(element), "t")
        hit: Any = again.acts.since()[last].hit
        box = element.bounds
        if hit is None or box is None or hit.bounds != f"[{box.left},{box.top}][{box.right},{box.bottom}]":
            wrong.append(f"{element.id} {element.label!r} {box}: hit {hit}")
    return wrong, len(acting(scene))


@pytest.mark.parametrize("landscape", [False, True], ids=["upright", "on its side"])
def test_each_tap_point_hits_its_element_and_nothing_that_can_be_touched_is_missing(landscape: bool) -> None:
    screens = walk(landscape=landscape)
    told = [(key, *wrong_on(way, landscape=landscape)) for key, way in screens.items()]
    assert 25 <= len(screens) < MOST_SCREENS
    assert sum(touched for _, _, touched in told) > 100
    assert {key: wrong for key, wrong, _ in told if wrong} == {}
