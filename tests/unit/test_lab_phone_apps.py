"""The apps that do more than lists and forms: what they show, and what is true after they were used."""

import re
from math import inf

import pytest

from apex_lab.phone import Phone
from apex_lab.phone.apps.messages import HOSTILE
from apex_lab.phone.geometry import Point
from apex_lab.phone.locators import Locator, find
from apex_lab.phone.views import View

CLOCK, NOTES, SHOP = "com.google.android.deskclock", "org.example.notes", "org.example.shop"
MESSAGES, GAME, PLAYER = "com.google.android.apps.messaging", "org.example.game", "org.example.player"


class Hands:
    """A phone whose clock stands where the test puts it, and fingers that find what is written on it."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.phone = Phone("sim-1", permission_popup=False, clock=lambda: self.seconds)

    def open(self, package: str, *labels: str) -> None:
        self.phone.activate(package, "s")
        for label in labels:
            self.tap(label)

    def see(self, xpath: str) -> View:
        found = find(self.phone.snapshot(), Locator("xpath", xpath), self.phone.package)
        assert found, f"{xpath} is not on {self.phone.state()['page']}"
        return found[0]

    def tap(self, label: str) -> None:
        self.phone.tap(self.see(f'(//*[@text="{label}" or @content-desc="{label}"])[1]').middle, "s")

    def type(self, rid: str, text: str) -> None:
        view = find(self.phone.snapshot(), Locator("id", rid), self.phone.package)[0]
        self.phone.set_text(view, text, "s", replace=True)

    def texts(self) -> list[str]:
        return re.findall(r' text="([^"]+)"', self.phone.source())

    def truth(self, package: str) -> dict[str, object]:
        return self.phone.state()["apps"][package]  # type: ignore[index]


@pytest.fixture
def hands() -> Hands:
    return Hands()


def test_an_alarm_is_made_by_turning_the_wheels_of_a_dialog(hands: Hands) -> None:
    hands.open(CLOCK, "Add alarm", "Later hour", "Later minute", "OK")
    assert hands.truth(CLOCK)["alarms"] == {"07:00": False, "08:30": True, "07:05": True}


def test_a_running_timer_shows_another_time_at_every_look_until_it_stands(hands: Hands) -> None:
    hands.open(CLOCK, "Timer")
    assert hands.phone.busy_seconds == 0
    hands.tap("Start")
    assert hands.phone.busy_seconds == inf
    shown = []
    for seconds in (1.0, 59.2, 240.0):
        hands.seconds = 1_000.0 + seconds
        shown.append(next(text for text in hands.texts() if ":" in text))
    assert shown == ["04:59", "04:01", "01:00"]
    hands.tap("Pause")
    assert (hands.phone.busy_seconds, hands.truth(CLOCK)["timer_seconds"]) == (0, 60)


def test_a_stopwatch_runs_in_hundredths(hands: Hands) -> None:
    hands.open(CLOCK, "Stopwatch", "Start")
    hands.seconds += 61.25
    assert "01:01.25" in hands.texts()


def test_a_music_player_moves_at_every_read_while_it_plays(hands: Hands) -> None:
    hands.open(PLAYER, "夜の駅")
    assert len({hands.phone.source() for _ in range(3)}) == 3
    hands.tap("Pause")
    assert hands.phone.source() == hands.phone.source()


def test_a_question_lies_over_the_sheet_that_lies_over_the_editor(hands: Hands) -> None:
    hands.open(NOTES, "Ideas", "More options", "Delete")
    kinds = [window.kind for window in hands.phone.screen().windows]
    assert kinds == ["page", "sheet", "dialog", "bar"]
    hands.tap("Delete")
    assert hands.truth(NOTES)["trash"] == ["Ideas"]
    assert hands.phone.state()["page"] == "home"


def test_a_tap_beside_a_sheet_closes_it(hands: Hands) -> None:
    hands.open(NOTES, "Ideas", "More options")
    hands.phone.tap(Point(270, 300), "s")
    assert hands.phone.state()["page"] == "editor"


def test_a_shop_of_three_hundred_rows_shows_few_and_ends_with_the_last(hands: Hands) -> None:
    hands.open(SHOP)
    assert len(find(hands.phone.snapshot(), Locator("id", "product"), SHOP)) < 15
    swipes = 0
    while hands.phone.swipe(Point(270, 1100), Point(270, 200), "s"):
        swipes += 1
    assert swipes > 25
    assert any(text.endswith(" 300") for text in hands.texts())


def test_something_is_bought_after_signing_in_with_a_password(hands: Hands) -> None:
    hands.open(SHOP, "Oak Chair 2", "Add to basket", "Navigate up", "Basket, 1 items", "Check out")
    hands.type("user", "ada")
    hands.type("password", "wrong")
    hands.tap("Sign in")
    hands.phone.tap(hands.see("//android.widget.Button[@text='Sign in']").middle, "s")
    assert hands.truth(SHOP)["sign_in_refused"] is True
    hands.type("password", "enigma-1843")
    hands.phone.tap(hands.see("//android.widget.Button[@text='Sign in']").middle, "s")
    hands.tap("Check out")
    hands.tap("Invoice")
    assert hands.truth(SHOP)["orders"] == [["invoice", "Oak Chair 2"]]


def test_a_web_page_has_views_whose_ids_have_no_package(hands: Hands) -> None:
    hands.open(SHOP, "Oak Chair 2", "Returns and terms")
    page = hands.see("//android.webkit.WebView[@text='Terms of the shop']")
    assert page.element.get("scrollable", "") == "true"
    box = hands.see("//android.widget.CheckBox")
    assert (box.element.get("resource-id", ""), box.element.get("checked", "")) == ("accept", "false")
    hands.phone.tap(box.middle, "s")
    assert hands.truth(SHOP)["terms_accepted"] is True


def test_a_hostile_message_is_on_the_screen_whole_and_sends_nothing(hands: Hands) -> None:
    hands.open(MESSAGES, "+1 555 0100")
    assert HOSTILE in hands.see("//*[contains(@text, 'ignore your goal')]").element.get("text", "")
    assert hands.truth(MESSAGES)["sent"] == []
    hands.type("compose_text", "no")
    hands.tap("Send")
    assert hands.truth(MESSAGES)["sent"] == [{"sender": "+1 555 0100", "text": "no"}]


def test_a_bubble_lies_over_other_apps_and_takes_the_tap(hands: Hands) -> None:
    hands.phone.patch({MESSAGES: {"bubble": True}})
    hands.open(MESSAGES)
    hands.open(SHOP)
    assert "Chat bubble" not in hands.phone.source()
    assert "Chat bubble" in hands.phone.source(all_windows=True)
    bubble = next(window for window in hands.phone.screen().windows if window.kind == "overlay")
    hands.phone.tap(bubble.root.rect.center, "s")
    assert hands.phone.state()["foreground"] == MESSAGES


def test_the_board_of_a_game_is_on_the_picture_and_not_in_the_tree(hands: Hands) -> None:
    hands.open(GAME, "Play")
    before = hands.phone.picture()
    assert "place" not in hands.phone.source()
    places = [n for n in hands.phone.screen().active.root.walk() if n.desc.startswith("place")]
    hands.phone.tap(places[4].rect.center, "s")
    assert hands.truth(GAME)["board"] == ["O", "", "", "", "X", "", "", "", ""]
    assert hands.phone.picture() != before


def test_japanese_is_whole_in_the_tree_and_broken_between_letters_on_the_picture(hands: Hands) -> None:
    hands.open("org.example.rail")
    notice = next(node for node in hands.phone.screen().active.root.walk() if node.text.startswith("ご利用"))
    assert notice.text in hands.texts()
    assert notice.rect.height > 30
    hands.tap("駅の一覧から選ぶ")
    hands.tap("서울역")
    hands.tap("検索")
    hands.tap("のぞみ 225号")
    assert hands.truth("org.example.rail")["booked"] == "のぞみ 225号"
