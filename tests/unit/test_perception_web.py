"""What the page's script finds, as a Scene: pixels, what its hit test says, names, passwords, a broken answer."""

import json
from typing import Any

import pytest

from apex_perception.errors import NoTree
from apex_perception.perceive import perceive
from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.scene import Scene, SemanticScene


def thing(box: tuple[float, float, float, float], parent: int = 0, **fields: Any) -> dict[str, Any]:
    return {"parent": parent, "kind": "", "box": box, **fields}


def page(*things: dict[str, Any], ratio: float = 2.0) -> Scene:
    body = thing((0, 0, 400, 60), -1)
    answer = {"apex": "web", "title": "Shop", "host": "shop.example", "width": 400, "height": 800, "ratio": ratio}
    return perceive(json.dumps({**answer, "nodes": [body, *things]}, separators=(",", ":")).encode())


def test_places_are_pixels_and_what_overflows_its_parent_is_seen() -> None:
    found = page(thing((20, 80, 220, 128), kind="button", name="Add", acts=True))
    assert found.source == "web"
    assert found.page == "shop.example > Shop"
    assert found.screen.size == Size(width=800, height=1600)
    assert found.elements[0].bounds == Bounds(left=40, top=160, right=440, bottom=256)
    assert found.elements[0].context == "web"


def test_what_the_page_found_covered_is_occluded_and_a_tried_point_is_the_tap_point() -> None:
    found = page(
        thing((0, 10, 400, 50), kind="link", name="Under", acts=True, covered=True),
        thing((0, 100, 200, 150), kind="button", name="Half", acts=True, tap=(40, 125)),
    )
    assert [(e.label, e.obstacle) for e in found.elements] == [("Under", "occluded"), ("Half", None)]
    assert found.elements[1].tap_point == Point(x=80, y=250)


def test_what_can_be_scrolled_to_is_off_the_screen_and_still_called_by_its_texts() -> None:
    row = thing((0, 700, 400, 780), acts=True, hidden=True)
    found = page(row, thing((0, 700, 90, 720), 1, kind="text", text="Row 9", hidden=True))
    assert [(e.label, e.obstacle) for e in found.elements] == [("Row 9", "off_screen")]


def test_a_dialog_names_the_page_and_leaves_cover_to_the_hit_test() -> None:
    dialog = thing((50, 300, 350, 500), kind="dialog", name="Sure?")
    inside = thing((60, 400, 160, 440), 2, kind="button", name="Yes", acts=True)
    found = page(thing((0, 0, 90, 40), kind="button", name="Buy", acts=True), dialog, inside)
    assert [(e.label, e.obstacle) for e in found.elements] == [("Buy", None), ("Sure?", None), ("Yes", None)]
    assert found.page == "shop.example > Sure?"
    assert isinstance(found, SemanticScene)
    assert [region.label for region in found.dialogs] == ["Sure?"]


def test_a_scrolling_container_says_where_the_page_said_that_it_goes_on() -> None:
    found = page(thing((0, 60, 400, 800), kind="scroll", scrolls=True, more=["above", "below"]))
    assert found.elements[0].more == ("above", "below")


def test_fields_have_values_and_passwords_do_not() -> None:
    found = page(
        thing((0, 0, 90, 40), kind="field", name="Mail", value="a@b.c", acts=True),
        thing((0, 50, 90, 90), kind="field", name="Password", value="•••", password=True, acts=True),
    )
    assert [(e.label, e.value, e.editable, e.password) for e in found.elements] == [
        ("Mail", "a@b.c", True, False),
        ("Password", "•••", True, True),
    ]


@pytest.mark.parametrize("broken", [b'{"apex":"web"', b'{"apex":"web","nodes":[]}', b'{"apex":"web","width":"x"}'])
def test_an_answer_that_is_no_page_is_no_tree(broken: bytes) -> None:
    with pytest.raises(NoTree):
        perceive(broken)
