"""Every recorded page source becomes a Scene; what was read by eye in the XML is held here for some of them."""

from pathlib import Path

import components
import pytest

from apex_perception.perceive import perceive
from apex_schemas.geometry import Bounds, Point
from apex_schemas.scene import Element, Scene

DUMPS = sorted(components.DUMPS.glob("*.xml"))


def of(name: str) -> Scene:
    return perceive(next(components.dumps().glob(f"{name}*.xml")).read_bytes())


def named(found: Scene, label: str) -> Element:
    return next(element for element in found.elements if element.label == label)


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
def test_each_recorded_source_becomes_a_sound_scene(dump: Path) -> None:
    found = perceive(dump.read_bytes())
    assert not found.recovered
    size = found.screen.size
    whole = Bounds(left=0, top=0, right=size.width, bottom=size.height)
    for number, element in enumerate(found.elements, start=1):
        assert element.id == f"e{number}"
        assert (element.tap_point is None) == (element.obstacle is not None)
        if element.tap_point is not None:
            assert element.bounds is not None
            assert whole.contains(element.tap_point)
            assert element.bounds.contains(element.tap_point)


def test_the_median_screen_has_few_elements() -> None:
    components.dumps()
    counts = sorted(len(perceive(dump.read_bytes()).elements) for dump in DUMPS)
    assert counts[len(counts) // 2] <= 20
    assert counts[-1] <= 40


def test_settings_in_english_is_its_eleven_rows_and_two_buttons() -> None:
    found = of("001")
    assert found.page == "Settings"
    assert [element.role for element in found.elements] == ["row", "button", "scroll", *["row"] * 10]
    network = named(found, "Network & internet, Wi‑Fi, mobile, data usage, and hotspot")
    assert network.bounds == Bounds(left=0, top=397, right=1080, bottom=597)
    assert network.tap_point == Point(x=540, y=497)
    # The profile picture lies on the search bar's right end, so that the bar is tapped on its left.
    assert named(found, "Search settings").tap_point == Point(x=(22 + 926) // 2, y=154)


def test_alarms_have_their_switches_told_apart_by_what_stands_in_their_cards() -> None:
    found = of("009")
    switches = [(e.label, e.checked) for e in found.elements if e.role == "switch"]
    assert switches == [("8:30\u200aAM, Mon, Tue, Wed, Thu, Fri", False), ("9:00\u200aAM, Sun, Sat", False)]
    assert [(e.label, e.selected) for e in found.elements if e.role == "tab"] == [
        ("Alarm", True), ("Clock", False), ("Timer", False), ("Stopwatch", False), ("Bedtime", False),
    ]  # fmt: skip
    card = next(element for element in found.elements if element.label.startswith("Alarm, Mon"))
    assert card.tap_point is not None
    inner = [e for e in found.elements if e.parent == card.id]
    assert len(inner) == 3
    assert not any(e.bounds and e.bounds.contains(card.tap_point) for e in inner)


def test_date_and_time_in_japanese_has_switch_rows_and_disabled_rows() -> None:
    found = of("010")
    assert found.page == "Settings > 日付と時刻"
    assert [(e.label, e.checked) for e in found.elements if e.role == "switch"] == [
        ("日時を自動的に設定", True),
        ("タイムゾーンを自動的に設定", True),
        ("タイムゾーンの設定に位置情報を使用", False),
    ]
    assert [e.label for e in found.elements if not e.enabled] == [
        "日付, 2023年12月15日", "時刻, 14:23", "タイムゾーン, GMT+09:00 日本標準時",
    ]  # fmt: skip


def test_an_error_dialog_alone_keeps_the_size_of_the_screen() -> None:
    found = of("006")
    assert (found.screen.size.width, found.screen.size.height) == (1080, 2088)
    assert [(e.role, e.label) for e in found.elements] == [
        ("dialog", "Settings isn't responding"), ("button", "Close app"), ("button", "Wait"),
    ]  # fmt: skip


def test_ios_settings_lists_its_cells_and_those_further_down() -> None:
    found = of("012")
    rows = [e for e in found.elements if e.role == "row"]
    assert len(rows) == 15
    assert [e.label for e in rows if e.obstacle == "off_screen"] == ["Developer", "app.st"]
    assert rows[0].value == "Set up iCloud, the App Store, and more."


def test_an_ios_form_reaches_below_the_screen_and_shows_no_password() -> None:
    found = of("011")
    passwords = [e for e in found.elements if e.password]
    assert [e.label for e in passwords] == ["Password, (Mandatory)", "Confirm Password, (Mandatory)"]
    assert "password1" not in repr(found)
    assert named(found, "Phone").obstacle == "off_screen"
