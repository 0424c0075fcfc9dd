"""Long tasks are folded from a large stream while slots are written: no write has to wait for a read.

The control reads the same events in the batched form of a direct get, over the whole stream: the server holds its store
meanwhile, and writes wait for as long as there is to look through. Nobody may do that but who provisions.
"""

import asyncio
import contextlib
import json
import logging
import os
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest import mock

import components
import pytest
from chaos.conftest import DEVICES, Secured

from apex_bus.connection import Bus, connect
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_bus.tasklog import TaskLog
from apex_lab.embedded.nats import NatsServer, nats_server
from apex_schemas import envelope
from apex_schemas.actions import Tap
from apex_schemas.geometry import Point
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.slots import Slot, started
from apex_schemas.steps import WorldEvent
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskRequest, TaskStarted

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[2]
EVENTS = 1_000
STREAM_MB = int(os.environ.get("APEX_TEST_STREAM_MB", "300"))
OTHER_BYTES = 60_000
TRIES = 4
EVENT = WorldEvent(action=Tap(at=Point(x=1, y=1)), success=True, page="p", rationale="r" * 2_500)


def test_nothing_of_ours_reads_in_batches() -> None:
    sources = [
        path for folder in ("schemas", "bus", "services", "cli", "lab") for path in (ROOT / folder).rglob("*.py")
    ]
    assert len(sources) > 100
    assert not [
        path for path in sources if re.search(r"multi_last|batched_get|direct_get_batch", path.read_text("utf-8"))
    ]


def test_memory_of_the_lab_hosts_nats_is_bounded() -> None:
    server = (ROOT / "docker-compose.yml").read_text("utf-8").partition("\n  nats:\n")[2].partition("\n\n")[0]
    limit = re.search(r"^ {6}GOMEMLIMIT: (\d+)MiB$", server, re.MULTILINE)
    assert limit is not None, "reading old tasks makes nats-server grow with its disk"
    assert int(limit[1]) <= 1_024


async def test_fold_has_at_most_fifty_reads_in_flight(secured: Secured) -> None:
    async with secured.bus(Identity.EXECUTOR) as bus:
        task = await _long_task(bus, 200)
        get, flying, most = Bus.get, 0, 0

        async def counted(self: Bus, *where: str, **more: Any) -> Any:
            nonlocal flying, most
            flying += 1
            most = max(most, flying)
            try:
                return await get(self, *where, **more)
            finally:
                flying -= 1

        with mock.patch.object(Bus, "get", counted):
            world = await TaskLog(bus).world(DEVICES[0], task, 200)
    assert len(world.history) == 200
    assert 1 < most <= 50


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("big-reads")
async def test_write_does_not_wait_for_the_fold_of_a_long_task(tmp_path: Path) -> None:
    components.nats()
    async with nats_server(tmp_path / "nats") as server, _connected(server) as bus:
        await provision(bus, DEVICES)
        task = await _long_task(bus, EVENTS, among_mb=STREAM_MB)
        stored = (await bus.api("STREAM.INFO.TASKS"))["state"]["bytes"] / 1e6
        assert stored > STREAM_MB * 0.9

        async def folded(reader: Bus) -> int:
            return len((await TaskLog(reader).world(DEVICES[0], task, EVENTS)).history)

        async def batched(reader: Bus) -> int:
            return await _batched(reader, f"task.{DEVICES[0]}.{task}.*.event")

        ours, theirs = list[float](), list[float]()
        for _ in range(TRIES):
            ours.append(await _longest_write(server, folded))
            theirs.append(await _longest_write(server, batched))
    log.info("longest write, ms, beside a read of %d events of %.0f MB: by single gets %s, batched %s",
             EVENTS, stored, *([round(each * 1e3) for each in times] for times in (ours, theirs)))  # fmt: skip
    # What the machine adds is in both; the least of each is what the form of reading costs.
    assert min(theirs) > 2 * min(ours), (ours, theirs)


@contextlib.asynccontextmanager
async def _connected(server: NatsServer) -> AsyncGenerator[Bus]:
    bus = await connect(Identity.EXECUTOR, BusSettings(url=server.url))
    try:
        yield bus
    finally:
        await bus.close()


async def _long_task(bus: Bus, events: int, *, among_mb: int = 0) -> str:
    """A task of so many events, spread over a stream of that size; returns its id."""
    task, free = new_task_id(), asyncio.Semaphore(50)
    begin = TaskStarted(
        request=TaskRequest(goal="g", task=task), pool="any", request_sequence=1, request_digest="d", started_at_ms=1
    )
    others = among_mb * 1_000_000 // OTHER_BYTES

    async def put(subject: str, data: bytes) -> None:
        async with free:
            await bus.publish(subject, data, timeout_s=60)

    async def event(n: int) -> None:
        slot = Slot(device=DEVICES[0], task=task, kind="event", turn=n)
        await put(slot.subject, envelope.encode(EVENT, task=task, device=DEVICES[0], turn=n, attempt=new_attempt()))

    first = started(DEVICES[0], task)
    await put(first.subject, envelope.encode(begin, task=task, device=DEVICES[0], turn=0, attempt=new_attempt()))
    for n in range(events):
        between = range(others * n // events, others * (n + 1) // events)
        await asyncio.gather(
            event(n), *(put(f"task.{DEVICES[1]}.{new_task_id()}.0.scene", bytes(OTHER_BYTES)) for _ in between)
        )
    return task


async def _longest_write(server: NatsServer, read: Callable[[Bus], Awaitable[int]]) -> float:
    """Seconds that a write took at most beside a read after a restart, when the server has nothing in its cache."""
    await server.restart()
    async with _connected(server) as reader, _connected(server) as writer:
        longest, reading = 0.0, True

        async def write() -> None:
            slot = Slot(device=DEVICES[0], task=new_task_id(), kind="event", turn=0)
            data = envelope.encode(EVENT, task=slot.task, device=slot.device, turn=0, attempt=new_attempt())
            await writer.publish(slot.subject, data, timeout_s=60)

        async def keep_writing() -> None:
            nonlocal longest
            while reading:
                began = time.monotonic()
                await write()
                longest = max(longest, time.monotonic() - began)

        await write()  # what only the first costs
        writing = asyncio.create_task(keep_writing())
        assert await read(reader) == EVENTS
        reading = False
        await writing
    return longest


async def _batched(bus: Bus, subjects: str) -> int:
    """How many messages a batched direct get brings."""
    inbox, ended, found = bus.client.new_inbox(), asyncio.Event(), 0

    async def arrived(msg: Any) -> None:
        nonlocal found
        if (msg.headers or {}).get("Status"):
            ended.set()
        else:
            found += 1

    subscription = await bus.client.subscribe(inbox, cb=arrived)
    body = json.dumps({"multi_last": [subjects], "batch": EVENTS}).encode()
    await bus.client.publish("$JS.API.DIRECT.GET.TASKS", body, reply=inbox)
    await asyncio.wait_for(ended.wait(), 60)
    await subscription.unsubscribe()
    return found
