"""The report in a real browser: nothing scrolls sideways or is fetched, light and dark, on a phone and a desktop."""

import time
from collections.abc import Generator
from pathlib import Path

import components
import pytest
from report_world import LONG, timeline
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from apex_cli.money import Money
from apex_cli.report.page import page

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.xdist_group("cli-report")]

ARABIC = "شغّل الواي فاي وأخبرني باسم الشبكة 📶"
LONG_WORD = "W" * 400


@pytest.fixture(scope="module")
def browser() -> Generator[webdriver.Chrome]:
    found = components.chromium()
    options = webdriver.ChromeOptions()
    options.binary_location = str(found.chromium)
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,900"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(str(found.driver)))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 turns in Arabic, with emoji, reasons of 10,000 characters and a label without a place to break."""
    written = tmp_path_factory.mktemp("report") / "report.html"
    told = timeline(200, rationale=LONG + ARABIC, label=LONG_WORD, goal=ARABIC)
    written.write_text(page(told, Money(None)), encoding="utf-8")
    return written


def _show(browser: webdriver.Chrome, file: Path, width: int, *, scheme: str = "light") -> None:
    metrics = {"width": width, "height": 850, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(file.as_uri())


@pytest.mark.parametrize("width", [360, 390, 768, 1200])
def test_nothing_is_wider_than_the_screen(browser: webdriver.Chrome, file: Path, width: int) -> None:
    _show(browser, file, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    # Sections below are laid out when they come into view: the last one, and one with its reasons unfolded.
    browser.execute_script("document.querySelectorAll('#t199 details, #t0 details').forEach(d => d.open = true)")
    browser.execute_script("document.getElementById('t199').scrollIntoView()")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_two_hundred_turns_are_shown_within_seconds(browser: webdriver.Chrome, file: Path) -> None:
    begun = time.monotonic()
    _show(browser, file, 1200)
    assert browser.execute_script("return document.querySelectorAll('section.turn').length") == 200
    assert time.monotonic() - begun < 45


def test_light_and_dark_have_readable_colours_of_their_own(browser: webdriver.Chrome, file: Path) -> None:
    contrasts, papers = [], []
    for scheme in ("light", "dark"):
        _show(browser, file, 1200, scheme=scheme)
        ink, paper = browser.execute_script(
            "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        )
        contrasts.append(_contrast(_rgb(ink), _rgb(paper)))
        papers.append(paper)
    assert papers[0] != papers[1]
    assert min(contrasts) > 7


def test_arabic_is_written_from_the_right_and_latin_from_the_left(browser: webdriver.Chrome, file: Path) -> None:
    _show(browser, file, 1200)
    directions = browser.execute_script(
        "return ['h1 bdi', '#t0 .deed bdi'].map(s => getComputedStyle(document.querySelector(s)).direction)"
    )
    assert directions == ["rtl", "ltr"]


def test_nothing_is_fetched_and_nothing_is_complained_of(browser: webdriver.Chrome, file: Path) -> None:
    _show(browser, file, 1200)
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert browser.get_log("browser") == []


def test_the_overview_leads_to_each_turn(browser: webdriver.Chrome, file: Path) -> None:
    _show(browser, file, 1200)
    browser.execute_script("document.querySelector('nav a[href=\"#t150\"]').click()")
    top = browser.execute_script("return document.getElementById('t150').getBoundingClientRect().top")
    assert 0 <= top < 850


def _rgb(css: str) -> tuple[float, ...]:
    return tuple(float(part) / 255 for part in css[css.index("(") + 1 : css.index(")")].split(",")[:3])


def _contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(rgb: tuple[float, ...]) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
