"""What appium-chromium-driver answers through a real Appium 3 server: real pixels, real taps.

Web sessions of perception and executor are built on these answers; tests/appium/README.md lists them.
"""

import io
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import components
import pytest
from appium import webdriver
from appium.webdriver.common.appiumby import AppiumBy
from integration.appium_server import AppiumServer, chromium_capabilities, open_session
from PIL import Image
from selenium.common.exceptions import (
    InvalidSelectorException,
    InvalidSessionIdException,
    JavascriptException,
    MoveTargetOutOfBoundsException,
    UnexpectedAlertPresentException,
    UnknownMethodException,
    WebDriverException,
)

pytest_plugins = ("integration.appium_server",)
pytestmark = [pytest.mark.appium, pytest.mark.chromium, pytest.mark.slow]

Open = Callable[..., webdriver.Remote]


def picture_size(driver: webdriver.Remote) -> tuple[int, int]:
    return Image.open(io.BytesIO(driver.get_screenshot_as_png())).size


def css(driver: webdriver.Remote, selector: str) -> Any:
    return driver.find_element(AppiumBy.CSS_SELECTOR, selector)


def tap_on(driver: webdriver.Remote, selector: str) -> None:
    box = css(driver, selector).rect
    driver.tap([(box["x"] + box["width"] // 2, box["y"] + box["height"] // 2)])


@pytest.mark.parametrize(("ratio", "picture"), [(1.0, (412, 915)), (2.0, (824, 1830)), (2.625, (1082, 2402))])
def test_browser_picture_is_the_viewport_times_its_scale_and_the_window_rect_is_neither(
    chromium_phone: Open, local_pages: str, ratio: float, picture: tuple[int, int]
) -> None:
    driver = chromium_phone(pixel_ratio=ratio)
    driver.get(f"{local_pages}/counter.html")
    assert driver.execute_script("return [innerWidth, innerHeight, devicePixelRatio]") == [412, 915, ratio]
    assert picture_size(driver) == picture
    assert {driver.get_window_rect()[side] for side in ("width", "height")}.isdisjoint({*picture, 412, 915})


def test_browser_source_is_the_live_html_without_bounds(chromium_phone: Open, local_pages: str) -> None:
    driver = chromium_phone()
    driver.get(f"{local_pages}/counter.html")
    tap_on(driver, "#add")
    source = driver.page_source
    assert source.startswith('<html lang="en"><head>')
    assert '<span id="count">1</span>' in source
    assert "bounds=" not in source


@pytest.mark.parametrize("ratio", [1.0, 2.625])
def test_a_touch_in_css_pixels_changes_the_page_at_any_scale(
    chromium_phone: Open, local_pages: str, ratio: float
) -> None:
    driver = chromium_phone(pixel_ratio=ratio)
    driver.get(f"{local_pages}/counter.html")
    assert css(driver, "#add").rect == {"x": 20, "y": 80, "width": 200, "height": 48}
    driver.tap([(120, 104)])
    assert css(driver, "#count").text == "1"
    assert css(driver, "#log").text == "pointerdown:touch touchstart: click:touch"
    tap_on(driver, "#next")
    assert driver.title == "Second"
    driver.back()
    assert driver.title == "Counter"


def test_a_swipe_scrolls_and_element_rects_count_from_the_top_of_the_page(
    chromium_phone: Open, local_pages: str
) -> None:
    driver = chromium_phone()
    driver.get(f"{local_pages}/second.html")
    before = css(driver, "#end").rect
    driver.swipe(200, 700, 200, 200, 300)
    assert driver.execute_script("return scrollY") > 300
    assert css(driver, "#end").rect == before


def test_text_typed_in_a_browser_is_read_back_as_a_property_only(chromium_phone: Open, local_pages: str) -> None:
    driver = chromium_phone()
    driver.get(f"{local_pages}/counter.html")
    tap_on(driver, "#name")
    assert driver.switch_to.active_element.get_property("id") == "name"
    field = css(driver, "#name")
    field.send_keys("Žofie 日本 😀")
    assert field.get_property("value") == "Žofie 日本 😀"
    assert (field.get_attribute("value"), field.text) == (None, "")
    field.clear()
    assert field.get_property("value") == ""


def test_browser_has_no_contexts_orientation_or_mobile_commands(chromium_phone: Open, local_pages: str) -> None:
    driver = chromium_phone()
    driver.get(f"{local_pages}/counter.html")
    for call in (lambda: driver.contexts, lambda: driver.current_context, lambda: driver.orientation):
        with pytest.raises(UnknownMethodException):
            call()
    with pytest.raises(JavascriptException, match="activateApp is not defined"):  # run as a script in the page
        driver.activate_app("any")
    for strategy in (AppiumBy.ID, AppiumBy.ACCESSIBILITY_ID, AppiumBy.CLASS_NAME):
        with pytest.raises(InvalidSelectorException, match="is not supported for this session"):
            driver.find_element(strategy, "add")
    with pytest.raises(MoveTargetOutOfBoundsException):
        driver.tap([(5000, 5000)])


def test_an_open_dialog_fails_the_next_call_and_is_closed_by_it(chromium_phone: Open, local_pages: str) -> None:
    driver = chromium_phone()
    driver.get(f"{local_pages}/counter.html")
    driver.execute_script("window.answer = null; setTimeout(() => { window.answer = confirm('Sure?') }, 0)")
    with pytest.raises(UnexpectedAlertPresentException, match="Sure"):
        _wait_for_failure(lambda: driver.page_source)
    assert driver.execute_script("return window.answer") is False


def test_a_dead_browser_is_an_invalid_session_and_a_new_session_works(chromium_phone: Open, local_pages: str) -> None:
    driver, other = chromium_phone(), chromium_phone()
    os.kill(driver.capabilities["goog:processID"], signal.SIGKILL)
    with pytest.raises(InvalidSessionIdException, match="invalid session id"):
        _wait_for_failure(lambda: driver.page_source)
    other.get(f"{local_pages}/counter.html")
    assert other.title == "Counter"


def test_a_page_can_be_a_file(chromium_phone: Open) -> None:
    driver = chromium_phone()
    driver.get((components.APPIUM_FOLDER / "pages" / "counter.html").as_uri())
    tap_on(driver, "#add")
    assert css(driver, "#count").text == "1"


def test_platform_name_must_be_in_lower_case(appium_server: AppiumServer, tmp_path: Path) -> None:
    capabilities = chromium_capabilities(components.chromium(), tmp_path) | {"platformName": "Linux"}
    with pytest.raises(WebDriverException, match="No matching capabilities found"):
        open_session(appium_server, capabilities)


def _wait_for_failure(call: Callable[[], object]) -> None:
    """Repeat the call until it raises; return quietly after 10 s."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        call()
        time.sleep(0.05)
