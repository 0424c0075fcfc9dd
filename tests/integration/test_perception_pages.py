"""Local pages on a real browser through a real Appium server: what a model reads of them, and where a finger lands.

Each page of tests/appium/pages loads truth.js, which records what a touch really met; the tap point of every element
that has one is touched.
"""

from collections.abc import Callable
from typing import Any

import pytest
from appium import webdriver
from selenium.webdriver.remote.command import Command

from apex_perception.appium import AppiumPhone
from apex_perception.perceive import View, perceive
from apex_planner.scene_text import write_scene
from apex_schemas.devices import SessionHandle
from apex_schemas.geometry import Bounds, Point
from apex_schemas.scene import Scene

pytest_plugins = ("integration.appium_server",)
pytestmark = [pytest.mark.appium, pytest.mark.chromium, pytest.mark.slow]

Open = Callable[..., webdriver.Remote]

PAGES = {
    "form": [
        'text "Sign up"', 'e2 field "Full name" ="Zoë 李"', 'e3 field "E-mail" empty hint="you@example.org"',
        'e4 field "Password" password filled', 'e5 field "About you" ="Two lines"', 'e6 select "Country" ="日本"',
        'text "Plan"', 'e8 radio "Free" on', 'e9 radio "Paid" off', 'e10 checkbox "Newsletter" on',
        'e12 slider "Volume" ="7"', 'e13 button "Later" disabled', 'e14 button "Create account"',
    ],
    "modal": [
        'text "Basket"', 'e2 button "Buy now" covered', 'text "One thing, 12 €"', 'text "Pay 12 €?"',
        '  e6 button "Pay"', '  e7 button "Cancel"',
    ],
    "overlay": [
        'e1 link "News of the day" covered', 'text "Cookies"', '  text "We value your privacy."',
        '  e4 button "Accept all"', '  e5 button "Reject"',
    ],
    "canvas": ["e1 canvas"],
    "frames": [
        'e1 button "Outside"', "e2 web scrolls (more below)", '  e3 button "Inside"',
        '  text "The frame is longer than its window."', '  e5 button "Below the fold" off-screen',
        'e6 web "Advertisement"',
    ],
    "shadow": ['text "Weather"', 'text "18 degrees"', 'e3 button "More"', 'e4 switch "Dark mode" on', "e5 web"],
    "rtl": [
        'text "المتجر"', 'e2 field "بحث" empty hint="اسم المنتج"', 'e3 button "ابحث"', "e4 scroll scrolls (more left)",
        '  e5 button "كتب"', '  e6 button "أقلام"', '  e7 button "دفاتر" off-screen', '  e8 button "حقائب" off-screen',
    ],
    "clipped": [
        'e1 button "Two"', 'text "A card"', 'e3 button "Escapes"', 'e4 button "Chat"', "e5 scroll scrolls (more below)",
        '  e6 button "A"', '  e7 button "B"', '  e8 button "C" off-screen',
    ],
    "icons": [
        'e1 button "Play"', 'e2 button "Next track"', 'e3 checkbox "Like" on', 'e4 button "Share"',
        'e5 link "Album art"', 'e6 row "Morning mix, 24 songs"', 'e7 button "×"', 'text "Position" ="40 %"',
    ],
    "widgets": [
        'e1 tab "General" selected', 'e2 tab "Privacy"', 'text "Language"', 'e4 button "English"',
        'e5 select "Font" ="Serif"', 'e6 switch "Wi-Fi" off', 'e7 checkbox "Select all" off', 'e8 button "Advanced"',
        'e9 field "Note" ="Buy milk"', 'e10 link "Delete account" disabled', 'text "Version 1.0"',
    ],
    "covered": [
        'e1 button "Half free"', 'e2 button "Under a lid" covered', 'e3 button "Under glass"', 'e4 button "Open card"',
        '  e5 button "Remove"',
    ],
    "article": [
        'text "Some words come first, and then there is"',
        'e2 link "a link which begins near the end of a line and goes on for two more lines"', 'text "before it ends."',
        'text "Short:"', 'e5 link "here"', 'text "."', 'text "ขอบคุณ —"', 'e8 link "ภาษาไทย"',
    ],
    "desktop": ['e1 button "Far right"', 'e2 button "Further down"'],
}  # fmt: skip


