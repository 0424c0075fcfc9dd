"""Faults that change what the phone shows, and how they are posted."""

import re

import pytest

from apex_lab.phone import Phone
from apex_lab.phone.errors import InvalidArgument, UnknownError
from apex_lab.phone.faults import Faults
from apex_lab.phone.geometry import Point
from apex_lab.phone.locators import Locator, find
from apex_lab.phone.views import View

SETTINGS = "com.android.settings"


def titles(phone: Phone) -> list[str]:
    return re.findall(r' text="([^"]+)" resource-id="android:id/title"', phone.source())


def test_posted_faults_add_up_and_null_ends_one() -> None:
    faults = Faults().changed({"latency_ms": {"source": 250}, "shuffle": 3}).changed({"shuffle": None})
    assert (faults.latency("source"), faults.latency("actions"), faults.shuffle) == (0.25, 0.0, None)


@pytest.mark.parametrize("posted", [{"latencyms": 3}, {"latency_ms": "soon"}, [], {"session_death": "sometime"}])
def test_what_is_no_fault_is_refused_with_the_known_names(posted: object) -> None:
    with pytest.raises(InvalidArgument):
        Faults().changed(posted)


def test_relabelled_screens_rename_texts_and_ids_and_still_work() -> None:
    phone = Phone("sim-1")
    phone.faults = Faults(relabel={"Network & internet": "Verbindungen", "recycler_view": "liste"})
    phone.launch(SETTINGS)
    assert titles(phone)[0] == "Verbindungen"
    assert f'resource-id="{SETTINGS}:id/liste"' in phone.source()
    phone.tap(Point(270, 170), "s")
    assert phone.state()["page"] == "network"
    assert phone.swipe(Point(270, 900), Point(270, 500), "s") == 0


def test_shuffled_lists_hold_the_same_rows_in_another_order_each_time_the_same() -> None:
    plain, one, two = (Phone(f"sim-{n}", height=4000) for n in range(3))
    one.faults = two.faults = Faults(shuffle=7)
    for phone in (plain, one, two):
        phone.launch(SETTINGS)
    assert titles(one) == titles(two) != titles(plain)
    assert sorted(titles(one)) == sorted(titles(plain))


def test_an_animated_screen_reads_differently_every_time() -> None:
    phone = Phone("sim-1")
    phone.launch(SETTINGS)
    assert phone.source() == phone.source()
    phone.faults = Faults(animate=True)
    phone.changed()
    assert len({phone.source() for _ in range(3)}) == 3


def test_a_slow_app_shows_nothing_of_its_own_until_its_time_has_come() -> None:
    now = [100.0]
    phone = Phone("sim-1", clock=lambda: now[0])
    phone.faults = Faults(slow_start_ms=800)
    phone.launch(SETTINGS)
    assert titles(phone) == []
    now[0] += 0.79
    assert titles(phone) == []
    now[0] += 0.01
    assert "Display" in titles(phone)
    phone.key(3, "s")
    phone.launch(SETTINGS)
    assert "Display" in titles(phone)


def test_a_popup_takes_the_tap_that_was_meant_for_the_screen_under_it() -> None:
    phone = Phone("sim-1")
    phone.launch(SETTINGS)
    phone.popup()
    assert phone.package == "android"
    phone.tap(Point(270, 170), "s")
    assert phone.state()["foreground"] == SETTINGS
    assert phone.state()["page"] == "home"
    assert phone.package == SETTINGS


def field(phone: Phone) -> View:
    """The name of a new contact."""
    phone.permission_popup = False
    phone.launch("com.android.contacts")
    if phone.state()["page"] == "home":
        phone.tap(find(phone.snapshot(), Locator("accessibility id", "Create contact"), phone.package)[0].middle, "s")
    return find(phone.snapshot(), Locator("id", "name"), phone.package)[0]


