"""The drawing of a Scene: well-formed whatever the screen says, with the boxes in place and no secret in it."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from apex_cli.commands.offline import perceive as command
from apex_cli.report.wireframe import alone
from apex_perception.perceive import perceive
from apex_schemas.geometry import Bounds, Size
from apex_schemas.scene import Element, Keyboard, Scene, Screen
from apex_schemas.wireframe import LONGEST_LABEL, MOST_BOXES, wireframe

BOX = Bounds(left=108, top=216, right=540, bottom=432)
RECT = "{http://www.w3.org/2000/svg}rect"
TEXT = "{http://www.w3.org/2000/svg}text"


def scene(*elements: Element, keyboard: Keyboard | None = None) -> Scene:
    screen = Screen(size=Size(width=1080, height=2160))
    return Scene(app="a", page="A > B", screen=screen, elements=elements, keyboard=keyboard)


def drawn(found: Scene) -> ElementTree.Element:
    return ElementTree.fromstring(alone(wireframe(found), found.page))


def test_boxes_lie_where_the_elements_do_with_ids_and_labels() -> None:
    root = drawn(scene(Element(id="e1", role="button", label="Go", bounds=BOX, interactive=True)))
    assert root.get("viewBox") == "0 0 1080 2160"
    rect = root.findall(RECT)[1]
    assert [rect.get(name) for name in ("x", "y", "width", "height")] == ["108", "216", "432", "216"]
    assert "".join(root.findall(TEXT)[0].itertext()).startswith("e1 Go")


def test_a_tiny_element_that_can_be_acted_on_has_its_id_all_the_same() -> None:
    tiny = Bounds(left=0, top=0, right=9, bottom=9)
    root = drawn(scene(Element(id="e7", role="button", label="Go", bounds=tiny, interactive=True)))
    assert "".join(root.findall(TEXT)[0].itertext()).startswith("e7 ")


def test_what_is_off_the_screen_or_has_no_place_is_not_drawn_and_the_keyboard_is() -> None:
    away = Element(id="e1", role="button", label="Away", bounds=BOX, obstacle="off_screen")
    nowhere = Element(id="e2", role="button", label="Nowhere", obstacle="no_bounds")
    found = wireframe(scene(away, nowhere, keyboard=Keyboard(bounds=BOX)))
    text = alone(found, "A")
    assert found.elements == 2
    assert "Away" not in text
    assert "Nowhere" not in text
    assert 'class="keyboard"' in text


def test_what_is_covered_is_drawn_as_such() -> None:
    covered = Element(id="e1", role="button", label="Behind", bounds=BOX, obstacle="occluded")
    text = alone(wireframe(scene(covered)), "A")
    assert 'class="box behind"' in text
    assert "occluded" in text


def test_a_password_is_drawn_by_its_name_alone() -> None:
    field = Element(
        id="e1", role="field", label="PIN", value="•••", bounds=BOX, interactive=True, editable=True, password=True
    )
    assert "•••" not in alone(wireframe(scene(field)), "A")


def test_what_is_kept_of_a_screen_is_bounded_in_number_and_length() -> None:
    many = [Element(id=f"e{n}", role="text", label="x" * 999, bounds=BOX) for n in range(2 * MOST_BOXES)]
    boxes = wireframe(scene(*many)).boxes
    assert boxes is not None
    assert [len(boxes), len(boxes[0].label)] == [MOST_BOXES, LONGEST_LABEL]


@pytest.mark.parametrize("label", ["\ufffe\uffff", "\ud800", "\x00]]>", "<b>&amp;", "\u202eevil"])
def test_a_label_that_xml_forbids_gives_a_drawing_that_can_be_read(label: str) -> None:
    assert drawn(scene(Element(id="e1", role="button", label=label, bounds=BOX))).tag.endswith("svg")


@given(st.text(max_size=80), st.booleans())
def test_any_label_gives_a_drawing_that_can_be_read(label: str, checked: bool) -> None:
    element = Element(id="e1", role="button", label=label, bounds=BOX, interactive=True, checked=checked)
    assert drawn(scene(element)).tag.endswith("svg")


def test_the_command_draws_a_saved_page_source(tmp_path: Path) -> None:
    file = tmp_path / "s.xml"
    node = '<node class="android.widget.Button" text="&lt;Pay&gt;" clickable="true" bounds="[0,0][90,90]"/>'
    file.write_text(f'<hierarchy rotation="0" width="400" height="800">{node}</hierarchy>')
    result = CliRunner().invoke(command, [str(file), "--svg"])
    assert result.exit_code == 0
    found = perceive(file.read_bytes())
    assert result.output.strip() == alone(wireframe(found), found.page).strip()
    assert "&lt;Pay&gt;" in result.output
