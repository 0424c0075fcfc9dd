"""Perception against the truth: on every screen of every simulated phone, upright and on its side, both platforms.

What is said of an element is compared with what the phone does when it is touched, and what the phone has with what
the planner's prompt says.
"""

import re

import msgspec
import pytest
from integration.truth_crawl import Visit, acting, box, crawl, fork, hit_box, look, opaque_at, touch

from apex_lab.phone import Phone
from apex_lab.phone.geometry import Point
from apex_perception.perceive import says_little
from apex_planner.scene_text import write_scene
from apex_schemas.geometry import Point as Place
from apex_schemas.scene import Element

DEVICES = {
    "android": lambda: Phone("a"),
    "android-small": lambda: Phone("a", width=480, height=800),
    "ios-3": lambda: Phone("i", platform="ios", scale=3),
    "ios-2": lambda: Phone("i", platform="ios", scale=2),
}
SEEN = [
    *(("android", "upright"), ("android", "turned"), ("android-small", "upright")),
    *(("ios-3", "upright"), ("ios-3", "turned"), ("ios-2", "upright")),
]
Where = list[tuple[str, str, str]]


@pytest.fixture(scope="module", params=SEEN, ids=" ".join)
def visits(request: pytest.FixtureRequest) -> list[Visit]:
    """All screens of one phone."""
    device, way = request.param
    phone = DEVICES[device]()
    phone.rotate(way == "turned", "truth")
    return list(crawl(phone))


def test_the_phone_has_at_least_eight_apps_and_twenty_five_screens(visits: list[Visit]) -> None:
    names = {visit.name for visit in visits}
    assert len({name.partition(":")[0] for name in names}) >= 8
    assert len(names) >= 25


def test_a_tap_on_an_elements_tap_point_hits_that_element(visits: list[Visit]) -> None:
    missed: Where = []
    for visit in visits:
        for element, act in visit.touched:
            own, hit = box(element), hit_box(act, visit.still.ratio)
            # What does not act itself may be hit at one of its parts.
            inside = own is not None and hit is not None and hit.clip(own) == hit and not (act.hit and act.hit.acted)
            if hit != own and not inside and not opaque_at(visit.still, Point(act.x or 0, act.y or 0)):
                missed.append((visit.name, f"{element.role} {element.label!r} {own}", str(act.hit)))
    assert missed == []
    assert sum(len(visit.touched) for visit in visits) > 150


def test_everything_that_acts_is_in_the_prompt_or_counted_there(visits: list[Visit]) -> None:
    missing: Where = []
    for visit in visits:
        text = write_scene(visit.scene)
        listed = set(re.findall(r"^ *(e\d+)\b", text, re.MULTILINE))
        counted = re.search(r"^\((\d+) more", text, re.MULTILINE)
        boxes = {box(each) for each in visit.scene.elements if each.id in listed}
        absent = [node for node in acting(visit.still) if node.rect.times(visit.still.ratio) not in boxes]
        if len(absent) > (int(counted[1]) if counted else 0):
            missing += [(visit.name, node.rid, node.text or node.desc) for node in absent]
    assert missing == []


def test_what_is_said_to_be_covered_does_not_answer_at_its_middle(visits: list[Visit]) -> None:
    wrong: Where = []
    covered = 0
    for visit in visits:
        for element in visit.scene.elements:
            if not element.interactive or element.obstacle != "occluded" or element.bounds is None:
                continue
            covered += 1
            middle = element.bounds.center
            _, act = touch(visit.still, _at(element, middle))
            if hit_box(act, visit.still.ratio) == box(element):
                wrong.append((visit.name, f"{element.role} {element.label!r}", str(act.hit)))
    assert wrong == []
    assert covered > 10


def test_a_screen_of_which_the_tree_says_nothing_asks_for_a_picture(visits: list[Visit]) -> None:
    boards = [visit for visit in visits if visit.name == "org.example.game:board"]
    assert boards
    assert all(says_little(visit.scene) for visit in boards)
    assert not any(visit.scene.elements for visit in boards if "place" in write_scene(visit.scene))


def test_no_password_that_was_typed_is_in_a_prompt(visits: list[Visit]) -> None:
    forms = [visit for visit in visits if visit.name == "org.example.shop:sign_in"]
    assert forms
    for form in forms:
        phone = fork(form.still)
        secret = next(view for view in phone.snapshot().views.values() if view.node and view.node.widget.password)
        phone.set_text(secret, "enigma-1843", "truth", replace=True)
        scene = look(phone)
        assert [element.value for element in scene.elements if element.password] == ["•••"]
        assert "enigma" not in write_scene(scene)


def _at(element: Element, point: Place) -> Element:
    return msgspec.structs.replace(element, tap_point=point)
