"""The simulated phones as the real appium-python-client sees them, over HTTP."""

import asyncio
import json
import urllib.request
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

import pytest
import pytest_asyncio
from appium import webdriver
from appium.options.common.base import AppiumOptions
from appium.webdriver.common.appiumby import AppiumBy
from selenium.common import exceptions as failures
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions import interaction
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.pointer_input import PointerInput

from apex_lab.phone import Phone, serve

SETTINGS, CONTACTS = "com.android.settings", "com.android.contacts"
Driver = Any  # the client's classes are only partly typed


class Lab:
    """A running server; `call` runs blocking client code off the event loop."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.drivers: list[Driver] = []

    def attach(self, udid: str = "sim-1", **capabilities: object) -> Driver:
        options = AppiumOptions().load_capabilities(
            {"platformName": "Android", "appium:automationName": "UiAutomator2", "appium:udid": udid, **capabilities}
        )
        driver = webdriver.Remote(self.url, options=options)
        self.drivers.append(driver)
        return driver

    def get(self, path: str, udid: str = "sim-1") -> Any:
        with urllib.request.urlopen(f"{self.url}/lab/phones/{udid}/{path}", timeout=20) as answer:
            return json.load(answer)

    def post(self, path: str, body: object, udid: str = "sim-1") -> Any:
        request = urllib.request.Request(f"{self.url}/lab/phones/{udid}/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)


@pytest_asyncio.fixture
async def lab() -> AsyncGenerator[Lab]:
    async with serve([Phone("sim-1", permission_popup=False), Phone("sim-2")]) as url:
        lab = Lab(url)
        yield lab
        for driver in lab.drivers:
            with suppress(failures.WebDriverException):
                await asyncio.to_thread(driver.quit)


async def call(work: Callable[[], None]) -> None:
    await asyncio.to_thread(work)


async def test_a_session_says_what_the_phone_is_and_that_it_is_simulated(lab: Lab) -> None:
    def work() -> None:
        driver = lab.attach("sim-2")
        assert (driver.caps["deviceUDID"], driver.caps["apex:simulated"]) == ("sim-2", True)
        assert driver.get_window_size() == {"width": 540, "height": 1200}
        assert (driver.orientation, driver.contexts, driver.current_context) == (
            "PORTRAIT",
            ["NATIVE_APP"],
            "NATIVE_APP",
        )
        assert driver.get_status()["ready"] is True
        driver.update_settings({"waitForIdleTimeout": 50})
        assert driver.get_settings()["waitForIdleTimeout"] == 50
        driver.orientation = "LANDSCAPE"
        assert driver.get_window_size() == {"width": 1200, "height": 540}
        assert driver.get_screenshot_as_png().startswith(b"\x89PNG")
        assert driver.device_time.startswith("20")

    await call(work)


async def test_a_contact_is_made_with_find_clear_and_send_keys(lab: Lab) -> None:
    def work() -> None:
        driver = lab.attach()
        driver.activate_app(CONTACTS)
        driver.find_element(AppiumBy.ACCESSIBILITY_ID, "Create contact").click()
        assert driver.is_keyboard_shown() is True
        name = driver.find_element(AppiumBy.ANDROID_UIAUTOMATOR, f'new UiSelector().resourceId("{CONTACTS}:id/name")')
        assert driver.switch_to.active_element.get_attribute("resource-id") == f"{CONTACTS}:id/name"
        assert (name.text, name.get_attribute("showing-hint"), name.get_attribute("hint")) == ("Name", "true", "Name")
        name.send_keys("wrong")
        name.clear()
        name.send_keys("Zoë Ångström 🌍 +@$#&;")
        assert name.text == "Zoë Ångström 🌍 +@$#&;"
        save = driver.find_element(AppiumBy.ID, "save")
        assert (save.is_enabled(), save.is_displayed(), save.is_selected()) == (True, True, False)
        driver.hide_keyboard()
        save.click()
        assert "Contact saved" in driver.page_source
        assert [c["name"] for c in lab.get("state")["apps"][CONTACTS]["contacts"]][-1] == "Zoë Ångström 🌍 +@$#&;"

    await call(work)


async def test_taps_swipes_and_long_presses_arrive_however_the_client_sends_them(lab: Lab) -> None:
    def work() -> None:
        driver = lab.attach()
        driver.activate_app(SETTINGS)
        lab.post("reset", {SETTINGS: {"wifi": True}})
        driver.activate_app(SETTINGS)
        first = lab.get("acts")[-1]["n"]
        driver.swipe(270, 900, 270, 700, 300)
        driver.swipe(270, 700, 270, 900)
        driver.execute_script("mobile: scrollGesture", {"direction": "up", "percent": 1.0, **box()})
        row = driver.find_element(AppiumBy.XPATH, "//*[@text='Network & internet']")
        ActionChains(driver).click(row).perform()
        finger = ActionBuilder(driver, mouse=PointerInput(interaction.POINTER_TOUCH, "finger"))
        finger.pointer_action.move_to_location(100, 160).pointer_down().pause(0.8).pointer_up()
        finger.perform()
        driver.tap([(100, 160)])
        driver.execute_script("mobile: clickGesture", {"x": 100, "y": 160})
        driver.press_keycode(4)
        acts = [act for act in lab.get("acts") if act["n"] > first]
        assert [act["kind"] for act in acts] == [
            *("swipe", "swipe", "swipe", "tap", "long_press", "tap", "tap", "key"),
        ]
        assert [act["n"] for act in acts] == list(range(first + 1, first + 9))
        assert [act["scrolled"] for act in acts[:3]] == [200, -200, 0]
        assert {act["session"] for act in acts} == {driver.session_id}
        assert acts[5]["hit"]["text"].startswith("Wi-Fi")
        assert lab.get("state")["apps"][SETTINGS]["wifi"] is False

    await call(work)


def box() -> dict[str, int]:
    return {"left": 0, "top": 200, "width": 540, "height": 800}


async def test_apps_are_started_ended_and_asked_about(lab: Lab) -> None:
    def work() -> None:
        driver = lab.attach()
        assert (driver.current_package, driver.current_activity) == ("com.android.launcher3", ".Launcher")
        assert [driver.query_app_state(app) for app in (SETTINGS, "no.such")] == [1, 0]
        driver.activate_app(SETTINGS)
        assert (driver.query_app_state(SETTINGS), driver.is_app_installed(SETTINGS)) == (4, True)
        assert [driver.terminate_app(SETTINGS) for _ in range(2)] == [True, False]
        assert driver.is_app_installed("no.such") is False
        with pytest.raises(failures.WebDriverException, match=r"launchable activity of 'no\.such'"):
            driver.activate_app("no.such")

    await call(work)


async def test_errors_become_the_clients_exceptions(lab: Lab) -> None:
    def work() -> None:
        with pytest.raises(failures.SessionNotCreatedException, match="sim-9"):
            lab.attach("sim-9")
        driver = lab.attach()
        with pytest.raises(failures.NoSuchElementException):
            driver.find_element(AppiumBy.ID, "nothing")
        assert driver.find_elements(AppiumBy.ID, "nothing") == []
        with pytest.raises(failures.InvalidSelectorException):
            driver.find_element(AppiumBy.XPATH, "//*[")
        with pytest.raises(failures.InvalidElementStateException):
            driver.find_element(AppiumBy.ID, "clock").send_keys("x")
        with pytest.raises(failures.InvalidElementStateException, match="off the screen"):
            driver.tap([(5000, 1)])
        with pytest.raises(failures.InvalidArgumentException):
            driver.execute_script("mobile: swipeGesture", {"percent": 1})
        with pytest.raises(failures.UnknownMethodException):
            driver.execute_script("mobile: fly")
        icons = driver.find_elements(AppiumBy.ID, "icon")
        driver.activate_app(SETTINGS)
        with pytest.raises(failures.StaleElementReferenceException):
            icons[0].click()
        row = driver.find_element(AppiumBy.ID, "android:id/title")
        assert (row.get_attribute("content-desc"), row.get_attribute("className")) == (
            "null",
            "android.widget.TextView",
        )
        with pytest.raises(failures.WebDriverException, match="'colour' attribute is unknown"):
            row.get_attribute("colour")
        driver.quit()
        with pytest.raises(failures.InvalidSessionIdException):
            driver.page_source  # noqa: B018

    await call(work)


async def test_a_handle_from_before_a_scroll_points_to_the_row_that_took_its_place(lab: Lab) -> None:
    def work() -> None:
        driver = lab.attach()
        driver.activate_app(SETTINGS)
        rows = driver.find_elements(AppiumBy.ID, "android:id/title")
        before = rows[2].text
        driver.swipe(270, 900, 270, 500)
        assert rows[2].text != before

    await call(work)


async def test_windows_and_apps_are_listed_unless_the_driver_is_an_older_one(lab: Lab) -> None:
    def work() -> None:
        driver = lab.attach()
        driver.activate_app(CONTACTS)
        driver.find_element(AppiumBy.ACCESSIBILITY_ID, "Create contact").click()
        windows = driver.execute_script("mobile: listWindows", {"skipScreenshots": True})
        packages = [window["packageName"] for window in windows]
        assert packages == ["com.android.inputmethod.latin", "com.android.systemui", CONTACTS]
        assert windows[-1]["rect"] == {"left": 0, "top": 0, "right": 540, "bottom": 1200}
        assert SETTINGS in driver.execute_script("mobile: listApps")
        lab.post("faults", {"unsupported": ["listWindows"]})
        with pytest.raises(failures.UnknownMethodException, match="Unsupported execute method"):
            driver.execute_script("mobile: listWindows")

    await call(work)


async def test_a_new_session_on_a_phone_ends_the_old_one(lab: Lab) -> None:
    def work() -> None:
        old, other = lab.attach(), lab.attach("sim-2")
        new = lab.attach()
        with pytest.raises(failures.InvalidSessionIdException):
            old.tap([(1, 1)])
        assert new.page_source
        assert other.page_source
        assert lab.get("acts") == []

    await call(work)
