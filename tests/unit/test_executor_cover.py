"""What lies over a target that was found, and what has become of one that was not: by windows, roots and hit tests."""

from typing import Any

import pytest
from executor_phone import AT, SEEN, FakePhone, Found, box, point, target
from selenium.common.exceptions import StaleElementReferenceException

from apex_executor.errors import ActRefused
from apex_schemas.geometry import Bounds, Point
from apex_schemas.steps import Target

WHOLE = box(0, 0, 1_000, 2_000)
DIALOG = box(50, 800, 950, 1_200)
BAR = box(0, 0, 1_000, 90)
ROOT = "new UiSelector().instance(0)"


def window(package: str, bounds: Bounds, **fields: Any) -> dict[str, Any]:
    rect = {"left": bounds.left, "top": bounds.top, "right": bounds.right, "bottom": bounds.bottom}
    return {"packageName": package, "rect": rect, **fields}


def active(package: str, bounds: Bounds, **fields: Any) -> dict[str, Any]:
    return window(package, bounds, isActive=True, displayId=0, **fields)


def other(package: str, bounds: Bounds, **fields: Any) -> dict[str, Any]:
    return window(package, bounds, isActive=False, **{"displayId": 0, **fields})


def root(package: str, bounds: Bounds) -> dict[str, Any]:
    return {ROOT: [Found(bounds, {"package": package})]}


def refused(phone: FakePhone, sought: Target | None = None) -> str:
    with pytest.raises(ActRefused) as caught:
        point(phone, sought or target())
    return str(caught.value)


@pytest.mark.parametrize(
    ("windows", "over"),
    [
        ([window("com.other", WHOLE), window("a", WHOLE)], "a window of com.other"),
        ([window("com.other", box(0, 1_000, 1_000, 2_000)), window("a", WHOLE)], None),  # a keyboard, further down
        ([window("com.android.systemui", WHOLE), window("a", WHOLE)], None),
        ([window("a", WHOLE), window("com.other", WHOLE)], None),
        ([window("com.other", WHOLE)], None),  # the app is not there: that is for the look-up to say
        ([{"packageName": None, "rect": None}, window("a", WHOLE)], None),
        ([other("com.other", WHOLE), active("a", WHOLE)], "a window of com.other"),
        ([other("a", box(0, 0, 500, 500)), active("a", WHOLE)], "another window of a"),  # a menu without the focus
        ([other("ime", WHOLE, type=2), active("a", WHOLE)], "the keyboard"),
        ([active("a", WHOLE, layer=3), other("com.other", WHOLE, layer=2)], None),
        ([active("a", WHOLE, layer=1), other("com.other", WHOLE, layer=2)], "a window of com.other"),  # in no order
        ([other("com.other", WHOLE, displayId=1), active("a", WHOLE)], None),  # on another display
    ],
)
def test_target_in_the_active_window_is_under_what_lies_above_that(windows: list[Any], over: str | None) -> None:
    phone = FakePhone({".resourceId": [SEEN]}, windows=windows)
    if over is None:
        assert point(phone, target()) == AT
    else:
        assert refused(phone) == f"OCCLUDED: button 'Save' lies under {over} now; deal with that first"


DIALOGS: list[tuple[str, Bounds, dict[str, Any], str, str]] = [
    ("a", DIALOG, {}, "OCCLUDED", "a dialog of a"),  # the app's own, wherever the target was
    ("a", box(0, 50, 900, 600), {}, "OCCLUDED", "a dialog of a"),
    ("a", box(0, 50, 900, 600), {"resource_id": "android:id/button1", "app": "a"}, "STALE_SCENE", ""),  # was in it
    ("com.other", DIALOG, {}, "OCCLUDED", "a dialog of com.other"),
    ("com.google.android.permissioncontroller", DIALOG, {}, "OCCLUDED", "a dialog of com.google.android.perm"),
    ("android", WHOLE, {}, "OCCLUDED", "a dialog of android"),
    ("android", DIALOG, {"resource_id": "android:id/aerr_wait", "app": "android"}, "STALE_SCENE", ""),
    ("a", WHOLE, {}, "STALE_SCENE", ""),  # another page
    ("com.other", WHOLE, {}, "STALE_SCENE", ""),  # another app
]


@pytest.mark.parametrize("tells_windows", [True, False])
@pytest.mark.parametrize(("package", "bounds", "sought", "code", "over"), DIALOGS)
def test_target_that_is_not_in_the_active_window_is_under_it_where_that_is_a_dialog(
    package: str, bounds: Bounds, sought: dict[str, Any], code: str, over: str, tells_windows: bool
) -> None:
    bar = other("com.android.systemui", BAR)
    windows = [bar, active(package, bounds)] if tells_windows else None
    said = refused(FakePhone(root(package, bounds), windows=windows), target(**sought))
    assert said.startswith(f"{code}: button 'Save'")
    assert over in said


@pytest.mark.parametrize("sheet", ["a:id/design_bottom_sheet", "a:id/touch_outside", "android:id/parentPanel"])
@pytest.mark.parametrize("windows", [None, [active("a", WHOLE)]])
def test_sheet_whose_window_is_as_large_as_the_screen_is_known_by_its_parts(sheet: str, windows: Any) -> None:
    phone = FakePhone({**root("a", WHOLE), f'.resourceId("{sheet}")': [DIALOG]}, windows=windows)
    assert "OCCLUDED: button 'Save' lies under a dialog of a now" in refused(phone)
    gone = target(resource_id=sheet)
    assert "STALE_SCENE" in refused(FakePhone(root("a", WHOLE), windows=windows), gone)


