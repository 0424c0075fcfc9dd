"""Which devices an executor drives, as it is told while it runs: by a file, by the operator, by what fails."""

import json
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest_asyncio
from integration.conftest import Nats
from integration.executor_rig import Rig, executor_rig, until

from apex_schemas.actions import FinishTask, Tap
from apex_schemas.devices import DeviceStatus
from apex_schemas.geometry import Point

ONE, TWO, LABEL = "sim-1", "sim-2", "blue"
DONE = FinishTask(success=True, reason="done")


@pytest_asyncio.fixture
async def rig(nats_server: Nats, tmp_path: Path) -> AsyncGenerator[Rig]:
    async with executor_rig(nats_server.url, tmp_path, ONE, TWO, consumers=(ONE, TWO, LABEL)) as rig:
        yield rig


def write(rig: Rig, *devices: dict[str, Any]) -> str:
    """The file of devices, and its path."""
    return write_text(rig, json.dumps(devices))


def write_text(rig: Rig, text: str) -> str:
    file = rig.folder / "devices.json"
    file.write_text(text)
    return str(file)


async def without(rig: Rig, device: str) -> bool:
    return device not in {status.device for status in await rig.statuses()}


async def test_device_is_added_to_the_file_and_taken_out_without_a_restart(rig: Rig) -> None:
    await rig.start(devices=(), DEVICES_FILE=write(rig, rig.listed(ONE)))
    await rig.state(ONE, "ready")
    write(rig, rig.listed(ONE), rig.listed(TWO))
    await rig.state(TWO, "ready")
    task = await rig.ask(pool=TWO)
    await rig.started(task)
    write(rig, rig.listed(ONE))
    await rig.plan(task, 0, Tap(at=Point(x=1, y=1)))
    assert (await rig.event(task, 0)).success is True, "a device that is taken out goes on with its task"
    assert not await without(rig, TWO)
    await rig.plan(task, 1, DONE)
    assert (await rig.finished(task)).status == "succeeded"
    await until(lambda: without(rig, TWO), what="a device that is given up")
    assert await rig.sessions(TWO) == []
    assert len(await rig.sessions(ONE)) == 1


async def test_file_that_cannot_be_read_changes_nothing_and_a_changed_device_is_taken_on_anew(rig: Rig) -> None:
    await rig.start(devices=(), DEVICES_FILE=write(rig, rig.listed(ONE)))
    first = await rig.state(ONE, "ready")
    write_text(rig, "[{")
    log = rig.folder / "executor-0.log"

    async def complains() -> bool:
        return b"the devices stay as they were" in log.read_bytes()

    await until(complains, what="a complaint about the file")
    assert (await rig.state(ONE, "ready")).session == first.session
    write(rig, rig.listed(ONE, pools=[LABEL]))

    async def labelled() -> bool:
        return any(LABEL in status.pools and status.state == "ready" for status in await rig.statuses())

    await until(labelled, what="the device with its label", within_s=40)
    task = await rig.ask(pool=LABEL)
    assert (await rig.started(task)).device == ONE


async def test_device_that_nats_has_no_consumers_for_says_what_to_do(rig: Rig) -> None:
    await rig.start(devices=(), DEVICES_FILE=write(rig, rig.listed("sim-9"), rig.listed(ONE)))
    status = await rig.state("sim-9", "unprovisioned", reason="NATS has no consumer POOL_sim-9")
    assert "apex_bus.provision" in (status.reason or "")
    await rig.state(ONE, "ready")


async def test_paused_device_finishes_its_task_takes_no_other_and_leaves_the_phone_alone(rig: Rig) -> None:
    await rig.start(devices=(ONE,))
    task = await rig.ask()
    await rig.started(task)
    assert (await rig.control(ONE, "pause", by="ada", reason="new screen")).paused is True
    await rig.plan(task, 0, DONE)
    assert (await rig.finished(task)).status == "succeeded"
    status = await rig.state(ONE, "waiting", reason="paused by ada: new screen")
    assert status.session is None
    assert await rig.sessions(ONE) == []
    held, other = await rig.ask(pool=ONE, not_after=time.time() + 4), await rig.ask(pool=ONE)
    finished = await rig.finished(held)
    assert finished.status == "failed"
    assert (finished.failure_reason or "").endswith("took it in time; sim-1 is paused by ada: new screen")
    assert (await rig.control(ONE, "resume")).paused is False
    assert (await rig.started(other)).device == ONE


async def test_pause_outlives_its_executor(rig: Rig) -> None:
    first = await rig.start(devices=(ONE,))
    await rig.state(ONE, "ready")
    await rig.control(ONE, "pause", by="ada")
    first.kill()
    await first.wait()
    await rig.start(devices=(ONE,))
    assert (await rig.state(ONE, "waiting", reason="paused by ada")).paused is True


async def test_device_that_fails_is_set_aside_and_others_have_the_pools_requests(rig: Rig) -> None:
    await rig.phones.set_faults(TWO, {"create_fails": 2})
    await rig.start()
    status = await rig.state(TWO, "quarantined")
    assert status.failures > 0
    assert status.retry_s is not None
    own = await rig.ask(pool=TWO)
    for _ in range(2):
        task = await rig.ask()
        assert (await rig.started(task)).device == ONE
        await rig.plan(task, 0, DONE)
        await rig.finished(task)
    assert (await rig.started(own)).device == TWO, "it was probed, and is ready again"
    assert await _calm(rig, TWO)


async def _calm(rig: Rig, device: str) -> DeviceStatus | None:
    return next((each for each in await rig.statuses() if each.device == device and each.failures == 0), None)


async def test_request_for_a_device_that_stays_away_fails_with_the_reason_at_its_deadline(rig: Rig) -> None:
    await rig.start(devices=(), DEVICES=json.dumps([rig.listed(ONE, url="http://127.0.0.1:9")]))
    await rig.state(ONE, "quarantined", reason="no Appium server answers at http://127.0.0.1:9")
    task = await rig.ask(pool=ONE, not_after=time.time() + 3)
    reason = (await rig.finished(task)).failure_reason or ""
    assert reason.startswith(f"no device of pool {ONE} took it in time; {ONE} is set aside: no Appium server answers")


async def test_queue_tells_what_waits_in_order_and_forgets_what_has_begun(rig: Rig) -> None:
    await rig.start(devices=(ONE,))
    running = await rig.ask()
    await rig.started(running)
    second, third = await rig.ask(), await rig.ask(pool=ONE)

    async def both() -> bool:
        return await rig.queue() == [(second, "any"), (third, ONE)]

    await until(both, what="both that wait")
    await rig.plan(running, 0, DONE)
    assert (await rig.started(third)).device == ONE, "the device's own pool comes first"
    assert await rig.queue() == [(second, "any")]


async def test_devices_have_ports_of_their_own_and_sessions_of_their_own_age(rig: Rig) -> None:
    await rig.start()
    for device in (ONE, TWO):
        assert (await rig.state(device, "ready")).session_age_s is not None
    log = (rig.folder / "executor-0.log").read_text()
    assert "already in use" not in log


async def test_session_is_made_anew_between_tasks_where_that_is_wanted(rig: Rig) -> None:
    await rig.start(devices=(ONE,), REUSE_SESSION="false")
    before = (await rig.state(ONE, "ready")).session
    task = await rig.ask()
    await rig.started(task)
    await rig.plan(task, 0, DONE)
    await rig.finished(task)

    async def renewed() -> bool:
        return any(each.state == "ready" and each.session not in (None, before) for each in await rig.statuses())

    await until(renewed, what="a new session")
