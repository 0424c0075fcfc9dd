"""Executor and perception on a real Appium server with its fake driver: sessions, Scenes, logged acts, errors."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import components
import pytest
from integration.appium_phone import AppiumPhone, OpenPhone, labelled, target_of
from integration.appium_server import AppiumServer, fake_app, fake_capabilities, free_port
from selenium.common.exceptions import WebDriverException

from apex_executor.errors import ActCutShort, DeviceFailed
from apex_executor.failures import classify
from apex_executor.outcomes import Failure
from apex_executor.session import PhoneSession
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_perception.errors import SessionDead
from apex_schemas.actions import Back, DeviceAction, Home, InputText, LaunchApp, LongPress, PressKey, Scroll, Swipe, Tap
from apex_schemas.devices import SessionHandle
from apex_schemas.geometry import Point

pytest_plugins = ("integration.appium_server", "integration.appium_phone")
pytestmark = pytest.mark.appium

SETTINGS_PAGE = "001_settings-top-en.xml"
FORM = "002_login-password-edittexts.xml"
OpenDump = Callable[..., Coroutine[Any, Any, AppiumPhone]]


@pytest.fixture
def dump_phone(open_phone: OpenPhone, tmp_path: Path) -> OpenDump:
    """`await dump_phone(name)`: a session with the fake driver, whose app is that recorded page source."""

    async def start(dump: str, *, width: int = 1080, height: int = 2400, **settings: Any) -> AppiumPhone:
        app = fake_app(components.dumps() / dump, tmp_path, width=width, height=height)
        return await open_phone(fake_capabilities(app), **settings)

    return start


def moves(phone: AppiumPhone) -> list[list[tuple[str, int | None, int | None]]]:
    """What the driver logged: for each act the steps of its finger."""
    return [
        [(step["type"], step.get("x"), step.get("y")) for step in act[0]["actions"]]
        for act in phone.driver.get_log("actions")
    ]


def pressed(x: int, y: int) -> list[tuple[str, int | None, int | None]]:
    return [("pointerMove", x, y), ("pointerDown", None, None), ("pause", None, None), ("pointerUp", None, None)]


async def failure_of(phone: AppiumPhone, action: DeviceAction) -> Failure:
    with pytest.raises(WebDriverException) as caught:
        await phone.act(action)
    return classify(caught.value)


async def test_element_of_a_scene_is_tapped_where_the_scene_says(dump_phone: OpenDump) -> None:
    phone = await dump_phone(SETTINGS_PAGE)
    scene = await phone.scene()
    assert (scene.page, scene.source, scene.settled) == ("Settings", "tree", True)
    assert (scene.screen.size.width, scene.screen.size.height) == (1080, 2400)
    battery = labelled(scene, "Battery")
    assert battery.tap_point == Point(x=540, y=1097)  # its row: [0,997][1080,1197]
    outcome = await phone.act(Tap(at=battery.tap_point), target_of(battery))
    assert outcome.success
    assert moves(phone) == [pressed(540, 1097)]


async def test_every_point_of_every_dump_reaches_the_driver_unchanged(dump_phone: OpenDump) -> None:
    """Whatever the dialect, what a Scene gives as a tap point is what the server gets, in the session's units."""
    for dump in sorted(components.dumps().glob("0*.xml")):
        phone = await dump_phone(dump.name)
        scene = await phone.scene()
        points = [element.tap_point for element in scene.elements if element.tap_point is not None][:3]
        for point in points:
            assert (await phone.act(Tap(at=point))).success, dump.name
        assert moves(phone) == [pressed(point.x, point.y) for point in points], dump.name
        await phone.session.end()


async def test_swipe_scroll_and_long_press_are_one_request_each(dump_phone: OpenDump) -> None:
    phone = await dump_phone(SETTINGS_PAGE)
    await phone.act(Swipe(start=Point(x=540, y=1800), end=Point(x=540, y=400), duration_ms=200))
    await phone.act(Scroll(direction="down"))
    await phone.act(LongPress(at=Point(x=5, y=6), duration_ms=1_500))
    swipe, scroll, hold = moves(phone)
    assert [step[1:] for step in swipe if step[0] == "pointerMove"] == [(540, 1800), (540, 400)]
    assert [step[1:] for step in scroll if step[0] == "pointerMove"] == [(540, 1920), (540, 480)]
    assert hold == pressed(5, 6)
    assert phone.driver.get_log("actions")[2][0]["actions"][2]["duration"] == 1_500


@pytest.mark.parametrize("action", [LaunchApp(app="Settings"), Back(), Home(), PressKey(key="enter")])
async def test_act_that_the_driver_does_not_know_is_told_as_not_done(
    dump_phone: OpenDump, action: DeviceAction
) -> None:
    phone = await dump_phone(SETTINGS_PAGE)
    failure = await failure_of(phone, action)
    assert (failure.code, failure.acted, failure.session_dead) == ("NOT_SUPPORTED", False, False)


async def test_act_that_fails_after_its_first_touch_says_that_a_part_was_done(dump_phone: OpenDump) -> None:
    phone = await dump_phone(FORM)
    field = next(element for element in (await phone.scene()).elements if element.editable)
    assert field.tap_point is not None
    with pytest.raises(ActCutShort) as caught:  # the fake driver cannot name the field that has the focus
        await phone.act(InputText(text="x", at=field.tap_point), target_of(field))
    failure = classify(caught.value)
    assert (failure.code, failure.acted, failure.session_dead) == ("NOT_SUPPORTED", False, False)
    assert failure.message.startswith("only a part was done")
    assert moves(phone) == [pressed(field.tap_point.x, field.tap_point.y)]


async def test_session_that_somebody_deleted_is_told_as_lost_and_a_new_one_works(
    dump_phone: OpenDump, open_phone: OpenPhone
) -> None:
    phone = await dump_phone(SETTINGS_PAGE)
    assert await phone.session.alive()
    assert await phone.session.fence(phone.handle)
    assert await phone.session.fence(phone.handle), "a session that is gone already is known to be gone"
    assert not await phone.session.alive()
    failure = await failure_of(phone, Tap(at=Point(x=1, y=1)))
    assert (failure.code, failure.acted, failure.session_dead) == ("SESSION_LOST", False, True)
    with pytest.raises(SessionDead):
        await phone.scene()
    healed = AppiumPhone(phone.session, await phone.session.open())
    assert healed.handle.id != phone.handle.id
    assert (await healed.scene()).page == "Settings"
    assert (await healed.act(Tap(at=Point(x=1, y=1)))).success


async def test_fence_is_not_claimed_where_nobody_answers(dump_phone: OpenDump) -> None:
    phone = await dump_phone(SETTINGS_PAGE)
    elsewhere = SessionHandle(id=phone.handle.id, url=f"http://127.0.0.1:{free_port()}")
    assert not await phone.session.fence(elsewhere)
    assert await phone.session.alive()


async def test_device_that_cannot_be_opened_says_why(appium_server: AppiumServer, tmp_path: Path) -> None:
    absent = fake_capabilities(tmp_path / "absent.xml")
    for url, capabilities, reason in (
        (appium_server.url, absent, "ENOENT"),
        (appium_server.url, {}, "Could not find a driver for automationName 'UiAutomator2'"),
        (f"http://127.0.0.1:{free_port()}", absent, "no Appium server answers at http"),
    ):
        session = PhoneSession(DeviceConfig(alias="a", url=url, capabilities=capabilities), ExecutorSettings())
        with pytest.raises(DeviceFailed, match=reason):
            await session.open()
        assert session.handle is None
        session.shut()
