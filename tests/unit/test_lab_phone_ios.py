"""The simulated iOS phone by itself: the same apps in the dialect of XCUITest, in points."""

import io

import pytest
from PIL import Image

from apex_lab.phone import Phone
from apex_lab.phone.errors import InvalidSelector, UnknownError
from apex_lab.phone.locators import Locator, check_strategy, find
from apex_lab.phone.predicates import condition
from apex_lab.phone.views import View

SETTINGS, CONTACTS = "com.apple.Preferences", "com.apple.MobileAddressBook"


def seek(phone: Phone, predicate: str) -> list[View]:
    return find(phone.snapshot(), Locator("-ios predicate string", predicate), phone.package)


def see(phone: Phone, predicate: str) -> View:
    found = seek(phone, predicate)
    assert len(found) == 1, f"{predicate} finds {len(found)} on {phone.state()['page']}"
    return found[0]


def tap(phone: Phone, predicate: str) -> None:
    phone.tap(see(phone, predicate).middle, "s")


@pytest.fixture
def phone() -> Phone:
    return Phone("ios-1", platform="ios", permission_popup=False)


@pytest.fixture
def network(phone: Phone) -> Phone:
    phone.launch(SETTINGS)
    tap(phone, 'type == "XCUIElementTypeCell" AND label BEGINSWITH "Network"')
    return phone


@pytest.mark.parametrize(("scale", "points"), [(3, (390, 844)), (2, (375, 667))])
def test_the_window_is_in_points_and_the_picture_in_pixels(scale: int, points: tuple[int, int]) -> None:
    phone = Phone("ios-1", platform="ios", scale=scale)
    assert phone.size == points
    assert Image.open(io.BytesIO(phone.picture())).size == (points[0] * scale, points[1] * scale)
    phone.rotate(True, "s")
    assert phone.size == points[::-1]
    assert Image.open(io.BytesIO(phone.picture())).size == (points[1] * scale, points[0] * scale)


def test_the_switch_acts_and_its_row_does_not(network: Phone) -> None:
    row, switch = see(network, 'label == "Wi-Fi, Off"'), see(network, 'name == "Wi-Fi" AND value == "0"')
    assert (row.tag, switch.tag) == ("XCUIElementTypeCell", "XCUIElementTypeSwitch")
    network.tap(row.rect.center, "s")
    assert network.state()["apps"][SETTINGS]["wifi"] is False  # type: ignore[index]
    network.tap(switch.middle, "s")
    assert network.state()["apps"][SETTINGS]["wifi"] is True  # type: ignore[index]
    assert see(network, 'name == "Wi-Fi" AND value == "1"')


def test_rows_beyond_the_end_of_a_list_are_there_invisible_with_their_whole_frames(phone: Phone) -> None:
    phone.launch(SETTINGS)
    visible = seek(phone, 'type == "XCUIElementTypeCell" AND visible == 1')
    hidden = seek(phone, 'type == "XCUIElementTypeCell" AND visible == 0')
    assert visible
    assert len(hidden) == 12
    assert {view.rect.height for view in (*visible, *hidden)} == {visible[0].rect.height}
    assert visible[-1].rect.bottom > 844
    assert visible[-1].middle.y < 844


def test_a_dialog_and_the_page_under_it_are_in_the_source_together(network: Phone) -> None:
    network.patch({SETTINGS: {"wifi": True}})
    tap(network, 'label == "Wi-Fi networks" AND type ENDSWITH "Cell"')
    tap(network, 'label BEGINSWITH "Lab-Guest" AND type ENDSWITH "Cell"')
    tags = [view.tag for view in network.snapshot().views.values()]
    assert tags.count("XCUIElementTypeWindow") == 2
    assert see(network, 'type == "XCUIElementTypeAlert"').element.get("name", "") == "Lab-Guest"
    field = see(network, 'type == "XCUIElementTypeSecureTextField"')
    network.set_text(field, "guest-pass", "s", replace=True)
    assert see(network, 'type == "XCUIElementTypeSecureTextField"').element.get("value", "") == "••••••••••"
    assert "guest-pass" not in network.source()


def test_a_question_of_the_system_is_an_application_of_its_own() -> None:
    phone = Phone("ios-1", platform="ios")
    phone.launch(CONTACTS)
    assert phone.package == "com.apple.springboard"
    assert see(phone, 'type == "XCUIElementTypeApplication"').element.get("bundleId", "") == "com.apple.springboard"
    assert not seek(phone, 'name == "Create contact"')


def test_an_empty_field_has_its_placeholder_as_value_and_the_keyboard_is_in_the_source(phone: Phone) -> None:
    phone.launch(CONTACTS)
    tap(phone, 'name == "fab"')
    field = see(phone, 'type == "XCUIElementTypeTextField" AND name == "name"')
    assert (field.element.get("value", ""), field.element.get("placeholderValue", "")) == ("Name", "Name")
    assert field.element.get("hasKeyboardFocus", "") == "true"
    assert see(phone, 'type == "XCUIElementTypeKeyboard"').rect.bottom == 844
    tap(phone, 'type == "XCUIElementTypeKey" AND label == "q"')
    assert see(phone, 'name == "name"').element.get("value", "") == "q"


def test_back_is_the_button_of_the_navigation_bar_or_nothing(network: Phone) -> None:
    network.key(4, "s")
    assert network.state()["page"] == "home"
    network.key(4, "s")
    assert network.state()["foreground"] == SETTINGS
    network.key(3, "s")
    assert network.state()["foreground"] == "com.apple.springboard"


def test_an_app_that_is_not_there_is_unknown(phone: Phone) -> None:
    with pytest.raises(UnknownError, match="unknown or not installed"):
        phone.activate("no.such", "s")


@pytest.mark.parametrize(
    ("predicate", "xpath"),
    [
        ('name == "a\\"b"', "@name = 'a\"b'"),
        ("type = 'X' AND label CONTAINS 'l'", "@type = 'X' and contains(@label, 'l')"),
        ('name == "a" OR NOT enabled == true', "(@name = 'a' or not(@enabled = 'true'))"),
        ("(value != '1')", "(not(@value = '1'))"),
        ("isVisible == YES", "@visible = 'true'"),
    ],
)
def test_predicates_become_conditions_of_xpath(predicate: str, xpath: str) -> None:
    assert condition(predicate) == xpath


def test_a_comparison_can_be_deaf_to_case_and_look_at_the_end(phone: Phone) -> None:
    assert see(phone, 'label ==[c] "sEtTiNgS" AND type == "XCUIElementTypeIcon"')
    assert see(phone, 'label ENDSWITH "tings" AND type == "XCUIElementTypeIcon"')


@pytest.mark.parametrize(
    "predicate", ["", "name", 'colour == "x"', 'name LIKE "x"', '(name == "x"', 'name == "x" x', "§"]
)
def test_what_is_no_predicate_is_refused(predicate: str) -> None:
    with pytest.raises(InvalidSelector, match="cannot be read at"):
        condition(predicate)


def test_each_platform_refuses_the_others_way_of_finding() -> None:
    with pytest.raises(InvalidSelector):
        check_strategy(Locator("-ios predicate string", 'name == "x"'), "Android")
    with pytest.raises(InvalidSelector):
        check_strategy(Locator("-android uiautomator", "new UiSelector()"), "iOS")
