"""Acts that wait for the operator: allowed, denied, forgotten, cancelled, and handed from driver to driver."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from integration.conftest import Nats
from integration.executor_rig import DEVICE, Rig, executor_rig, until

from apex_schemas import subjects
from apex_schemas.actions import LaunchApp, Tap
from apex_schemas.devices import DeviceStatus
from apex_schemas.geometry import Point
from apex_schemas.task import Approval

SETTINGS = "com.android.settings"
OPEN = LaunchApp(app=SETTINGS)
POLICY = json.dumps([{"package": SETTINGS}])


@pytest.fixture
async def rig(nats_server: Nats, tmp_path: Path) -> AsyncGenerator[Rig]:
    async with executor_rig(nats_server.url, tmp_path) as made:
        yield made


async def waiting(rig: Rig) -> DeviceStatus:
    """The device once an act of it waits."""

    async def look() -> DeviceStatus | None:
        return next((each for each in await rig.statuses() if each.waiting_turn is not None), None)

    return await until(look, what="an act that waits")


async def answer(rig: Rig, task: str, turn: int, body: Any) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    await rig.bus.publish(subjects.approve(task, turn), data)


async def test_an_act_that_is_held_back_is_shown_and_done_only_when_it_is_allowed(rig: Rig) -> None:
    await rig.start(CONFIRM=POLICY)
    task = await rig.ask()
    await rig.plan(task, 0, OPEN)
    status = await waiting(rig)
    assert (status.device, status.state, status.task, status.waiting_turn) == (DEVICE, "waiting", task, 0)
    assert f"launch_app {SETTINGS} waits for approval: apex approve {task}" in (status.reason or "")
    assert await rig.acts() == []
    assert await rig.bus.get("TASKS", f"task.*.{task}.0.acting") is None

    await answer(rig, task, 0, {"approved": True, "by": "ann"})
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (True, None)
    assert len(await rig.acts()) == 1

    async def busy() -> bool:
        return [(each.state, each.waiting_turn) for each in await rig.statuses()] == [("busy", None)]

    await until(busy, what="the device is busy again")


async def test_an_act_that_is_denied_is_not_done_and_the_task_goes_on(rig: Rig) -> None:
    await rig.start(CONFIRM=POLICY)
    task = await rig.ask()
    await rig.plan(task, 0, OPEN)
    await waiting(rig)
    await answer(rig, task, 0, {"approved": False, "by": "ann"})
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (False, "DENIED")
    assert event.message == "ann did not allow it; nothing was done"
    assert await rig.acts() == []
    await rig.plan(task, 1, Tap(at=Point(x=5, y=5)))
    assert (await rig.event(task, 1)).code is None


async def test_what_no_pattern_matches_does_not_wait(rig: Rig) -> None:
    await rig.start(CONFIRM=json.dumps([{"text": "send money"}]))
    task = await rig.ask()
    await rig.plan(task, 0, OPEN)
    assert (await rig.event(task, 0)).success is True


async def test_without_an_answer_in_time_the_act_is_denied(rig: Rig) -> None:
    await rig.start(CONFIRM=POLICY, CONFIRM_SECONDS="1")
    task = await rig.ask()
    await rig.plan(task, 0, OPEN)
    event = await rig.event(task, 0)
    assert (event.code, event.message) == ("DENIED", "nobody allowed it within 1 s; nothing was done")
    assert await rig.acts() == []


async def test_an_answer_that_cannot_be_read_or_is_another_turns_allows_nothing(rig: Rig) -> None:
    await rig.start(CONFIRM=POLICY, CONFIRM_SECONDS="8")
    task = await rig.ask()
    await rig.plan(task, 0, OPEN)
    await waiting(rig)
    for body in (b"yes", b"\xff\xff", {"approved": "true"}, {"by": "ann"}):
        await answer(rig, task, 0, body)
    await answer(rig, task, 1, {"approved": True})
    assert (await rig.event(task, 0)).code == "DENIED"
    assert await rig.acts() == []


async def test_an_answer_that_the_server_put_there_for_a_service_allows_nothing(rig: Rig) -> None:
    """A service may not write there, but its reads have a reply subject: the server stores its answer."""
    await rig.start(CONFIRM=POLICY, CONFIRM_SECONDS="8")
    task = await rig.ask()
    await rig.plan(task, 0, OPEN)
    await waiting(rig)
    await rig.bus.publish(f"claim.{task}.9", b'{"approved": true}')
    get = f"$JS.API.DIRECT.GET.CLAIMS.claim.{task}.9"
    await rig.bus.client.publish(get, b"", reply=subjects.approve(task, 0))
    assert (await rig.event(task, 0)).code == "DENIED"
    assert await rig.acts() == []
    assert await rig.bus.get("REQUESTS", subjects.approve(task, 0)) is not None


async def test_the_answer_may_come_in_msgpack(rig: Rig) -> None:
    await rig.start(CONFIRM=POLICY)
    task = await rig.ask()
    await rig.plan(task, 0, OPEN)
    await waiting(rig)
    await answer(rig, task, 0, msgspec.msgpack.encode(Approval(approved=True)))
    assert (await rig.event(task, 0)).success is True


async def test_a_cancellation_ends_the_wait_and_frees_the_device(rig: Rig) -> None:
    await rig.start(CONFIRM=POLICY)
    task = await rig.ask()
    await rig.plan(task, 0, OPEN)
    await waiting(rig)
    await rig.bus.publish(subjects.cancel(task), b"")
    assert (await rig.finished(task)).status == "cancelled"

    async def free() -> bool:
        return [(each.state, each.task) for each in await rig.statuses()] == [("ready", None)]

    await until(free, what="the device is free")
    assert await rig.acts() == []
    assert await rig.bus.get("TASKS", f"task.*.{task}.0.event") is None


async def test_a_wait_longer_than_the_executors_limit_and_the_age_of_a_plan_is_no_lateness(rig: Rig) -> None:
    await rig.start(CONFIRM=POLICY, EXECUTOR_LIMIT_SECONDS="1", PLAN_SECONDS="1")
    task = await rig.ask()
    planned = await rig.plan(task, 0, OPEN)
    await waiting(rig)

    async def renewed_often() -> bool:
        stored = await rig.bus.get("DEVICES", subjects.device(DEVICE))
        assert stored is not None
        return stored.timestamp_ns - planned.timestamp_ns > 4e9

    await until(renewed_often, what="four seconds of waiting")
    await answer(rig, task, 0, {"approved": True})
    assert (await rig.event(task, 0)).success is True
    assert await rig.bus.get("TASKS", f"task.*.{task}.end.finished") is None


async def test_an_approved_point_without_anything_to_look_for_is_too_old_after_the_wait(rig: Rig) -> None:
    await rig.start(CONFIRM=json.dumps([{"text": "A > B"}]), PLAN_SECONDS="1")
    task = await rig.ask()
    planned = await rig.plan(task, 0, Tap(at=Point(x=5, y=5)))
    await waiting(rig)

    async def old() -> bool:
        stored = await rig.bus.get("DEVICES", subjects.device(DEVICE))
        return stored is not None and stored.timestamp_ns - planned.timestamp_ns > 1.5e9

    await until(old, what="the plan is old")
    await answer(rig, task, 0, {"approved": True})
    assert (await rig.event(task, 0)).code == "STALE_PLAN"
    assert await rig.acts() == []


@pytest.mark.parametrize("how", ["kill", "terminate"])
async def test_the_next_driver_goes_on_with_the_wait_and_the_act_is_done_once(rig: Rig, how: str) -> None:
    first = await rig.start(CONFIRM=POLICY)
    task = await rig.ask()
    await rig.plan(task, 0, OPEN)
    worker = (await waiting(rig)).worker
    getattr(first, how)()
    await first.wait()
    await rig.start(CONFIRM=POLICY)

    async def taken_over() -> bool:
        return any(each.waiting_turn == 0 and each.worker != worker for each in await rig.statuses())

    await until(taken_over, what="another driver's wait")
    assert await rig.acts() == []
    await answer(rig, task, 0, {"approved": True})
    assert (await rig.event(task, 0)).success is True
    assert len(await rig.acts()) == 1
