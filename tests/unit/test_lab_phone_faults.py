"""Faults that change what the phone shows, and how they are posted."""

import re

import pytest

from apex_lab.phone import Phone
from apex_lab.phone.errors import InvalidArgument
from apex_lab.phone.faults import Faults
from apex_lab.phone.geometry import Point

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
