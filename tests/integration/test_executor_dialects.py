"""The acts beyond touch in both dialects, chosen by what a session says of itself; judged by the phone's state."""

import asyncio

import pytest
from integration.appium_phone import labelled
from integration.sim_phone import OpenSim, SimPhone

from apex_executor.errors import ActRefused
from apex_schemas.actions import Back, Home, InputText, LaunchApp, LongPress, PressKey, TerminateApp
from apex_schemas.devices import Platform
from apex_schemas.geometry import Point

pytest_plugins = ("integration.sim_phone",)

BOTH: list[Platform] = ["android", "ios"]


async def refused(phone: SimPhone, action: Back | PressKey | Home) -> str:
    with pytest.raises(ActRefused) as caught:
        await phone.act(action)
    return caught.value.code


@pytest.mark.parametrize(
    ("platform", "settings"),
    [
        ("android", {"waitForIdleTimeout": 100, "enableMultiWindows": True}),
        ("ios", {"waitForIdleTimeout": 0.1, "animationCoolOffTimeout": 0.1}),
    ],
)
async def test_drivers_own_waits_are_low_in_the_unit_of_each(
    open_sim: OpenSim, platform: Platform, settings: dict[str, object]
) -> None:
    phone = await open_sim(platform)
    told = await asyncio.to_thread(phone.driver.get_settings)
    assert {name: told[name] for name in settings} == settings


@pytest.mark.parametrize("platform", BOTH)
async def test_app_is_opened_left_and_ended(open_sim: OpenSim, platform: Platform) -> None:
    phone = await open_sim(platform)
    start = (await phone.truth())["foreground"]
    assert (await phone.act(LaunchApp(app="settings"))).success
    inside = (await phone.truth())["foreground"]
    assert inside != start
    assert (await phone.act(Home())).success
    assert (await phone.truth())["foreground"] == start
    await phone.act(LaunchApp(app=inside))
    assert (await phone.truth())["foreground"] == inside
    assert (await phone.act(TerminateApp(app="Settings"))).success
    assert (await phone.truth())["foreground"] == start


@pytest.mark.parametrize("platform", BOTH)
async def test_back_leaves_a_page(open_sim: OpenSim, platform: Platform) -> None:
    phone = await open_sim(platform)
    await phone.act(LaunchApp(app="Settings"))
    await phone.tap("Battery" if platform == "android" else "Network")
    page = (await phone.truth())["page"]
    assert (await phone.act(Back())).success
    assert (await phone.truth())["page"] != page


async def test_back_without_a_navigation_bar_is_refused_on_ios(open_sim: OpenSim) -> None:
    phone = await open_sim("ios")
    assert await refused(phone, Back()) == "NOT_SUPPORTED"
    assert await phone.acts() == []


@pytest.mark.parametrize("platform", BOTH)
async def test_enter_goes_to_the_field_that_has_the_focus(open_sim: OpenSim, platform: Platform) -> None:
    phone = await open_sim(platform)
    await phone.act(LaunchApp(app="Contacts"))
    await phone.tap("Create contact")
    field = await phone.field("Name")
    await phone.tap_on(field)
    await phone.act(InputText(text="Ada"))
    assert (await phone.act(PressKey(key="enter"))).success


@pytest.mark.parametrize("key", ["enter", "tab", "delete", "search"])
async def test_key_without_a_field_that_has_the_focus_is_refused_on_ios(open_sim: OpenSim, key: str) -> None:
    assert await refused(await open_sim("ios"), PressKey(key=key)) == "NO_FOCUS"  # pyright: ignore[reportArgumentType]


async def test_key_that_a_phone_does_not_have_is_refused(open_sim: OpenSim) -> None:
    assert await refused(await open_sim("ios"), PressKey(key="app_switch")) == "NOT_SUPPORTED"
    assert (await (await open_sim("android")).act(PressKey(key="volume_up"))).success


@pytest.mark.parametrize("platform", BOTH)
async def test_long_press_is_long_and_lands_where_it_is_meant(open_sim: OpenSim, platform: Platform) -> None:
    phone = await open_sim(platform)
    icon = labelled(await phone.scene(), "Settings")
    assert icon.tap_point is not None
    assert (await phone.act(LongPress(at=icon.tap_point, duration_ms=900))).success
    (act,) = await phone.acts()
    assert act["kind"] == "long_press"
    scale = phone.handle.scale
    assert Point(x=act["x"], y=act["y"]) == Point(x=round(icon.tap_point.x / scale), y=round(icon.tap_point.y / scale))
