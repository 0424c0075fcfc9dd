"""What a real Appium 3 server and its fake driver answer to appium-python-client.

Perception, executor and the simulated phone are built on these answers; tests/appium/README.md lists them.
"""

import io
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import components
import pytest
from appium import webdriver
from appium.options.common import AppiumOptions
from appium.webdriver.client_config import AppiumClientConfig
from appium.webdriver.common.appiumby import AppiumBy
from integration.appium_server import (
    AppiumServer,
    fake_app,
    fake_capabilities,
    free_port,
    open_session,
    running_appium,
)
from PIL import Image
from selenium.common.exceptions import (
    InvalidElementStateException,
    InvalidSessionIdException,
    NoSuchElementException,
    UnknownMethodException,
    WebDriverException,
)
from urllib3.exceptions import MaxRetryError

pytest_plugins = ("integration.appium_server",)
pytestmark = pytest.mark.appium

Open = Callable[..., webdriver.Remote]
SETTINGS = "001_settings-top-en.xml"
FORM = "002_login-password-edittexts.xml"


class Attached(webdriver.Remote):
    """A client that takes over a session which another client made."""

    def __init__(self, url: str, session: str) -> None:
        self._taken_over = session
        super().__init__(options=AppiumOptions(), client_config=AppiumClientConfig(url, timeout=60))

    def start_session(self, capabilities: Any, browser_profile: Any = None) -> None:
        self.session_id = self._taken_over
        self.caps = {}


def picture_size(driver: webdriver.Remote) -> tuple[int, int]:
    return Image.open(io.BytesIO(driver.get_screenshot_as_png())).size


def test_every_recorded_dump_comes_back_unchanged_but_for_the_wrapping(
    appium_server: AppiumServer, tmp_path: Path
) -> None:
    for dump in sorted(components.dumps().glob("*.xml")):
        app = fake_app(dump, tmp_path, width=1080, height=2400)
        driver = open_session(appium_server, fake_capabilities(app))
        source = driver.page_source
        driver.quit()
        head, tail = '<AppiumAUT><app width="1080" height="2400">', "</app></AppiumAUT>"
        assert source.startswith(head), dump.name
        assert source.endswith(tail), dump.name
        inner, recorded = source.removeprefix(head).removesuffix(tail), dump.read_text(encoding="utf-8")
        assert recorded.endswith(inner), dump.name
        assert re.fullmatch(r"(<\?xml[^>]*\?>)?", recorded.removesuffix(inner)), dump.name


def test_fake_window_has_the_size_of_the_app_element_but_the_picture_never_has(fake_phone: Open) -> None:
    driver = fake_phone(SETTINGS, width=1440, height=3120)
    assert driver.get_window_rect() == {"x": 0, "y": 0, "width": 1440, "height": 3120}
    assert picture_size(driver) == (400, 852)
    driver.orientation = "LANDSCAPE"
    assert driver.orientation == "LANDSCAPE"
    assert driver.get_window_size() == {"width": 1440, "height": 3120}


def test_gestures_are_logged_as_the_client_sent_them(fake_phone: Open) -> None:
    driver = fake_phone(SETTINGS)
    driver.tap([(540, 300)])
    driver.swipe(540, 1800, 540, 400, 300)
    tap, swipe = driver.get_log("actions")
    assert [(step["type"], step.get("x"), step.get("y")) for step in tap[0]["actions"]] == [
        ("pointerMove", 540, 300),
        ("pointerDown", None, None),
        ("pause", None, None),
        ("pointerUp", None, None),
    ]
    assert (tap[0]["type"], tap[0]["parameters"]) == ("pointer", {"pointerType": "touch"})
    assert [(step["x"], step["y"]) for step in swipe[0]["actions"] if step["type"] == "pointerMove"] == [
        (540, 1800),
        (540, 400),
    ]


def test_fake_driver_takes_any_action_so_an_accepted_gesture_proves_nothing(fake_phone: Open) -> None:
    driver = fake_phone(SETTINGS)
    driver.tap([(99_999, -5)])
    driver.execute("actions", {"actions": [{"type": "nonsense"}]})
    assert driver.get_log("actions")[-1] == [{"type": "nonsense"}]


def test_fake_elements_are_found_by_xpath_and_class_and_have_no_rect_text_or_attributes(fake_phone: Open) -> None:
    driver = fake_phone(FORM)
    field = driver.find_element(AppiumBy.XPATH, "//*[@resource-id][@password='true']")
    assert field.tag_name == "android.widget.EditText"
    assert field.rect == {"x": 0, "y": 0, "width": 0, "height": 0}
    assert (field.text, field.get_attribute("resource-id")) == ("", "")
    assert driver.find_elements(AppiumBy.CLASS_NAME, "android.widget.EditText")
    resource_id = "com.android.settings:id/password"
    with pytest.raises(NoSuchElementException):  # it looks at the attribute "id", which no Android source has
        driver.find_element(AppiumBy.ID, resource_id)
    with pytest.raises(UnknownMethodException):
        driver.find_element(AppiumBy.ANDROID_UIAUTOMATOR, "new UiSelector()")