KEYBOARD = [other("ime", box(0, 50, 1_000, 800), type=2), active("a", WHOLE)]


def test_key_of_a_keyboard_is_looked_up_in_all_windows_and_acted_on() -> None:
    key = target(resource_id="ime:id/enter")
    assert point(FakePhone({"id ime:id/enter": [SEEN]}, windows=KEYBOARD), key) == AT
    moved = FakePhone({"id ime:id/enter": [box(0, 400)]}, windows=KEYBOARD)
    assert point(moved, key) == Point(x=150, y=420)
    described = target(resource_id=None, description="Enter")
    assert point(FakePhone({"accessibility id Enter": [SEEN]}, windows=KEYBOARD), described) == AT


def test_target_that_went_from_the_active_window_is_not_looked_for_among_its_like_elsewhere() -> None:
    """Its id is still there with another text; what has its text elsewhere is something else."""
    found = {'.resourceId("ime:id/enter").text("Go")': [], '.resourceId("ime:id/enter")': [box(0, 400)]}
    both = {**found, "id ime:id/enter": [SEEN]}
    assert "STALE_SCENE" in refused(FakePhone(both, windows=KEYBOARD), target(resource_id="ime:id/enter", text="Go"))
    assert "STALE_SCENE" in refused(FakePhone({}, windows=KEYBOARD))


def test_target_known_by_its_text_alone_is_not_taken_for_a_key_of_the_keyboard_over_it() -> None:
    said = refused(FakePhone({}, windows=KEYBOARD), target(resource_id=None, text="Save"))
    assert said.startswith("OCCLUDED: button 'Save' lies under the keyboard now")


def test_words_of_a_row_that_another_apps_dialog_says_are_not_the_row() -> None:
    row = Target(element="e1", role="row", label="Battery", bounds=SEEN, class_name="C", app="a")
    phone = FakePhone({'"Battery"': [box(10, 110, 150, 150)]}, windows=[active("android", DIALOG)])
    assert "OCCLUDED: row 'Battery' lies under a dialog of android now" in refused(phone, row)
    own = FakePhone({'"Battery"': [box(10, 110, 150, 150)]}, windows=[active("a", WHOLE)])
    assert point(own, row) == AT


def test_driver_without_a_list_of_windows_is_asked_for_it_once() -> None:
    phone = FakePhone({".resourceId": [SEEN]}, windows=None)
    assert point(phone, target()) == AT
    assert phone.asked == ['new UiSelector().resourceId("a:id/x")']


def test_root_that_goes_away_while_it_is_measured_tells_nothing() -> None:
    phone = FakePhone({ROOT: [Found(StaleElementReferenceException("m"), {"package": "a"})]})
    assert "STALE_SCENE" in refused(phone)


@pytest.mark.parametrize(("alert", "covered"), [(box(0, 50, 500, 500), False), (box(0, 500, 500, 900), True)])
def test_what_is_not_in_the_alert_that_is_up_is_refused_where_ios_has_no_hit_test(alert: Bounds, covered: bool) -> None:
    phone = FakePhone({"Alert": [alert], "name": [SEEN]}, platform="ios")
    if covered:
        assert "OCCLUDED: button 'Save' lies under an alert now" in refused(phone)
    else:
        assert point(phone, target()) == AT


@pytest.mark.parametrize(
    ("hittable", "around", "over"),
    [
        ("true", {"Alert": [box(0, 500, 500, 900)]}, None),  # the hit test knows better than geometry
        ("false", {"Alert": [box(0, 500, 500, 900)]}, "an alert"),
        ("false", {"Keyboard": [box(0, 100, 1_000, 2_000)]}, "the keyboard"),
        ("false", {"Keyboard": [box(0, 1_000, 1_000, 2_000)]}, "something"),
        ("false", {}, "something"),
        ("null", {}, None),
    ],
)
def test_hit_test_of_xcuitest_tells_covered_from_free(hittable: str, around: dict[str, Any], over: str | None) -> None:
    phone = FakePhone({**around, "name": [Found(SEEN, {"hittable": hittable})]}, platform="ios")
    if over is None:
        assert point(phone, target()) == AT
    else:
        assert refused(phone) == f"OCCLUDED: button 'Save' lies under {over} now; deal with that first"


def test_row_on_ios_is_free_where_one_part_of_it_can_be_hit() -> None:
    row = Target(element="e1", role="row", label="Battery", bounds=SEEN, class_name="C")
    inside = box(10, 110, 150, 150)
    hidden, free = Found(inside, {"hittable": "false"}), Found(SEEN, {"hittable": "true"})
    assert point(FakePhone({'"Battery"': [hidden, free]}, platform="ios"), row) == AT
    assert "OCCLUDED" in refused(FakePhone({'"Battery"': [hidden, hidden]}, platform="ios"), row)


def test_ios_row_whose_label_has_changed_is_acted_on_only_at_its_place() -> None:
    row = target("row", description="Bob, online")
    at_place = FakePhone({"label": [], "name": [SEEN, box(0, 300)]}, platform="ios")
    assert point(at_place, row) == AT
    moved = FakePhone({"label": [], "name": [box(0, 300), box(0, 450)]}, platform="ios")
    assert "STALE_SCENE: row 'Save' has moved" in refused(moved, row)
    told_apart = FakePhone({"label": [box(0, 300)], "name": [SEEN, box(0, 300)]}, platform="ios")
    assert point(told_apart, row) == Point(x=150, y=320)
