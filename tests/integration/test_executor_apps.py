"""The life of a task on its phone: the apps that it may act in, what is opened before and closed behind it, how it is
cancelled. The phone's own state is the judge.
"""

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from integration.conftest import Nats
from integration.executor_rig import DEVICE, Rig, executor_rig

from apex_schemas import subjects
from apex_schemas.actions import Back, FinishTask, LaunchApp, Tap, TerminateApp, Wait
from apex_schemas.geometry import Point

AT = Tap(at=Point(x=270, y=600))
SETTINGS, CONTACTS = "com.android.settings", "com.android.contacts"
DONE = FinishTask(success=True, reason="done")


@pytest_asyncio.fixture
async def rig(nats_server: Nats, tmp_path: Path) -> AsyncGenerator[Rig]:
    async with executor_rig(nats_server.url, tmp_path) as rig:
        yield rig


async def front(rig: Rig) -> str:
    return (await rig.phones.state(DEVICE))["foreground"]


async def cancel(rig: Rig, task: str) -> None:
    await rig.bus.publish(subjects.cancel(task), json.dumps({"reason": "enough"}).encode())


async def test_act_outside_the_apps_of_the_task_is_refused_and_told(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask(apps=["com.android.settings", "com.apex.*"])
    await rig.plan(task, 0, AT, app="com.android.launcher3")
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (False, "APP_NOT_ALLOWED")
    assert "'com.android.launcher3' is on the screen" in (event.message or "")
    assert "com.android.settings, com.apex.*" in (event.message or "")
    for turn, action in enumerate((LaunchApp(app=CONTACTS), TerminateApp(app="Contacts"), AT), start=1):
        await rig.plan(task, turn, action)
        assert (await rig.event(task, turn)).code == "APP_NOT_ALLOWED"
    assert await rig.acts() == []
    for turn, action in enumerate((LaunchApp(app="Settings"), AT, Back()), start=4):
        await rig.plan(task, turn, action, app=SETTINGS if action is AT else "com.android.launcher3")
        assert (await rig.event(task, turn)).success is True


async def test_app_is_opened_before_the_first_look_and_others_closed_after_the_end(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask(launch="Settings", terminate=[SETTINGS, "com.example.absent"])
    await rig.started(task)
    assert await front(rig) == SETTINGS
    assert len(await rig.acts()) == 1
    await rig.plan(task, 0, DONE)
    assert (await rig.finished(task)).status == "succeeded"
    await rig.state(DEVICE, "ready")
    assert await front(rig) != SETTINGS


async def test_task_whose_app_cannot_be_opened_is_not_begun_and_the_device_goes_on(rig: Rig) -> None:
    await rig.start()
    task, other = await rig.ask(launch="com.example.absent"), await rig.ask()
    finished = await rig.finished(task)
    assert (finished.status, finished.turns, finished.stage) == ("failed", 0, "executor")
    reason = finished.failure_reason or ""
    assert reason.startswith("'com.example.absent' could not be opened before the task: APP_NOT_INSTALLED")
    assert (await rig.started(other)).device == DEVICE


async def test_app_that_was_opened_for_a_task_is_not_opened_again_when_its_driver_is_replaced(rig: Rig) -> None:
    process = await rig.start()
    task = await rig.ask(launch="Settings")
    await rig.started(task)
    process.kill()
    await process.wait()
    await rig.start()
    await rig.plan(task, 0, DONE)
    await rig.finished(task)
    assert [act["kind"] for act in await rig.acts()] == ["launch"]


@pytest.mark.parametrize("begun", [False, True])
async def test_cancelled_task_ends_at_once_and_its_act_is_done_once_or_not_at_all(rig: Rig, begun: bool) -> None:
    await rig.start()
    task = await rig.ask()
    await rig.started(task)
    if begun:
        await rig.phones.set_faults(DEVICE, {"latency_ms": {"actions": 6_000}})
        await rig.plan(task, 0, AT)
        await rig.newest(task, "acting", 0)
    await cancel(rig, task)
    finished = await rig.finished(task)
    assert (finished.status, finished.reason) == ("cancelled", "enough")
    assert await rig.acts() == [], "the end does not wait for the act"
    if begun:
        assert (await rig.event(task, 0)).success is True
    else:
        await rig.plan(task, 0, AT)
    following = await rig.ask()
    await rig.plan(following, 0, DONE)
    await rig.finished(following)
    assert len(await rig.acts()) == int(begun)


async def test_request_that_is_cancelled_while_it_waits_never_starts(rig: Rig) -> None:
    await rig.start()
    running = await rig.ask()
    await rig.started(running)
    waiting = await rig.ask()
    await cancel(rig, waiting)
    finished = await rig.finished(waiting)
    assert (finished.status, finished.turns) == ("cancelled", 0)
    await rig.plan(running, 0, DONE)
    await rig.finished(running)
    assert await rig.bus.get("TASKS", f"task.{DEVICE}.{waiting}.0.started") is None


async def test_wait_that_is_longer_than_an_act_may_take_says_how_long_it_was(rig: Rig) -> None:
    await rig.start(ACT_SECONDS="1")
    task = await rig.ask()
    await rig.plan(task, 0, Wait(seconds=20))
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (False, "CUT_SHORT")
    assert re.fullmatch(r"waited [0-9.]+ s of 20: an act may take no longer here", event.message or "")
    await rig.plan(task, 1, Wait(seconds=0.3))
    assert (await rig.event(task, 1)).success
    assert await rig.acts() == []


async def test_cancelled_wait_gives_the_phone_to_the_next_task_at_once(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask()
    await rig.plan(task, 0, Wait(seconds=30))
    await rig.newest(task, "acting", 0)
    following = await rig.ask()
    await cancel(rig, task)
    assert (await rig.finished(task)).status == "cancelled"
    await rig.plan(following, 0, AT)
    assert (await rig.event(following, 0)).success
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (False, "CUT_SHORT")
    assert (event.message or "").endswith("the task has ended")


async def test_executor_that_is_ended_in_a_wait_says_how_long_it_was(rig: Rig) -> None:
    process = await rig.start()
    task = await rig.ask()
    await rig.plan(task, 0, Wait(seconds=30))
    await rig.newest(task, "acting", 0)
    process.terminate()
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (False, "CUT_SHORT")
    assert (event.message or "").endswith("its executor gave the device up")