def typed(phone: Phone, *texts: str) -> str:
    for text in texts:
        phone.set_text(field(phone), "", "s", replace=True)
        phone.set_text(field(phone), text, "s", replace=False)
    return str(phone.state()["apps"]["com.android.contacts"]["draft"].get("name", ""))  # type: ignore[index]


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        (None, "Zoë +@1"),
        ("appended", "oldZoë +@1"),
        ("truncated", "Zoë "),
        ("ascii_dropped", "Zo +@1"),
        ("nothing", ""),
    ],
)
def test_typed_text_becomes_what_the_fault_makes_of_it(fault: str | None, shown: str) -> None:
    phone = Phone("sim-1")
    phone.faults = Faults().changed({"typing": fault})
    assert typed(phone, "old", "Zoë +@1") == shown
    assert [act.value for act in phone.acts.since() if act.kind == "text"] == ["old", "Zoë +@1"]


def test_text_that_the_shell_cannot_type_is_an_error_and_nothing_is_typed() -> None:
    phone = Phone("sim-1")
    phone.faults = Faults(typing="ascii_only")
    with pytest.raises(UnknownError, match="null array"):
        typed(phone, "Zoë")
    assert typed(phone, "Zoe") == "Zoe"


def test_no_keyboard_comes_up_while_the_device_is_left_on_another_input_method() -> None:
    phone = Phone("sim-1")
    phone.faults = Faults(ime_left=True)
    view = field(phone)
    assert not phone.keyboard_shown
    assert "keyboard_view" not in phone.source(all_windows=True)
    phone.set_text(view, "x", "s", replace=True)
    phone.faults = Faults()
    phone.changed()
    assert phone.keyboard_shown


def test_a_stuck_list_takes_swipes_and_stays_where_it_is() -> None:
    phone = Phone("sim-1")
    phone.launch(SETTINGS)
    phone.faults = Faults(stuck_scroll=True)
    before = phone.source()
    assert phone.swipe(Point(270, 900), Point(270, 300), "s") == 0
    assert phone.source() == before
    phone.faults = Faults()
    assert phone.swipe(Point(270, 900), Point(270, 300), "s") == 600


@pytest.mark.parametrize(
    ("launch", "message"), [("not_exported", "not exported from uid"), ("no_activity", "launchable activity of")]
)
def test_an_app_that_must_not_be_started_is_an_error_and_no_act(launch: str, message: str) -> None:
    phone = Phone("sim-1")
    phone.faults = Faults().changed({"launch": launch})
    with pytest.raises(UnknownError, match=message):
        phone.activate(SETTINGS, "s")
    assert (phone.acts.since(), phone.app_state(SETTINGS)) == ([], 1)


def test_a_start_that_does_nothing_leaves_the_old_app_in_front() -> None:
    phone = Phone("sim-1")
    phone.faults = Faults(launch="nothing")
    phone.activate(SETTINGS, "s")
    assert [act.kind for act in phone.acts.since()] == ["launch"]
    assert phone.state()["foreground"] == "com.android.launcher3"


def test_a_dialog_can_come_with_the_start_of_an_app() -> None:
    phone = Phone("sim-1")
    phone.faults = Faults(launch="popup")
    phone.activate(SETTINGS, "s")
    assert (phone.package, phone.app_state(SETTINGS)) == ("android", 4)
    assert "Battery is low" in phone.source()


def test_a_page_that_slides_in_is_elsewhere_at_each_look_and_rests_when_its_time_has_come() -> None:
    now = [50.0]
    phone = Phone("sim-1", clock=lambda: now[0])
    phone.faults = Faults(transition_ms=400)
    phone.launch(SETTINGS)

    def left() -> int:
        rows = find(phone.snapshot(), Locator("id", "android:id/title"), SETTINGS)
        return rows[0].rect.left if rows else phone.size[0]

    places = []
    for at in (50.0, 50.1, 50.3, 50.399):
        now[0] = at
        places.append(left())
        assert 0 < phone.busy_seconds <= 0.4
    assert places == sorted(places, reverse=True)
    assert len(set(places)) == 4
    now[0] = 50.4
    assert (phone.busy_seconds, phone.state()["rests_in_ms"]) == (0.0, 0)
    assert left() < places[-1]
