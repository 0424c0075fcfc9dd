"""A target found again at the moment of acting: followed when it moved alone, refused when it is gone or unclear."""

from typing import Any

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from executor_phone import AT, SEEN, FakePhone, box, point, target
from selenium.common.exceptions import (
    InvalidSelectorException,
    InvalidSessionIdException,
    StaleElementReferenceException,
    UnknownMethodException,
)

from apex_executor.errors import ActRefused
from apex_executor.locators import locator
from apex_schemas.devices import Platform
from apex_schemas.geometry import Bounds, Point
from apex_schemas.steps import Target


@pytest.mark.parametrize(
    ("fields", "query"),
    [
        ({}, '.resourceId("a:id/x")'),
        ({"class_name": "C", "description": "D"}, '.resourceId("a:id/x").className("C").description("D")'),
        ({"text": "T"}, '.resourceId("a:id/x").text("T")'),
        ({"text": "typed", "role": "field"}, '.resourceId("a:id/x")'),
        ({"text": "typed", "role": "password"}, '.resourceId("a:id/x")'),
        ({"resource_id": None, "text": "T"}, '.text("T")'),
        ({"resource_id": None, "text": "typed", "role": "field", "class_name": "E"}, '.className("E")'),
        ({"resource_id": None, "text": 'a "b" \\ c\nd'}, '.text("a \\"b\\" \\\\ c\\nd")'),
    ],
)
def test_android_target_is_looked_up_by_what_identifies_it(fields: dict[str, Any], query: str) -> None:
    assert locator(target(**fields), platform="android") == (
        AppiumBy.ANDROID_UIAUTOMATOR, "new UiSelector()" + query,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "query"),
    [
        ({}, 'name == "a:id/x"'),
        ({"class_name": "XCUIElementTypeCell"}, 'type == "XCUIElementTypeCell" AND name == "a:id/x"'),
        ({"resource_id": None, "description": 'say "hi"'}, 'name == "say \\"hi\\""'),
        ({"description": "Bob"}, 'name == "a:id/x" AND label == "Bob"'),
        ({"description": "a:id/x"}, 'name == "a:id/x"'),
        ({"resource_id": None, "description": "Bob", "text": "1"}, 'name == "Bob"'),
    ],
)
def test_ios_target_is_looked_up_by_its_name_and_the_label_that_tells_rows_apart(
    fields: dict[str, Any], query: str
) -> None:
    assert locator(target(**fields), platform="ios") == (AppiumBy.IOS_PREDICATE, query)


@pytest.mark.parametrize("platform", ["android", "ios"])
@pytest.mark.parametrize("fields", [{}, {"class_name": "C"}, {"text": ""}, {"text": "", "description": ""}])
def test_target_without_any_identity_is_not_looked_up(platform: Platform, fields: dict[str, Any]) -> None:
    sought = target("slider", resource_id=None, **fields)
    assert locator(sought, platform=platform) is None
    phone = FakePhone({}, platform=platform)
    assert point(phone, sought) == AT
    assert all("packageName" in asked or "Alert" in asked for asked in phone.asked)


def test_no_target_or_no_bounds_or_a_web_page_is_acted_on_as_planned() -> None:
    for phone, sought in (
        (FakePhone({}), None),
        (FakePhone({}), target(bounds=None)),
        (FakePhone({}, web=True), target(resource_id=None)),
        (FakePhone({}), target(context="web")),
    ):
        assert point(phone, sought) == AT
        assert phone.asked == []


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (SEEN, AT),
        (box(0, 400), Point(x=150, y=420)),  # moved down
        (box(30, 90), Point(x=180, y=110)),
        (box(0, 400, 100, 450), Point(x=50, y=425)),  # shrunk: the like of the point lies outside, so its middle
        (Bounds(left=0, top=0, right=0, bottom=0), AT),  # a driver that knows no rectangles
    ],
)
def test_target_that_is_there_once_is_followed(now: Bounds, expected: Point) -> None:
    assert point(FakePhone({"a:id/x": [now]}), target()) == expected


def test_target_that_is_gone_is_refused_by_name() -> None:
    with pytest.raises(ActRefused, match="STALE_SCENE: button 'Save' is no longer on the screen"):
        point(FakePhone({}), target())


