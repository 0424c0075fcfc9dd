"""What becomes an element, what it is called, and what is never said: both dialects, rows 3, 14 and 20 to 23."""

import msgspec
import pytest

from apex_perception.perceive import perceive, says_little
from apex_schemas.scene import Element, Scene

FRAME = 'x="0" y="0" width="375" height="667"'


def android(inner: str) -> Scene:
    root = '<node class="android.widget.FrameLayout" package="com.shop.app" bounds="[0,0][400,800]">'
    return perceive(f'<hierarchy rotation="0" width="400" height="800">{root}{inner}</node></hierarchy>'.encode())


def ios(inner: str) -> Scene:
    return perceive(
        f'<AppiumAUT><XCUIElementTypeApplication name="Notes" {FRAME}>{inner}'
        f"</XCUIElementTypeApplication></AppiumAUT>".encode()
    )


def view(cls: str, bounds: str, inner: str = "", **flags: str) -> str:
    written = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in flags.items())
    return f'<node class="android.widget.{cls}" bounds="{bounds}" {written}>{inner}</node>'


def brief(found: Scene) -> list[tuple[str, str]]:
    return [(element.role, element.label) for element in found.elements]


def only(found: Scene) -> Element:
    assert len(found.elements) == 1
    return found.elements[0]


def text(words: str, bounds: str = "[0,0][200,40]") -> str:
    return view("TextView", bounds, text=words)


def test_a_row_that_acts_takes_up_its_texts_and_layouts_vanish() -> None:
    inner = view("LinearLayout", "[0,0][400,80]", text("Display") + text("Font size", "[0,40][200,80]"))
    row = view("LinearLayout", "[0,0][400,80]", inner, clickable="true")
    assert brief(android(row)) == [("row", "Display, Font size")]


def test_a_switch_that_shows_the_state_of_its_row_is_one_with_it() -> None:
    switch = view("Switch", "[300,0][400,80]", checkable="true", checked="true", clickable="false")
    found = only(android(view("LinearLayout", "[0,0][400,80]", text("Wi-Fi") + switch, clickable="true")))
    assert (found.role, found.label, found.checked) == ("switch", "Wi-Fi", True)
    assert found.tap_point is not None
    assert found.tap_point.x == 200


def test_a_switch_that_acts_by_itself_is_named_by_its_row() -> None:
    switch = view("Switch", "[300,0][400,80]", checkable="true", checked="false", clickable="true")
    assert brief(android(view("LinearLayout", "[0,0][400,80]", text("Wi-Fi") + switch))) == [("switch", "Wi-Fi")]
    both = android(view("LinearLayout", "[0,0][400,80]", text("Wi-Fi") + switch, clickable="true"))
    assert brief(both) == [("row", "Wi-Fi"), ("switch", "Wi-Fi")]


def test_a_clickable_wrapper_around_the_screen_is_no_button_and_swallows_nothing() -> None:
    wrapper = view("FrameLayout", "[0,0][400,800]", text("Hello") + view("Button", "[0,90][90,140]", text="Go"),
                   clickable="true")  # fmt: skip
    found = android(wrapper)
    assert brief(found) == [("text", "Hello"), ("button", "Go")]
    assert found.omitted == 1


@pytest.mark.parametrize("cls", ["  ", "", "o.沉", "a$b;1", "null"])
def test_an_odd_class_gives_a_generic_role(cls: str) -> None:
    found = android(f'<node class="{cls}" text="Go" clickable="true" bounds="[0,0][90,90]"/>')
    assert brief(found) == [("button", "Go")]


@pytest.mark.parametrize(
    ("flags", "value", "hint"),
    [
        ({"text": "Name", "hint": "Name", "showing_hint": "true"}, "", "Name"),
        ({"text": "Name", "hint": "Name"}, "", "Name"),
        ({"text": "Zoë", "hint": "Name", "showing_hint": "false"}, "Zoë", "Name"),
        ({"text": "Name", "hint": "Name", "showing_hint": "false"}, "Name", "Name"),
        ({"text": "Zoë"}, "Zoë", None),
        ({"text": ""}, "", None),
    ],
)
def test_a_field_that_shows_its_hint_is_empty(flags: dict[str, str], value: str, hint: str | None) -> None:
    found = only(android(view("EditText", "[0,0][400,80]", clickable="true", **flags)))
    assert (found.value, found.hint, found.editable) == (value, hint, True)


def test_an_ios_value_that_equals_the_placeholder_is_no_value() -> None:
    field = f'<XCUIElementTypeTextField name="q" value="Search" placeholderValue="Search" {FRAME}/>'
    assert only(ios(field)).value == ""


def test_a_password_is_flagged_and_its_text_is_nowhere() -> None:
    secret = "hunter2-very-secret"
    for found in (
        android(view("EditText", "[0,0][400,80]", text=secret, password="true", content_desc="Password")),
        ios(f'<XCUIElementTypeSecureTextField name="Password" label="Password" value="{secret}" {FRAME}/>'),
        ios(f'<XCUIElementTypeSecureTextField label="{secret}" {FRAME}/>'),
    ):
        assert only(found).password
        assert secret not in repr(found)


def test_a_field_without_a_name_is_named_by_the_text_above_but_not_by_the_pages_title() -> None:
    field = view("EditText", "[0,50][400,130]", text="Zoë", clickable="true")
    assert brief(android(text("Full name") + field)) == [("field", "Full name")]
    title = view("TextView", "[0,0][200,40]", text="New contact", resource_id="a:id/action_bar_title")
    assert brief(android(title + field)) == [("text", "New contact"), ("field", "")]


