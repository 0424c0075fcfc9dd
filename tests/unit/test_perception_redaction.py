"""What was typed by name is in no Scene that leaves perception: hidden in its field, masked by value elsewhere."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apex_bus.secrets import Secrets, read_secrets
from apex_perception.redaction import HIDDEN, redacted, typed_secrets
from apex_schemas.actions import InputText
from apex_schemas.geometry import Bounds, Size
from apex_schemas.scene import Element, Region, Scene, Screen, SemanticScene
from apex_schemas.steps import Target, WorldEvent

VALUE = "correct horse"
NOBODY = Secrets().mask
KNOWING = read_secrets({"P_SECRET_PHRASE": VALUE}, prefix="P_").mask
PLACE = Bounds(left=0, top=100, right=400, bottom=180)


def field(id_: str, shown: str | None, *, resource_id: str | None = "app:id/phrase", top: int = 100) -> Element:
    box = Bounds(left=0, top=top, right=400, bottom=top + 80)
    return Element(
        id=id_, role="field", label=shown or "Phrase", value=shown, text=shown, hint="Phrase", editable=True,
        resource_id=resource_id, class_name="EditText", bounds=box,
    )  # fmt: skip


def scene(*elements: Element, page: str = "Sign in") -> SemanticScene:
    region = Region(kind="form", bounds=PLACE, label=" ".join(element.label for element in elements))
    size = Size(width=400, height=800)
    return SemanticScene(app="a", page=page, screen=Screen(size=size), elements=elements, regions=(region,))


def typed(*, resource_id: str | None = "app:id/phrase", target: bool = True, code: str | None = None) -> WorldEvent:
    there = Target(
        element="e1", role="field", label="Phrase", bounds=PLACE, resource_id=resource_id, class_name="EditText"
    )
    action = InputText(text="{{secret:PHRASE}}")
    return WorldEvent(action=action, success=code is None, code=code, target=there if target else None)


def text_of(found: Scene) -> str:
    return msgspec.json.encode(found).decode()


@pytest.mark.parametrize("mask", [NOBODY, KNOWING])
def test_the_field_that_was_typed_into_is_told_as_filled_and_not_with_what(mask: object) -> None:
    found = redacted(scene(field("e1", VALUE)), [typed()], mask)  # pyright: ignore[reportArgumentType]
    assert VALUE not in text_of(found)
    element = found.elements[0]
    assert (element.label, element.value, element.text, element.password) == ("Phrase", HIDDEN, None, True)


def test_an_empty_field_is_still_told_as_empty() -> None:
    assert redacted(scene(field("e1", None)), [typed()], NOBODY).elements[0].value is None


def test_another_field_is_left_as_it_is() -> None:
    other = field("e2", "ada", resource_id="app:id/name", top=300)
    assert redacted(scene(field("e1", VALUE), other), [typed()], NOBODY).elements[1] == other


def test_what_the_field_shows_is_hidden_where_else_it_stands_on_that_screen() -> None:
    echo = Element(id="e2", role="text", label=f"You typed {VALUE}", text=f"You typed {VALUE}")
    found = redacted(scene(field("e1", VALUE), echo, page=f"About {VALUE}"), [typed()], NOBODY)
    assert VALUE not in text_of(found)
    assert found.elements[1].label == f"You typed {HIDDEN}"


def test_on_a_later_screen_without_the_field_the_value_is_masked_by_its_name() -> None:
    echo = Element(id="e1", role="button", label=f"Hello {VALUE}", text=f"Hello {VALUE}", description=VALUE)
    found = redacted(scene(echo, page=VALUE), [typed()], KNOWING)
    assert VALUE not in text_of(found)
    assert found.elements[0].text == "Hello {{secret:PHRASE}}"  # so that the executor finds it again


def test_a_field_without_identity_is_known_by_its_place() -> None:
    there, elsewhere = field("e1", VALUE, resource_id=None), field("e2", "ada", resource_id=None, top=300)
    found = redacted(scene(there, elsewhere), [typed(resource_id=None)], NOBODY)
    assert [element.value for element in found.elements] == [HIDDEN, "ada"]


def test_every_field_is_hidden_when_it_is_not_known_which_one_had_the_focus() -> None:
    found = redacted(scene(field("e1", "ada"), field("e2", VALUE, resource_id="x")), [typed(target=False)], NOBODY)
    assert [element.value for element in found.elements] == [HIDDEN, HIDDEN]


@pytest.mark.parametrize(
    ("code", "counts"),
    [(None, True), ("TEXT_DIFFERS", True), ("UNKNOWN_OUTCOME", True), ("SECRET_NOT_ALLOWED", False)],
)
def test_a_secret_counts_as_typed_unless_it_was_withheld(code: str | None, counts: bool) -> None:
    plain = WorldEvent(action=InputText(text="hello"), success=True)
    assert bool(typed_secrets([plain, typed(code=code)])) is counts


words = st.text(st.characters(codec="utf-8"), max_size=40)


@settings(max_examples=200)
@given(
    value=st.text(st.characters(codec="utf-8", exclude_characters="•"), min_size=4, max_size=40).filter(
        lambda text: len(text.strip()) >= 4 and text not in text_of(scene(field("e1", None))) and "secret" not in text
    ),
    before=words,
    after=words,
)
def test_no_value_is_in_a_scene_wherever_it_stands(value: str, before: str, after: str) -> None:
    mask = read_secrets({"P_SECRET_V": value}, prefix="P_").mask
    said = before + value + after
    echo = Element(id="e2", role="text", label=said, text=said, description=said, hint=said, value=said)
    found = redacted(scene(field("e1", value), echo, page=said), [typed()], mask)
    for text in (found.page, *(text for each in found.elements for text in (each.label, each.text, each.description,
                 each.hint, each.value)), *(each.label for each in found.regions)):  # fmt: skip
        assert text is None or value not in text
