"""Two watchdogs, two thousand tasks that wait, and a server that is killed three times: each task is ended once, by the
stage that kept it waiting, and none before that stage was late.

Executors without devices are the watchdogs, as processes of their own. How late they were is said in the log.
"""

import asyncio
import contextlib
import logging
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import components
import pytest
from chaos.conftest import DEVICES
from chaos.resources import resident_mib

from apex_bus.connection import Bus, connect
from apex_bus.errors import Transient
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_bus.tasklog import Filled, TaskLog
from apex_lab.chaos import gather
from apex_lab.embedded.nats import nats_server
from apex_schemas import envelope
from apex_schemas.actions import Tap
from apex_schemas.consumers import SHARED_CONSUMERS
from apex_schemas.geometry import Point, Size
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.scene import Scene, Screen
from apex_schemas.slots import Slot, parse_slot, started
from apex_schemas.steps import PlannedStep
from apex_schemas.structs import Wire
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskRequest, TaskStarted

log = logging.getLogger(__name__)

TASKS = 2_000
LIMIT_S = 3.0
WITHIN_S = 180.0
MOST_GROWTH_MIB = 60.0
STAGES = ("perception", "planner", "executor")
"""Who is waited for: by the task's number, its log ends with `started`, with `scene`, or with `planned`."""
SCENE = Scene(app="a", page="p", screen=Screen(size=Size(width=540, height=1200)))
STEP = PlannedStep(action=Tap(at=Point(x=1, y=1)), page="p")


@contextlib.asynccontextmanager
async def watchdogs(url: str, folder: Path) -> AsyncGenerator[list[asyncio.subprocess.Process]]:
    limits = {f"EXECUTOR_{stage.upper()}_LIMIT_SECONDS": str(LIMIT_S) for stage in STAGES}
    environ = {"PATH": os.environ["PATH"], "APEX_NATS_URL": url, "EXECUTOR_DEVICES": "[]", **limits}
    processes: list[asyncio.subprocess.Process] = []
    try:
        for n in range(2):
            with (folder / f"watchdog-{n}.log").open("wb") as out:
                own = {"APEX_HEALTH_FILE": str(folder / f"watchdog-{n}.health")}
                command = (sys.executable, "-m", "apex_executor")
                processes.append(
                    await asyncio.create_subprocess_exec(*command, env=environ | own, stderr=out, stdout=out)
                )
        yield processes
        assert all(process.returncode is None for process in processes), "a watchdog has ended"
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _waiting(bus: Bus) -> dict[str, str]:
    """Tasks that have come to a halt, each with the stage that it waits for."""
    tasklog, free, stages = TaskLog(bus), asyncio.Semaphore(50), dict[str, str]()

    async def fill(slot: Slot, body: Wire, after: int = 0) -> int:
        filled = await tasklog.fill(slot, body, attempt=new_attempt(), after=after)
        assert isinstance(filled, Filled)
        return filled.sequence

    async def one(n: int) -> None:
        async with free:
            task, device, stage = new_task_id(), DEVICES[n % 2], STAGES[n % 3]
            request = TaskRequest(goal="g", task=task)
            begin = TaskStarted(request=request, pool="any", request_sequence=n, request_digest="d", started_at_ms=1)
            await fill(started(device, task), begin)
            if stage != "perception":
                scene = started(device, task).sibling("scene")
                seen = await fill(scene, SCENE)
                if stage == "executor":
                    await fill(scene.sibling("planned"), STEP, seen)
            stages[task] = stage

    await asyncio.gather(*map(one, range(TASKS)))
    return stages


async def _count(bus: Bus) -> int:
    return (await bus.api("STREAM.INFO.TASKS"))["state"]["messages"]


async def _seen(bus: Bus) -> int:
    return (await bus.api("CONSUMER.INFO.TASKS.WATCHDOG"))["num_ack_pending"]


async def _at_least(count: Callable[[Bus], Awaitable[int]], wanted: int, bus: Bus, what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while True:
        with contextlib.suppress(Transient):
            if await count(bus) >= wanted:
                return
        assert time.monotonic() < deadline, f"not within {WITHIN_S:.0f} s: {what}"
        await asyncio.sleep(0.05)


def test_watchdog_may_have_more_tasks_in_hand_than_an_installation_runs() -> None:
    (watchdog,) = (each for each in SHARED_CONSUMERS if each.name == "WATCHDOG")
    assert watchdog.max_ack_pending >= 5 * TASKS
    assert watchdog.max_deliver == -1, "a count of deliveries would end the watch over a task"


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_each_of_two_thousand_waiting_tasks_is_ended_once_and_none_early_whatever_becomes_of_the_server(
    tmp_path: Path,
) -> None:
    components.nats()
    kills: list[float] = []
    async with nats_server(tmp_path / "nats") as server:
        bus = await connect(Identity.EXECUTOR, BusSettings(url=server.url))
        await provision(bus, DEVICES, store_mib=1_024)
        stages = await _waiting(bus)
        logged = await _count(bus)

        async def kill() -> None:
            kills.append(time.time())
            await server.kill()
            await server.start()

        async with watchdogs(server.url, tmp_path) as processes:
            await _at_least(_seen, TASKS // 2, bus, "half of the tasks are seen")
            before = [resident_mib(process.pid) for process in processes]
            await kill()
            await _at_least(_count, logged + 1, bus, "the first end")
            await kill()
            await _at_least(_count, logged + TASKS // 2, bus, "half of the ends")
            await kill()
            await _at_least(_count, logged + TASKS, bus, "all ends")
            after = [resident_mib(process.pid) for process in processes]
            messages = await gather.messages(bus, "TASKS")
            server_mib = resident_mib(server.pid)
        await bus.close()
    late = _held_against(stages, messages, kills)
    log.info("%d tasks, %d server kills: late by %.2f s in the middle, %.2f s at most",
             TASKS, len(kills), statistics.median(late), max(late))  # fmt: skip
    log.info(
        "watchdogs %s MiB, then %s; server %.0f MiB", *(list(map(round, each)) for each in (before, after)), server_mib
    )
    assert max(now - then for now, then in zip(after, before, strict=True)) < MOST_GROWTH_MIB


def _held_against(stages: dict[str, str], messages: list[Any], kills: list[float]) -> list[float]:
    """Each task has one end, from the stage it waited for and not before its time; how many seconds late each was,
    counted from where its time began, the last kill before its end included."""
    last: dict[str, float] = {}
    ends: Counter[str] = Counter()
    late: list[float] = []
    for subject, _, stored_ms, data in messages:
        slot = parse_slot(subject)
        if slot.kind != "finished":
            last[slot.task] = stored_ms / 1e3
            continue
        ended, body = stored_ms / 1e3, envelope.decode(data).body
        ends[slot.task] += 1
        assert (body.status, body.stage) == ("failed", stages[slot.task])
        # Nobody was late when the server was killed first: everybody's time began anew.
        assert ended + 0.002 >= max(last[slot.task], kills[0]) + LIMIT_S, f"{slot.task} was ended early"
        begun = max(last[slot.task], *(kill for kill in kills if kill <= ended))
        late.append(max(0.0, ended - begun - LIMIT_S))
    assert ends == dict.fromkeys(stages, 1)
    return late