class Browser:
    """A session of the browser, as perception sees it and as a finger meets it."""

    def __init__(self, driver: Any, pages: str) -> None:
        self.driver, self._pages = driver, pages
        url = driver.command_executor._client_config.remote_server_addr
        self.handle = SessionHandle(id=driver.session_id, url=url, web=True)

    def show(self, page: str) -> Scene:
        self.driver.get(f"{self._pages}/{page}.html")
        return self.see()

    def see(self) -> Scene:
        return perceive(self.answer(), View())

    def answer(self) -> bytes:
        """What the page's script answers."""
        phone = AppiumPhone(self.handle, timeout_s=20)
        try:
            return phone.source()
        finally:
            phone.close()

    def met_at(self, point: Point, scale: float) -> str | None:
        """The id of what a touch at a point of the Scene meets."""
        place = {"x": round(point.x / scale), "y": round(point.y / scale), "origin": "viewport"}
        moves = [
            {"type": "pointerMove", "duration": 0, **place},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        finger = {"type": "pointer", "id": "finger", "parameters": {"pointerType": "touch"}, "actions": moves}
        self.driver.execute_script("met.length = 0")
        self.driver.execute(Command.W3C_ACTIONS, {"actions": [finger]})
        met = self.driver.execute_script("return met")
        return met[-1] if met else None

    def wrong(self, scene: Scene) -> list[tuple[str, str | None]]:
        """What was meant and what was met, for every interactive element whose tap point meets something else."""
        tried = [e for e in scene.elements if e.interactive and e.tap_point is not None]
        met = [(e.resource_id or "", self.met_at(e.tap_point, scene.screen.scale)) for e in tried if e.tap_point]
        return [(meant, found) for meant, found in met if meant != found]


@pytest.fixture
def browser(chromium_phone: Open, local_pages: str) -> Browser:
    return Browser(chromium_phone(), local_pages)


def test_each_page_reads_as_a_person_would_tell_it_and_each_tap_meets_its_element(browser: Browser) -> None:
    for name, expected in PAGES.items():
        scene = browser.show(name)
        assert write_scene(scene).split("\n")[1:-1] == expected, name
        assert browser.wrong(scene) == [], name


def test_rows_under_a_sticky_header_or_a_fixed_footer_are_covered_and_those_far_below_are_counted(
    browser: Browser,
) -> None:
    scene = browser.show("sticky")
    by_label = {element.label: element for element in scene.elements}
    assert by_label["Order 1"].obstacle == "occluded"
    assert by_label["Order 2"].obstacle is None
    assert by_label["Order 20"].obstacle == "off_screen"
    assert "Order 40" not in by_label
    assert scene.omitted > 0
    assert scene.elements[0].more == ("above", "below")
    assert browser.wrong(scene) == []


def test_a_page_of_thousands_of_links_and_an_endless_word_is_bounded(browser: Browser) -> None:
    scene = browser.show("long-list")
    links = [element for element in scene.elements if element.role == "link"]
    assert len(links) + scene.omitted == 5_000
    assert len(browser.answer()) < 60_000
    assert len(write_scene(scene)) < 4_000
    assert browser.wrong(scene) == []


def test_a_page_inside_an_app_takes_the_place_of_what_the_phone_made_of_it(browser: Browser) -> None:
    """The browser's viewport of 412 x 915 stands for a web view half as wide and high, below a native bar."""
    browser.show("form")
    native = (
        '<hierarchy rotation="0" width="206" height="540">'
        '<node class="android.widget.FrameLayout" package="com.shop.app" bounds="[0,0][206,540]">'
        '<node class="android.widget.Button" text="Back" clickable="true" bounds="[0,0][60,40]"/>'
        '<node class="android.webkit.WebView" scrollable="true" bounds="[0,60][206,518]">'
        '<node class="android.view.View" text="what the phone made of it" bounds="[0,60][206,90]"/></node>'
        "</node></hierarchy>"
    )
    alone = browser.see()
    scene = perceive(native.encode(), View(platform="android", page=browser.answer()))
    assert [e.label for e in scene.elements] == ["Back", *(e.label for e in alone.elements)]
    name = next(element for element in scene.elements if element.label == "Full name")
    same = next(element for element in alone.elements if element.label == "Full name")
    assert name.bounds is not None
    assert same.bounds is not None
    quarter = Bounds(
        left=round(same.bounds.left / 4), top=60 + round(same.bounds.top / 4),
        right=round(same.bounds.right / 4), bottom=60 + round(same.bounds.bottom / 4),
    )  # fmt: skip
    edges = zip(
        (name.bounds.left, name.bounds.top, name.bounds.right, name.bounds.bottom),
        (quarter.left, quarter.top, quarter.right, quarter.bottom),
        strict=True,
    )
    assert all(abs(one - other) <= 1 for one, other in edges)
    assert (name.context, name.resource_id, name.editable) == ("web", None, True)
