"""The operator's commands on a real executor: devices with pause and resume, the queue."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NamedTuple

import pytest_asyncio
from integration.conftest import Nats
from integration.executor_rig import DEVICE, Rig, executor_rig, until

from apex_schemas.actions import FinishTask


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest_asyncio.fixture
async def rig(nats_server: Nats, tmp_path: Path) -> AsyncGenerator[Rig]:
    async with executor_rig(nats_server.url, tmp_path) as rig:
        yield rig


async def apex(rig: Rig, *words: str) -> Said:
    environ = {"PATH": os.environ["PATH"], "APEX_NATS_URL": rig.bus.client.connected_url.geturl(), "USER": "ada"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "apex_cli", *words, env=environ, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    return Said(process.returncode or 0, out.decode(), err.decode())


async def test_device_is_paused_shown_so_and_resumed(rig: Rig) -> None:
    assert (await apex(rig, "devices", "pause", DEVICE)).code == 4, "nobody drives it yet"
    await rig.start()
    await rig.state(DEVICE, "ready")
    listed = json.loads((await apex(rig, "devices", "--json")).out)
    assert listed[0]["state"] == "ready"
    assert "session_age_s" in listed[0]
    assert listed[0]["renewed_s"] is not None
    assert (await apex(rig, "devices", "pause", DEVICE, "--reason", "new screen")).out == f"{DEVICE} is paused\n"
    await rig.state(DEVICE, "waiting", reason="paused by ada: new screen")
    assert "paused by ada: new screen" in (await apex(rig, "devices")).out
    assert (await apex(rig, "devices", "resume", DEVICE)).out == f"{DEVICE} takes tasks again\n"
    await rig.state(DEVICE, "ready")


async def test_queue_tells_how_many_are_before_a_task(rig: Rig) -> None:
    nobody = await apex(rig, "queue")
    assert (nobody.code, "no executor answers" in nobody.err) == (3, True)
    await rig.start()
    await rig.state(DEVICE, "ready")
    assert (await apex(rig, "queue")).out == "nothing waits for a device\n"
    running = await rig.ask()
    await rig.started(running)
    tasks = [await rig.ask("wait for it") for _ in range(3)]

    async def all_wait() -> bool:
        return [task for task, _ in await rig.queue()] == tasks

    await until(all_wait, what="three that wait")
    listed = (await apex(rig, "queue")).out
    assert [task in listed for task in tasks] == [True] * 3
    assert (await apex(rig, "queue", tasks[2])).out.startswith("2 before it in pool any; it waits for ")
    assert (await apex(rig, "queue", running)).code == 4
    await rig.plan(running, 0, FinishTask(success=True, reason="done"))
    await rig.started(tasks[0])
    assert (await apex(rig, "queue", tasks[2])).out.startswith("1 before it in pool any")
