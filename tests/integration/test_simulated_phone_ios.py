"""A simulated iPhone as the real client sees it, and whole tasks on it by all the services."""

import asyncio
import io
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from appium import webdriver
from appium.options.common.base import AppiumOptions
from appium.webdriver.common.appiumby import AppiumBy
from PIL import Image
from selenium.common import exceptions as failures

from apex_bus.credentials import Credentials
from apex_cli.client import Client
from apex_lab.phone import Phone, serve
from apex_lab.stack import Stack
from apex_lab.stack.services import Wiring
from apex_schemas.ids import new_task_id
from apex_schemas.task import TaskFinished, TaskRequest

SETTINGS, CONTACTS = "com.apple.Preferences", "com.apple.MobileAddressBook"
Driver = Any  # the client's classes are only partly typed


@pytest_asyncio.fixture(params=[2, 3])
async def driver(request: pytest.FixtureRequest) -> AsyncGenerator[Driver]:
    phone = Phone("ios-1", platform="ios", scale=request.param, permission_popup=False)
    async with serve([phone]) as url:
        options = AppiumOptions().load_capabilities({"platformName": "iOS", "appium:automationName": "XCUITest"})
        made = await asyncio.to_thread(lambda: webdriver.Remote(url, options=options))
        made.scale = request.param
        yield made
        await asyncio.to_thread(made.quit)


async def test_points_and_pixels_are_told_by_session_and_screen_info(driver: Driver) -> None:
    def work() -> None:
        info = driver.execute_script("mobile: deviceScreenInfo")
        assert info["scale"] == driver.caps["pixelRatio"] == driver.scale
        window = driver.get_window_size()
        assert info["screenSize"] == window
        picture = Image.open(io.BytesIO(driver.get_screenshot_as_png()))
        assert picture.size == (window["width"] * driver.scale, window["height"] * driver.scale)
        application = driver.find_element(AppiumBy.CLASS_NAME, "XCUIElementTypeApplication")
        assert application.rect == {"x": 0, "y": 0, **window}
        driver.orientation = "LANDSCAPE"
        assert driver.get_window_size() == {"width": window["height"], "height": window["width"]}

    await asyncio.to_thread(work)


async def test_apps_are_started_ended_and_asked_about_by_bundle(driver: Driver) -> None:
    def work() -> None:
        driver.activate_app(SETTINGS)
        assert driver.query_app_state(SETTINGS) == 4
        assert driver.execute_script("mobile: activeAppInfo")["bundleId"] == SETTINGS
        driver.execute_script("mobile: pressButton", {"name": "home"})
        assert driver.query_app_state(SETTINGS) == 3
        assert driver.terminate_app(SETTINGS) is True
        assert driver.is_app_installed("no.such") is False
        assert driver.execute_script("mobile: listApps")[SETTINGS]["CFBundleDisplayName"] == "Settings"
        for asked in (driver.query_app_state, driver.activate_app, driver.terminate_app):
            with pytest.raises(failures.WebDriverException, match="unknown or not installed"):
                asked("no.such")

    await asyncio.to_thread(work)


async def test_what_belongs_to_android_is_refused(driver: Driver) -> None:
    def work() -> None:
        for call in (lambda: driver.press_keycode(4), lambda: driver.execute_script("mobile: listWindows")):
            with pytest.raises(failures.UnknownMethodException, match="Unsupported execute method"):
                call()
        with pytest.raises(failures.InvalidSelectorException):
            driver.find_element(AppiumBy.ANDROID_UIAUTOMATOR, "new UiSelector()")
        icon = driver.find_element(AppiumBy.ACCESSIBILITY_ID, "Notes")
        with pytest.raises(failures.InvalidSelectorException, match="'showing-hint' is unknown"):
            icon.get_attribute("showing-hint")
        with pytest.raises(failures.WebDriverException, match="does not have the button"):
            driver.execute_script("mobile: pressButton", {"name": "back"})

    await asyncio.to_thread(work)


async def test_a_contact_is_made_by_predicates_and_typing(driver: Driver) -> None:
    def work() -> None:
        driver.activate_app(CONTACTS)
        driver.find_element(AppiumBy.IOS_PREDICATE, 'type == "XCUIElementTypeButton" AND name == "fab"').click()
        name = driver.switch_to.active_element
        assert name.get_attribute("type") == "XCUIElementTypeTextField"
        assert name.get_attribute("value") == name.get_attribute("placeholderValue") == "Name"
        name.send_keys("Zoë 🌍")
        assert name.text == "Zoë 🌍"
        name.send_keys("!\n")
        assert driver.switch_to.active_element.get_attribute("name") == "phone"
        driver.hide_keyboard()
        driver.find_element(AppiumBy.IOS_PREDICATE, 'name == "save"').click()
        label = 'label BEGINSWITH "Zoë 🌍!" AND type == "XCUIElementTypeCell"'
        assert driver.find_element(AppiumBy.IOS_PREDICATE, label).is_displayed()

    await asyncio.to_thread(work)


class IosStack(Stack):
    """The stack with iPhones for phones; they keep the names that the stack gives its phones."""

    def _wire(self, credentials: Credentials, phone_url: str, model_url: str) -> Wiring:
        wiring = super()._wire(credentials, phone_url, model_url)
        devices = tuple(
            msgspec.structs.replace(each, platform="ios", capabilities={"appium:udid": f"ios-{n}"})
            for n, each in enumerate(wiring.devices, start=1)
        )
        return msgspec.structs.replace(wiring, devices=devices)


async def _run(client: Client, goal: str) -> TaskFinished:
    task = new_task_id()
    end: TaskFinished | None = None
    async with asyncio.timeout(90), client.following(task) as happenings:
        await client.submit(TaskRequest(goal=goal, task=task, timeout_s=60), "any")
        async for happening in happenings:
            if isinstance(happening.body, TaskFinished):
                end = happening.body
    assert end is not None
    return end


@pytest.mark.timeout(240)
async def test_tasks_run_on_an_iphone_as_on_android(tmp_path: Path) -> None:
    arguments = ("--ios", "1")
    async with IosStack(tmp_path, phone_arguments=arguments) as stack, stack.client() as client:
        end = await _run(client, "Turn on Wi-Fi and report the network name")
        assert (end.status, end.answer) == ("succeeded", "Lab-5G"), end
        end = await _run(client, 'Create a contact named "Zoë Ångström" with phone +44 20 7946 0002')
        assert end.status == "succeeded", end
        truth = (await stack.phones.state("ios-1"))["apps"]
        assert truth[SETTINGS]["wifi"] is True
        assert "Zoë Ångström" in [each["name"] for each in truth[CONTACTS]["contacts"]]
        assert await stack.phones.acts("sim-1") == []
