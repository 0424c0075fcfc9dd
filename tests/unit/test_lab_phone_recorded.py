"""Recorded phones: which platform, what size, what follows what, from small sources of our own."""

import io
from pathlib import Path

import pytest
from PIL import Image

from apex_lab.phone import recorded_phones
from apex_lab.phone.errors import InvalidElementState, RecordingError, UnknownError
from apex_lab.phone.geometry import Point
from apex_lab.phone.locators import Locator, find

ANDROID = """<hierarchy rotation="0"><node class="android.widget.FrameLayout" package="org.a" bounds="[0,0][400,800]">
<node class="android.widget.EditText" resource-id="org.a:id/name" text="Name" hint="Name" bounds="[40,100][360,160]"/>
<node class="android.widget.Button" text="Go" clickable="true" bounds="[40,200][360,260]"/></node></hierarchy>"""
IOS = """<AppiumAUT><XCUIElementTypeApplication name="Maps" x="0" y="0" width="375" height="667">
<XCUIElementTypeButton name="Start" label="Start" x="10" y="20" width="100" height="40"/></XCUIElementTypeApplication>
</AppiumAUT>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "1.xml").write_text(ANDROID)
    (tmp_path / "2.xml").write_text(ANDROID.replace("Go", "Back"))
    (tmp_path / "3.xml").write_text(IOS)
    return tmp_path


def test_each_platform_in_the_folder_is_a_phone_of_its_own(folder: Path) -> None:
    android, ios = recorded_phones(folder)
    assert (android.udid, android.platform, android.size) == ("rec-android", "Android", (400, 800))
    assert (ios.udid, ios.platform, ios.size, ios.package) == ("rec-ios", "iOS", (375, 667), "Maps")
    assert Image.open(io.BytesIO(ios.picture())).size == (750, 1334)


def test_a_tap_is_logged_with_what_it_hit_and_shows_the_next_screen(folder: Path) -> None:
    android = recorded_phones(folder)[0]
    assert android.source() == ANDROID
    android.tap(Point(200, 230), "s")
    (act,) = android.acts.since()
    assert act.hit is not None
    assert (act.screen, act.hit.text, act.hit.acted) == ("1", "Go", True)
    assert 'text="Back"' in android.source()
    android.tap(Point(200, 230), "s")
    assert android.state()["page"] == "2"


def test_a_phone_that_stays_shows_the_same_screen_after_every_input(folder: Path) -> None:
    android = recorded_phones(folder, advance=False)[0]
    android.tap(Point(200, 230), "s")
    android.activate("org.a", "s")
    assert android.state()["page"] == "1"


def test_typed_text_replaces_the_hint_is_read_back_and_gone_after_reset(folder: Path) -> None:
    android = recorded_phones(folder)[0]
    (field,) = find(android.snapshot(), Locator("id", "name"), "org.a")
    android.set_text(field, "Zoë", "s", replace=False)
    android.set_text(field, "!", "s", replace=False)
    assert 'text="Zoë!"' in android.source()
    android.reset()
    assert android.source() == ANDROID
    (button,) = find(android.snapshot(), Locator("xpath", "//*[@text='Go']"), "org.a")
    with pytest.raises(InvalidElementState):
        android.set_text(button, "x", "s", replace=False)


def test_only_apps_of_the_recordings_can_be_started(folder: Path) -> None:
    android = recorded_phones(folder)[0]
    assert (android.app_state("org.a"), android.app_state("org.b")) == (4, 0)
    with pytest.raises(UnknownError):
        android.activate("org.b", "s")


def test_what_is_no_tree_is_served_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "1.xml").write_bytes(b"null root node returned")
    (phone,) = recorded_phones(tmp_path)
    assert phone.source() == "null root node returned"
    assert list(phone.snapshot().views) == []
    assert Image.open(io.BytesIO(phone.picture())).size == phone.size


def test_an_empty_folder_is_an_error_that_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"\*\.xml"):
        recorded_phones(tmp_path)
