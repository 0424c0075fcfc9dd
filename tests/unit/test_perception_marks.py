"""What is marked as new or changed since the turn before, and what is not."""

from apex_perception.marks import against
from apex_schemas.geometry import Bounds, Size
from apex_schemas.scene import Element, Scene, Screen


def element(number: int, role: str, label: str, **more: object) -> Element:
    top = 100 * number
    bounds = Bounds(left=0, top=top, right=400, bottom=top + 90)
    fields = {"interactive": True, "bounds": bounds, **more}
    return Element(id=f"e{number}", role=role, label=label, **fields)  # pyright: ignore[reportArgumentType]


def scene(*elements: Element, page: str = "A > B", app: str = "a") -> Scene:
    return Scene(app=app, page=page, screen=Screen(size=Size(width=400, height=800)), elements=elements)


WIFI, NAME, SAVE = (
    element(1, "switch", "Wi-Fi", checked=False),
    element(2, "field", "Name", value="Zoë", editable=True),
    element(3, "button", "Save"),
)
BEFORE = scene(WIFI, NAME, SAVE)


def changes(after: Scene, before: Scene | None = BEFORE) -> dict[str, str]:
    return {each.label: each.change for each in against(before, after).elements if each.change}


def test_a_switch_that_was_switched_is_changed_and_a_text_that_came_is_new() -> None:
    on = element(1, "switch", "Wi-Fi", checked=True)
    text = element(4, "text", "Connected to Lab-5G", interactive=False)
    assert changes(scene(on, NAME, SAVE, text)) == {"Wi-Fi": "changed", "Connected to Lab-5G": "new"}


def test_a_row_that_was_scrolled_is_the_same_and_the_row_that_came_is_new() -> None:
    before = scene(*(element(n, "row", f"Row {n}") for n in range(1, 6)))
    after = scene(*(element(n, "row", f"Row {n + 1}") for n in range(1, 6)))
    assert changes(after, before) == {"Row 6": "new"}


def test_nothing_is_marked_on_another_page_in_another_app_or_where_most_is_new() -> None:
    on = element(1, "switch", "Wi-Fi", checked=True)
    assert changes(scene(on, NAME, SAVE, page="A > C")) == {}
    assert changes(scene(on, NAME, SAVE, app="b")) == {}
    assert changes(scene(*(element(n, "row", f"New {n}") for n in range(1, 6)))) == {}
    assert changes(scene(on, NAME, SAVE), None) == {}


def test_clocks_progress_and_focus_are_no_news() -> None:
    before = scene(SAVE, element(4, "text", "9:41"), element(5, "progress", "Loading 10 %"), NAME)
    focused = element(2, "field", "Name", value="Zoë", editable=True, focused=True)
    after = scene(SAVE, element(4, "text", "9:42"), element(5, "progress", "Loading 20 %"), focused)
    assert changes(after, before) == {}


def test_of_two_equal_rows_one_more_is_new() -> None:
    before = scene(element(1, "row", "Mail"), element(2, "row", "News"), SAVE)
    after = scene(element(1, "row", "Mail"), element(2, "row", "News"), SAVE, element(4, "row", "Mail"))
    marked = against(before, after)
    assert [each.change for each in marked.elements] == [None, None, None, "new"]


def test_a_password_is_compared_by_whether_it_is_filled() -> None:
    def typed(value: str) -> Scene:
        return scene(WIFI, SAVE, element(2, "field", "PIN", value=value, editable=True, password=True))

    assert changes(typed("•••"), typed("")) == {"PIN": "changed"}
    assert changes(typed("••••••"), typed("•••")) == {}
