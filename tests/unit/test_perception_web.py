"""What the page's script finds, as a Scene: pixels, cover by what is fixed, names, passwords, a broken answer."""

import json
from typing import Any

import pytest

from apex_perception.errors import NoTree
from apex_perception.perceive import perceive
from apex_schemas.geometry import Bounds, Size
from apex_schemas.scene import Scene


def thing(box: tuple[float, float, float, float], parent: int = 0, **fields: Any) -> dict[str, Any]:
    return {"parent": parent, "kind": "", "box": box, **fields}


def page(*things: dict[str, Any], ratio: float = 2.0) -> Scene:
    body = thing((0, 0, 400, 60), -1)
    answer = {"apex": "web", "title": "Shop", "host": "shop.example", "width": 400, "height": 800, "ratio": ratio}
    return perceive(json.dumps({**answer, "nodes": [body, *things]}, separators=(",", ":")).encode())


def test_places_are_pixels_and_what_overflows_its_parent_is_seen() -> None:
    found = page(thing((20, 80, 220, 128), kind="button", name="Add", acts=True))
    assert found.source == "web"
    assert found.page == "Shop.example > Shop" or found.page.endswith("Shop")
    assert found.screen.size == Size(width=800, height=1600)
    assert found.elements[0].bounds == Bounds(left=40, top=160, right=440, bottom=256)
    assert found.elements[0].context == "web"


def test_a_sticky_header_covers_what_scrolled_below_it_though_it_comes_first() -> None:
    header = thing((0, 0, 400, 60), kind="", top=True, acts=True, name="Header")
    found = page(header, thing((0, 10, 400, 50), kind="link", name="Under", acts=True))
    assert [(e.label, e.obstacle) for e in found.elements] == [("Header", None), ("Under", "occluded")]


def test_a_dialog_shuts_off_the_page() -> None:
    dialog = thing((50, 300, 350, 500), kind="dialog", name="Sure?", top=True)
    inside = thing((60, 400, 160, 440), 2, kind="button", name="Yes", acts=True)
    found = page(thing((0, 0, 90, 40), kind="button", name="Buy", acts=True), dialog, inside)
    assert [(e.label, e.obstacle) for e in found.elements] == [("Buy", "occluded"), ("Sure?", None), ("Yes", None)]
    assert found.page.endswith("Sure?")


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