def test_fake_click_is_counted_but_text_is_refused_outside_its_own_input_type(fake_phone: Open) -> None:
    field = fake_phone(FORM).find_element(AppiumBy.CLASS_NAME, "android.widget.EditText")
    field.click()
    assert field.get_attribute("clicks") == "1"
    with pytest.raises(InvalidElementStateException):
        field.send_keys("x")


@pytest.mark.parametrize(
    "call",
    [
        lambda driver: driver.activate_app("com.android.settings"),
        lambda driver: driver.terminate_app("com.android.settings"),
        lambda driver: driver.query_app_state("com.android.settings"),
        lambda driver: driver.is_keyboard_shown(),
        lambda driver: driver.hide_keyboard(),
        lambda driver: driver.press_keycode(4),
        lambda driver: driver.back(),
        lambda driver: driver.current_package,
    ],
    ids=["activate", "terminate", "app-state", "keyboard-shown", "hide-keyboard", "keycode", "back", "package"],
)
def test_fake_driver_knows_no_apps_keyboard_or_back(fake_phone: Open, call: Callable[[Any], object]) -> None:
    driver = fake_phone(SETTINGS)
    with pytest.raises(UnknownMethodException):
        call(driver)


def test_settings_of_a_session_are_kept_by_the_server(fake_phone: Open) -> None:
    driver = fake_phone(SETTINGS)
    driver.update_settings({"waitForIdleTimeout": 100})
    assert driver.get_settings() == {"waitForIdleTimeout": 100}


def test_a_client_that_takes_over_a_session_acts_in_it_until_it_is_ended(
    appium_server: AppiumServer, fake_phone: Open
) -> None:
    driver = fake_phone(SETTINGS)
    second = Attached(appium_server.url, str(driver.session_id))
    second.tap([(1, 2)])
    assert len(driver.get_log("actions")) == 1
    assert second.page_source == driver.page_source
    driver.quit()
    for call in (lambda: second.page_source, lambda: second.tap([(1, 2)]), second.quit):
        with pytest.raises(InvalidSessionIdException, match="either terminated or not started"):
            call()


def test_an_idle_session_is_ended_after_new_command_timeout(appium_server: AppiumServer, fake_phone: Open) -> None:
    driver = fake_phone(SETTINGS, **{"appium:newCommandTimeout": 1})
    deadline = time.monotonic() + 20
    while f"Removing session '{driver.session_id}'" not in appium_server.log.read_text(errors="replace"):
        assert time.monotonic() < deadline, "the session outlived its newCommandTimeout of 1 s"
        time.sleep(0.1)
    with pytest.raises(InvalidSessionIdException):
        _ = driver.page_source


def test_a_session_that_cannot_start_says_why_in_an_unknown_error(appium_server: AppiumServer, tmp_path: Path) -> None:
    broken = tmp_path / "broken.xml"
    broken.write_text('<app width="1" height="1"><a>')
    android = {"platformName": "Android", "appium:automationName": "UiAutomator2"}
    for capabilities, reason in (
        (fake_capabilities(broken), "unclosed xml tag"),
        (fake_capabilities(tmp_path / "absent.xml"), "ENOENT"),
        (android, "Could not find a driver for automationName 'UiAutomator2'"),
    ):
        with pytest.raises(WebDriverException, match=reason) as caught:
            open_session(appium_server, capabilities)
        assert type(caught.value) is WebDriverException


def test_an_absent_server_is_an_error_of_urllib3_and_not_of_selenium(tmp_path: Path) -> None:
    nobody = AppiumServer(url=f"http://127.0.0.1:{free_port()}", log=tmp_path / "none.log")
    with pytest.raises(MaxRetryError, match="Connection refused"):
        open_session(nobody, fake_capabilities(tmp_path / "any.xml"))


def test_the_server_ends_with_its_sessions_when_the_fixture_does(tmp_path: Path) -> None:
    with running_appium(components.appium(), tmp_path) as server:
        assert json.loads(urllib.request.urlopen(f"{server.url}/status", timeout=20).read())["value"]["ready"] is True
    with pytest.raises(urllib.error.URLError, match="Connection refused"):
        urllib.request.urlopen(f"{server.url}/status", timeout=5)
