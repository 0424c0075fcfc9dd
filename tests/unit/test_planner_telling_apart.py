"""Things of one name are told apart by their context, else by where they are or which they are."""

from planner_world import element, scene

from apex_planner.scene_text import write_scene
from apex_planner.telling_apart import told_apart
from apex_schemas.geometry import Bounds
from apex_schemas.scene import Element


def small(number: int, left: int, top: int, label: str = "", **more: object) -> Element:
    bounds = Bounds(left=left, top=top, right=left + 100, bottom=top + 100)
    return element(number, "button", label, bounds=bounds, **more)


def test_a_thing_without_a_name_is_told_by_where_it_is() -> None:
    found = told_apart(scene(small(1, 0, 0), small(2, 900, 2200, "Add")))
    assert found == {"e1": "top left"}


def test_things_of_one_name_are_told_by_where_they_are_or_by_their_number_in_one_place() -> None:
    assert told_apart(scene(small(1, 0, 0, "Add"), small(2, 900, 1200, "Add"))) == {
        "e1": "top left",
        "e2": "middle right",
    }
    assert told_apart(scene(small(1, 0, 0, "Add"), small(2, 110, 0, "Add"))) == {"e1": "1 of 2", "e2": "2 of 2"}


def test_rows_and_texts_of_different_names_tell_their_buttons_apart() -> None:
    inside = (
        element(1, "row", "Milk"), small(2, 900, 100, "Add", parent="e1"),
        element(3, "row", "Bread"), small(4, 900, 200, "Add", parent="e3"),
    )  # fmt: skip
    assert told_apart(scene(*inside)) == {}
    behind = (
        element(1, "text", "Milk"), small(2, 900, 100, "Add"), element(3, "text", "Bread"), small(4, 900, 200, "Add"),
    )  # fmt: skip
    assert told_apart(scene(*behind)) == {}


def test_fields_and_what_has_a_value_need_no_place() -> None:
    assert told_apart(scene(element(1, "field", "", editable=True), element(2, "slider", "", value="7"))) == {}


def test_the_squares_of_a_board_are_told_by_their_number() -> None:
    board = [small(n, 300 * (n % 4), 600 * (n // 4)) for n in range(1, 14)]
    assert told_apart(scene(*board))["e13"] == "13 of 13"


def test_the_words_stand_at_the_end_of_the_line() -> None:
    text = write_scene(scene(small(1, 0, 0, "Add", enabled=False), small(2, 900, 1200, "Add")))
    assert 'e1 button "Add" disabled (top left)' in text.split("\n")
