"""The drawing of a Scene: well-formed whatever the screen says, with the boxes in place and no secret in it."""

from xml.etree import ElementTree

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from apex_cli.commands.offline import perceive as command
from apex_perception.perceive import perceive
from apex_perception.wireframe import draw
from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.scene import Element, Keyboard, Scene, Screen

BOX = Bounds(left=108, top=216, right=540, bottom=432)
RECT = "{http://www.w3.org/2000/svg}rect"
TEXT = "{http://www.w3.org/2000/svg}text"


def scene(*elements: Element, keyboard: Keyboard | None = None) -> Scene:
    screen = Screen(size=Size(width=1080, height=2160))
    return Scene(app="a", page="A > B", screen=screen, elements=elements, keyboard=keyboard)


def drawn(found: Scene, **act: object) -> ElementTree.Element:
    return ElementTree.fromstring(draw(found, **act))  # pyright: ignore[reportArgumentType]


def test_boxes_lie_where_the_elements_do_at_a_third_of_their_size() -> None:
    root = drawn(scene(Element(id="e1", role="button", label="Go", bounds=BOX, interactive=True)))
    rect = root.findall(f".//{RECT}")[1]
    assert [rect.get(name) for name in ("x", "y", "width", "height")] == ["36.0", "72.0", "144.0", "72.0"]
    assert "".join(root.findall(f".//{TEXT}")[0].itertext()) == "e1 Go"


def test_what_is_off_the_screen_or_has_no_place_is_not_drawn_and_the_keyboard_is() -> None:
    away = Element(id="e1", role="button", label="Away", bounds=BOX, obstacle="off_screen")
    nowhere = Element(id="e2", role="button", label="Nowhere", obstacle="no_bounds")
    text = draw(scene(away, nowhere, keyboard=Keyboard(bounds=BOX)))
    assert "Away" not in text
    assert "Nowhere" not in text
    assert 'class="k"' in text


def test_the_next_act_is_a_point_and_its_target_is_framed() -> None:
    button = Element(id="e1", role="button", label="Go", bounds=BOX, interactive=True)
    text = draw(scene(button), act=Point(x=324, y=324), target="e1")
    assert '<circle class="p" cx="108.0" cy="108.0"' in text
    assert text.count('class="h"') == 2


def test_a_password_is_drawn_by_its_name_alone() -> None:
    field = Element(
        id="e1", role="field", label="PIN", value="•••", bounds=BOX, interactive=True, editable=True, password=True
    )
    assert "•••" not in draw(scene(field))


@given(st.text(max_size=80), st.booleans())
def test_any_label_gives_a_drawing_that_can_be_read(label: str, checked: bool) -> None:
    element = Element(id="e1", role="button", label=label, bounds=BOX, interactive=True, checked=checked)
    assert drawn(scene(element)).tag.endswith("svg")


def test_the_command_draws_a_saved_page_source(tmp_path) -> None:
    file = tmp_path / "s.xml"
    node = '<node class="android.widget.Button" text="&lt;Pay&gt;" clickable="true" bounds="[0,0][90,90]"/>'
    file.write_text(f'<hierarchy rotation="0" width="400" height="800">{node}</hierarchy>')
    result = CliRunner().invoke(command, [str(file), "--svg"])
    assert result.exit_code == 0
    assert result.output.strip() == draw(perceive(file.read_bytes()))
    assert "&lt;Pay&gt;" in result.output