@pytest.mark.parametrize("moved_by", [11, 40, 60, 100, 500])
def test_one_of_several_alike_that_is_not_at_its_place_is_refused(moved_by: int) -> None:
    """A list that has scrolled by a part of a row: the nearest row of the same kind is another one."""
    rows = [box(0, top + moved_by) for top in (0, 100, 200)]
    if moved_by == 100:
        rows = rows[1:]
    with pytest.raises(ActRefused, match=r"STALE_SCENE.* has moved, and cannot be told from its like"):
        point(FakePhone({"a:id/x": rows}), target())


def test_one_of_several_alike_that_is_at_its_place_is_acted_on() -> None:
    rows = [box(0, 0), box(0, 103), box(0, 200)]
    assert point(FakePhone({"a:id/x": rows}), target()) == Point(x=150, y=123)


def test_row_of_a_list_is_followed_by_its_text_not_by_its_place() -> None:
    """All titles of a list have one resource id; the one that was meant is the one that says so."""
    phone = FakePhone({'.text("Wi-Fi")': [box(0, 300)], "a:id/x": [box(0, 100), box(0, 300)]})
    assert point(phone, target(text="Wi-Fi")) == Point(x=150, y=320)


def test_target_whose_text_has_changed_is_acted_on_only_at_its_place() -> None:
    ticking = target(text="00:01")
    assert point(FakePhone({".text(": [], "a:id/x": [SEEN]}), ticking) == AT
    with pytest.raises(ActRefused, match="has moved"):
        point(FakePhone({".text(": [], "a:id/x": [box(0, 300)]}), ticking)
    with pytest.raises(ActRefused, match="no longer"):
        point(FakePhone({".text(": [], "a:id/x": [SEEN]}), target(resource_id=None, text="00:01"))


@pytest.mark.parametrize("error", [InvalidSelectorException("m"), UnknownMethodException("m")])
def test_driver_that_cannot_look_up_is_acted_on_as_planned(error: Exception) -> None:
    assert point(FakePhone(error), target()) == AT


def test_element_that_goes_away_while_it_is_measured_is_gone() -> None:
    with pytest.raises(ActRefused, match="STALE_SCENE"):
        point(FakePhone({"a:id/x": [StaleElementReferenceException("m")]}), target())


def test_other_errors_of_the_driver_are_not_taken_for_absence() -> None:
    with pytest.raises(InvalidSessionIdException):
        point(FakePhone(InvalidSessionIdException("m")), target())


def test_target_that_has_moved_out_of_sight_is_refused() -> None:
    with pytest.raises(ActRefused, match="OFF_SCREEN: button 'Save' has moved out of sight; scroll to it"):
        point(FakePhone({"a:id/x": [box(0, 2_500)]}), target())


@pytest.mark.parametrize(
    ("told", "code"),
    [({"gone": True}, "STALE_SCENE"), ({"off": True}, "OFF_SCREEN"), ({"over": "banner"}, "OCCLUDED")],
)
def test_page_says_why_its_element_cannot_be_acted_on(told: dict[str, Any], code: str) -> None:
    with pytest.raises(ActRefused, match=code):
        point(FakePhone({}, web=True, page=told), target())


def test_element_of_a_page_is_followed_in_pixels() -> None:
    assert point(FakePhone({}, web=True, page={"x": 75, "y": 210.5}), target()) == Point(x=150, y=421)
    assert point(FakePhone({}, web=True, page=None), target()) == AT


@pytest.mark.parametrize("platform", ["android", "ios"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([box(20, 120, 100, 150)], AT),  # inside of what was seen
        ([box(20, 420, 100, 450)], Point(x=60, y=435)),  # moved down: where the words are, the row is
        ([box(20, 420, 100, 450), box(20, 120, 100, 150)], AT),
        ([], None),
        ([box(20, 420, 100, 450), box(20, 720, 100, 750)], None),
    ],
)
def test_row_without_a_name_is_found_by_the_words_in_it(
    platform: Platform, words: list[Bounds], expected: Point | None
) -> None:
    row = Target(element="e1", role="row", label="Wi-Fi, connected", bounds=SEEN, class_name="C")
    phone = FakePhone({'"Wi-Fi"': words}, platform=platform)
    if expected is not None:
        assert point(phone, row) == expected
        return
    with pytest.raises(ActRefused, match="STALE_SCENE"):
        point(phone, row)


def test_row_whose_words_were_put_together_is_found_by_the_first_one() -> None:
    row = Target(element="e1", role="row", label="Wi-Fi and more", bounds=SEEN, class_name="C")
    assert point(FakePhone({'"Wi-Fi"': [box(20, 120, 100, 150)]}), row) == AT
