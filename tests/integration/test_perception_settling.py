"""Settling against the simulator's truth: what is published is what the phone ends up showing, and how long it took."""

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import pytest_asyncio
from appium import webdriver
from appium.options.common.base import AppiumOptions

from apex_lab.phone import Phone, serve
from apex_lab.phone.geometry import Point as Place
from apex_perception.appium import AppiumPhone
from apex_perception.settings import PerceptionSettings
from apex_perception.settle import Observation, Observer
from apex_schemas.devices import SessionHandle
from apex_schemas.scene import Scene

SETTINGS, PLAYER = "com.android.settings", "org.example.player"


class Rig:
    """One simulated phone, and an observer of it through HTTP."""

    def __init__(self, phone: Phone, observer: Observer) -> None:
        self.phone, self.observer = phone, observer

    async def see(self, before: Scene | None = None, patience_s: float = 0.0) -> Observation:
        known = None if before is None else before.fingerprint
        return await self.observer.observe(before=known, patience_s=patience_s)

    def fault(self, **faults: object) -> None:
        self.phone.faults = self.phone.faults.changed(faults)


@pytest_asyncio.fixture
async def rig() -> AsyncGenerator[Rig]:
    phone = Phone("sim-1", permission_popup=False)
    async with serve([phone]) as url:
        options = AppiumOptions().load_capabilities(
            {"platformName": "Android", "appium:automationName": "UiAutomator2", "appium:udid": "sim-1"}
        )
        driver: Any = await asyncio.to_thread(webdriver.Remote, url, options=options)
        await asyncio.to_thread(driver.update_settings, {"enableMultiWindows": True, "waitForIdleTimeout": 50})
        handle = SessionHandle(id=driver.session_id, url=url)
        with ThreadPoolExecutor(2) as threads:
            attached = AppiumPhone(handle, timeout_s=20)
            yield Rig(phone, Observer(attached, handle, PerceptionSettings(), threads))
            attached.close()
        with contextlib.suppress(Exception):
            await asyncio.to_thread(driver.quit)


def labels(scene: Scene) -> list[str]:
    return [element.label for element in scene.elements]


@pytest.mark.parametrize("start_ms", [0, 200, 700, 1_400])
async def test_an_app_that_starts_slowly_is_seen_as_it_is_in_the_end(rig: Rig, start_ms: int) -> None:
    before = (await rig.see()).scene
    rig.fault(slow_start_ms=start_ms)
    rig.phone.activate(SETTINGS, "t")
    begun = time.monotonic()
    seen = await rig.see(before, patience_s=1.5)
    assert seen.scene.settled
    assert "Network & internet" in " ".join(labels(seen.scene))
    assert seen.read_at - begun >= start_ms / 1_000


async def test_a_still_screen_costs_two_readings(rig: Rig) -> None:
    reads: list[float] = []
    for _ in range(5):
        scene = (await rig.see()).scene
        assert scene.settled
        reads.append(scene.observe_ms)
    assert statistics.median(reads) < 1_000


async def test_a_player_whose_clock_and_progress_run_is_settled(rig: Rig) -> None:
    rig.phone.activate(PLAYER, "t")
    home = (await rig.see()).scene
    track = next(element for element in home.elements if element.role == "row")
    assert track.tap_point is not None
    rig.phone.tap(Place(track.tap_point.x, track.tap_point.y), "t")
    assert (await rig.see(home, patience_s=0.3)).scene.settled


async def test_a_title_that_moves_with_every_reading_is_told_as_unsettled(rig: Rig) -> None:
    rig.phone.activate(SETTINGS, "t")
    rig.fault(animate=True)
    rig.observer._settings = PerceptionSettings(settle_seconds=0.6)
    assert not (await rig.see()).scene.settled


async def test_what_is_seen_after_a_tap_is_its_effect_though_that_comes_late(rig: Rig) -> None:
    before = (await rig.see()).scene

    async def late(act: Callable[[], None]) -> None:
        await asyncio.sleep(0.15)
        act()

    task = asyncio.create_task(late(lambda: rig.phone.activate(SETTINGS, "t")))
    seen = await rig.see(before, patience_s=0.3)
    await task
    assert seen.scene.page.startswith("Settings")
