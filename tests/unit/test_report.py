"""The report of a task: whole, self-contained, and made of text that stays text, however long and whatever is in it."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_world import HOSTILE, LONG, scene, step, timeline

from apex_cli.money import Money
from apex_cli.report.changes import between
from apex_cli.report.page import page
from apex_cli.report.wireframe import wireframe
from apex_schemas.geometry import Bounds
from apex_schemas.queries import SceneBox, TimelineScene

NO_PRICES = Money(None)
VOID = {"meta", "rect", "circle", "line", "br"}


class Reader(HTMLParser):
    """Knows the tags that are open, and what is written where."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_two_hundred_turns_have_a_section_each_and_the_page_stays_of_a_size_that_can_be_sent() -> None:
    written = page(timeline(200), NO_PRICES)
    reader = read(written)
    assert reader.ids == [f"t{turn}" for turn in range(200)]
    assert len(written) < 25_000_000


def test_a_long_rationale_is_there_to_the_last_character_and_folded() -> None:
    reader = read(page(timeline(1, rationale=LONG), NO_PRICES))
    assert LONG.strip() in "".join(reader.words)
    assert "details" in reader.tags
    assert f"all {len(LONG.strip()):,} characters" in "".join(reader.words)


def test_the_page_asks_for_nothing_from_anywhere() -> None:
    written = page(timeline(3), NO_PRICES)
    reader = read(written)
    assert {"script", "link", "img", "iframe", "object", "form"}.isdisjoint(reader.tags)
    assert all(link.startswith("#") for link in reader.links)
    assert "default-src 'none'" in written
    assert not re.search(r"url\(|@import|https?://", written)


@pytest.mark.parametrize("words", HOSTILE)
def test_what_a_screen_or_a_model_says_is_text_and_nothing_else(words: str) -> None:
    written = page(timeline(2, rationale=words, label=words, goal=words), NO_PRICES)
    reader = read(written)
    assert {"script", "img", "b2"}.isdisjoint(reader.tags)
    assert "\x1b" not in written
    assert "\u202e" not in written


@given(st.text(max_size=60))
def test_any_text_leaves_the_page_well_formed(words: str) -> None:
    reader = read(page(timeline(1, rationale=words, label=words, goal=words or "-"), NO_PRICES))
    assert reader.ids == ["t0"]


def test_right_to_left_text_has_a_direction_of_its_own() -> None:
    written = page(timeline(1, rationale="المفتاح مغلق", goal="شغّل الواي فاي"), NO_PRICES)
    assert '<bdi dir="auto">شغّل الواي فاي</bdi>' in written
    assert '<p class="rationale" dir="auto">المفتاح مغلق</p>' in written


def test_the_head_tells_goal_status_trace_tokens_and_what_was_not_found() -> None:
    words = " ".join(read(page(timeline(2), NO_PRICES, made_at=datetime(2026, 1, 2, tzinfo=UTC))).words)
    for part in ("turn on Wi-Fi", "succeeded", "0123456789abcdef0123456789abcdef", "200 in", "2026-01-02", "sim-1"):
        assert part in words
    assert "its evidence was not found on the screen" in words


def test_the_finger_is_drawn_where_the_act_was_and_a_swipe_as_its_way() -> None:
    tap = wireframe(step(0, arguments={"at": {"x": 540, "y": 300}}))
    assert 'class="finger" cx="540" cy="300"' in tap
    swipe = wireframe(step(0, action="swipe", arguments={"start": {"x": 1, "y": 2}, "end": {"x": 3, "y": 4}}))
    assert 'class="way" x1="1" y1="2" x2="3" y2="4"' in swipe


def test_an_act_without_an_effect_that_could_be_seen_says_so() -> None:
    told = timeline(2)
    first = msgspec.structs.replace(told.steps[0], effect_seen=False)
    words = "".join(read(page(msgspec.structs.replace(told, steps=(first, told.steps[1])), NO_PRICES)).words)
    assert words.count("no change on the screen") == 1


def test_a_turn_without_a_screen_on_record_says_so() -> None:
    assert "no screen is on record" in wireframe(step(0, scene=None))
    assert "their places were not kept" in wireframe(step(0, scene=TimelineScene(width=9, height=9, elements=4)))


def test_what_came_went_and_changed_since_the_turn_before_is_told() -> None:
    before = scene("Wi-Fi", "Bluetooth", checked=False)
    after = scene("Wi-Fi", "Lab-5G", checked=True)
    changes = between(before, after)
    assert changes is not None
    assert (changes.came, changes.went) == (("Lab-5G",), ("Bluetooth",))
    assert changes.changed == ("Wi-Fi: off → on",)
    same = between(before, before)
    assert same is not None
    assert same.none
    assert between(None, after) is None


def test_a_label_that_stands_twice_is_no_change() -> None:
    row = SceneBox(element="e1", role="text", label="Row", bounds=Bounds(left=0, top=0, right=9, bottom=9))
    twice = TimelineScene(width=9, height=9, boxes=(row, row))
    changes = between(twice, twice)
    assert changes is not None
    assert changes.none
