"""What the simulated phone tells of its windows, as UiAutomator2 and Android do: which look-up sees which of them."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio
from appium.webdriver.common.appiumby import AppiumBy
from integration.appium_phone import labelled
from integration.sim_phone import OpenSim, SimPhone
from selenium.common.exceptions import InvalidSelectorException

from apex_schemas.actions import Back, InputText, LaunchApp

pytest_plugins = ("integration.sim_phone",)

CONTACTS = "com.android.contacts"
MESSAGES = "com.google.android.apps.messaging"
TITLE = 'new UiSelector().resourceId("android:id/alertTitle")'


async def found(phone: SimPhone, by: str, value: str) -> list[Any]:
    return await asyncio.to_thread(phone.driver.find_elements, by, value)


async def hittable(element: Any) -> str:
    return await asyncio.to_thread(element.get_attribute, "hittable")


async def windows(phone: SimPhone) -> list[dict[str, Any]]:
    return await asyncio.to_thread(phone.driver.execute_script, "mobile: listWindows", {"skipScreenshots": True})


@pytest_asyncio.fixture
async def asking(open_sim: OpenSim) -> AsyncGenerator[SimPhone]:
    """A form under the question whether to discard it."""
    phone = await open_sim()
    await phone.act(LaunchApp(app="Contacts"))
    await phone.tap("Create contact")
    name = await phone.field("Name")
    await phone.act(InputText(text="Bob", at=name.tap_point))
    await phone.act(Back())
    await phone.act(Back())
    yield phone


async def test_what_lies_under_a_dialog_is_told_by_no_look_up_no_list_and_no_source(asking: SimPhone) -> None:
    field = f"{CONTACTS}:id/phone"
    for by, value in (
        (AppiumBy.ID, field),
        (AppiumBy.XPATH, f'//*[@resource-id="{field}"]'),
        (AppiumBy.ANDROID_UIAUTOMATOR, f'new UiSelector().resourceId("{field}")'),
    ):
        assert await found(asking, by, value) == []
    assert field not in await asyncio.to_thread(lambda: asking.driver.page_source)
    assert [(each["packageName"], each["isActive"]) for each in await windows(asking)] == [
        ("com.android.systemui", False), (CONTACTS, True),
    ]  # fmt: skip
    assert len(await found(asking, AppiumBy.ANDROID_UIAUTOMATOR, TITLE)) == 1


async def test_root_of_the_active_window_is_what_an_empty_selector_finds(asking: SimPhone) -> None:
    (root,) = await found(asking, AppiumBy.ANDROID_UIAUTOMATOR, "new UiSelector().instance(0)")
    rect = (await windows(asking))[-1]["rect"]
    assert await asyncio.to_thread(lambda: root.rect) == {
        "x": rect["left"], "y": rect["top"], "width": rect["right"] - rect["left"],
        "height": rect["bottom"] - rect["top"],
    }  # fmt: skip
    assert rect["right"] - rect["left"] < 540
    assert await asyncio.to_thread(root.get_attribute, "package") == CONTACTS


async def test_ui_selector_looks_in_the_active_window_alone_and_an_id_in_all(open_sim: OpenSim) -> None:
    phone = await open_sim()
    await phone.handsets.set_state(phone.udid, {MESSAGES: {"bubble": True}})
    await phone.act(LaunchApp(app="Messages"))
    await phone.act(LaunchApp(app="Settings"))
    bubble = f"{MESSAGES}:id/bubble"
    assert await found(phone, AppiumBy.ANDROID_UIAUTOMATOR, f'new UiSelector().resourceId("{bubble}")') == []
    assert len(await found(phone, AppiumBy.ID, bubble)) == 1
    assert len(await found(phone, AppiumBy.ACCESSIBILITY_ID, "Chat bubble")) == 1
    told = await windows(phone)
    assert [each["packageName"] for each in told] == [MESSAGES, "com.android.systemui", "com.android.settings"]
    assert [each["layer"] for each in told] == [3, 2, 1]
    await asyncio.to_thread(phone.driver.update_settings, {"enableMultiWindows": False})
    assert await found(phone, AppiumBy.ID, bubble) == []


async def test_several_selectors_in_one_look_up_find_what_any_of_them_finds_once(asking: SimPhone) -> None:
    absent = 'new UiSelector().text("a;\\"b")'
    both = ";".join((absent, TITLE, TITLE, 'new UiSelector().text("Discard")'))
    each = await found(asking, AppiumBy.ANDROID_UIAUTOMATOR, both)
    assert await asyncio.to_thread(lambda: [one.text for one in each]) == ["Discard your changes?", "Discard"]
    with pytest.raises(InvalidSelectorException):
        await found(asking, AppiumBy.ANDROID_UIAUTOMATOR, f"{TITLE};nonsense")


async def test_hittable_is_what_a_touch_in_the_middle_would_reach(open_sim: OpenSim) -> None:
    phone = await open_sim("ios")
    await phone.act(LaunchApp(app="Contacts"))
    await phone.tap("Create contact")
    (name,) = await found(phone, AppiumBy.IOS_PREDICATE, 'name == "name"')
    assert await hittable(name) == "true"
    assert "hittable" not in await asyncio.to_thread(lambda: phone.driver.page_source)
    await phone.act(InputText(text="Bob", at=(await phone.field("Name")).tap_point))
    await phone.act(Back())
    assert labelled(await phone.scene(), "Discard").tap_point is not None
    assert await hittable(name) == "false"
    (discard,) = await found(phone, AppiumBy.IOS_PREDICATE, 'label == "Discard"')
    assert await hittable(discard) == "true"