def test_an_icon_without_a_name_is_called_by_its_identifier_if_that_has_words() -> None:
    icon = view("ImageButton", "[0,0][90,90]", clickable="true", resource_id="com.shop:id/openCart")
    assert brief(android(icon)) == [("button", "open cart")]
    assert brief(android(icon.replace("openCart", "btn_1"))) == [("button", "")]


def test_a_touch_area_over_texts_is_called_by_them() -> None:
    pair = text("Pay now") + '<node class="android.view.View" clickable="true" bounds="[0,0][200,40]"/>'
    assert brief(android(view("FrameLayout", "[0,0][200,40]", pair))) == [("button", "Pay now")]


def test_what_an_ios_cell_shows_is_one_row_without_its_decoration() -> None:
    inside = (
        f'<XCUIElementTypeImage name="icon" visible="false" {FRAME}/>'
        f'<XCUIElementTypeStaticText name="id" label="General" value="General" {FRAME}/>'
        f'<XCUIElementTypeButton name="chevron" enabled="false" visible="false" {FRAME}/>'
    )
    assert brief(ios(f'<XCUIElementTypeCell name="General" {FRAME}>{inside}</XCUIElementTypeCell>')) == [
        ("row", "General")
    ]


def test_an_ios_switch_is_tapped_itself_and_named_by_its_cell() -> None:
    switch = '<XCUIElementTypeSwitch value="1" x="300" y="0" width="50" height="44"/>'
    label = '<XCUIElementTypeStaticText label="Wi-Fi" x="10" y="0" width="90" height="44"/>'
    cell = f'<XCUIElementTypeCell x="0" y="0" width="375" height="44">{label}{switch}</XCUIElementTypeCell>'
    found = only(ios(cell))
    assert (found.role, found.label, found.checked) == ("switch", "Wi-Fi", True)
    assert found.tap_point is not None
    assert found.tap_point.x == 325


def test_older_uia_tags_are_read_alike() -> None:
    cell = f'<UIATableCell name="General" {FRAME}/>'
    found = perceive(f'<AppiumAUT><UIAApplication name="Settings" {FRAME}>{cell}</UIAApplication></AppiumAUT>'.encode())
    assert brief(found) == [("row", "General")]


def test_on_apple_tv_the_focus_is_shown() -> None:
    cells = "".join(
        f'<XCUIElementTypeCell label="{name}" hasFocus="{focus}" x="{x}" y="0" width="90" height="90"/>'
        for name, focus, x in (("Films", "false", 0), ("Music", "true", 100))
    )
    assert [(e.label, e.interactive, e.focused) for e in ios(cells).elements] == [
        ("Films", True, False),
        ("Music", True, True),
    ]


def test_where_nothing_can_be_touched_what_can_be_focused_acts_and_the_focus_is_shown() -> None:
    tiles = "".join(
        view("FrameLayout", f"[{n * 100},0][{n * 100 + 90},90]", text(name, f"[{n * 100},0][{n * 100 + 90},90]"),
             focusable="true", focused=str(n == 1).lower())
        for n, name in enumerate(("Films", "Music"))
    )  # fmt: skip
    found = android(tiles)
    assert [(e.label, e.interactive, e.focused) for e in found.elements] == [
        ("Films", True, False),
        ("Music", True, True),
    ]


def test_a_surface_that_the_tree_cannot_see_into_is_named_and_asks_for_a_picture() -> None:
    found = android('<node class="android.view.SurfaceView" bounds="[0,0][400,800]"/>')
    assert brief(found) == [("canvas", "")]
    assert says_little(found)


def test_the_fingerprint_is_deaf_to_clocks_and_progress_and_hears_the_rest() -> None:
    def at(clock: str, progress: str, words: str) -> str:
        bar = view("ProgressBar", "[0,50][400,60]", text=progress)
        return android(text(clock) + bar + text(f"{words} {progress}", "[0,60][200,99]")).fingerprint

    assert at("9:59 AM", "10%", "Loading") == at("10:00 AM", "99 %", "Loading")
    assert at("9:59", "10%", "Loading") != at("9:59", "10%", "Failed")


def test_the_page_is_named_by_app_and_title_and_ids_are_given_in_order() -> None:
    bar = view("Toolbar", "[0,0][400,80]", text("Basket"))
    found = android(bar + view("Button", "[0,90][90,140]", text="Pay"))
    assert found.page == "Shop > Basket"
    assert [element.id for element in found.elements] == ["e1", "e2"]


def test_texts_in_html_are_listed_without_places_and_scripts_are_not() -> None:
    page = "<!DOCTYPE html><html><head><title>T</title><script>x</script></head><body>"
    found = perceive(
        f'{page}<p>Hi &amp; ho</p><a href="/x">Go</a><input type=password value=pw></body></html>'.encode()
    )
    assert brief(found) == [("text", "Hi & ho"), ("link", "Go"), ("field", "")]
    assert found.source == "web"
    assert {element.obstacle for element in found.elements} == {"no_bounds"}
    assert "pw" not in repr(found.elements[2].value)


def test_names_and_hints_as_long_as_a_book_do_not_make_the_scene_one() -> None:
    long = "x" * 1_000_000
    field = f'<node class="android.widget.EditText" resource-id="{long}" hint="{long}" text="" bounds="[0,0][90,90]"/>'
    odd = f'<node class="{long}" resource-id="{long}" content-desc="{long}" clickable="true" bounds="[0,90][90,180]"/>'
    found = android(field + odd)
    assert len(found.elements) == 2
    assert found.elements[0].resource_id is None
    assert len(msgspec.msgpack.encode(found)) < 20_000
