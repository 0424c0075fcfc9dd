"""Three nats-servers, replicas 3, leaders killed: whoever races for a place, exactly one has it.

Replicated leaders compare writes in flight by the fence string, and replicas answer reads late: with differing
strings both of two racing devices were accepted in 1,000 of 1,000 rounds (docs/adr/0002).
"""

import asyncio
import contextlib
import os
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable
from pathlib import Path
from typing import Any

import components
import pytest
from chaos.conftest import DEVICES

from apex_bus.connection import Bus, connect
from apex_bus.errors import BusError, Transient
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_bus.tasklog import Entry, Filled, Taken, TaskLog
from apex_lab.embedded.nats import NatsServer, nats_server
from apex_lab.embedded.process import free_port
from apex_schemas.actions import Tap
from apex_schemas.geometry import Point
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.slots import Slot, finished, started
from apex_schemas.steps import ActIntent, PlannedStep
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("cluster")]
ROUNDS = int(os.environ.get("APEX_TEST_ROUNDS", "1000"))
AT_ONCE = 20
TAP = Tap(at=Point(x=1, y=1))
END = TaskFinished(status="cancelled", turns=1, finished_at_ms=1, by="client")


class Cluster:
    """Three servers, and connections to each."""

    def __init__(self, servers: list[NatsServer]) -> None:
        self.servers = servers
        self.kills = 0

    @contextlib.asynccontextmanager
    async def bus(self, n: int) -> AsyncGenerator[Bus]:
        bus = await connect(Identity.EXECUTOR, BusSettings(url=self.servers[n].url))
        try:
            yield bus
        finally:
            await bus.close()

    async def kill_leaders(self, bus: Bus) -> None:
        """Until cancelled: kill whoever leads TASKS, start it again, let it catch up."""
        rng = random.Random(1)
        while True:
            await asyncio.sleep(rng.uniform(1, 4))
            with contextlib.suppress(BusError, KeyError):
                info = await bus.api("STREAM.INFO.TASKS", timeout_s=2)
                leader = info["cluster"]["leader"]
                server = next(each for each in self.servers if leader in each.config_path.read_text())
                await server.kill()
                self.kills += 1
                await asyncio.sleep(rng.uniform(0, 1))
                await server.start()
                await self._current(bus)

    async def _current(self, bus: Bus) -> None:
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(BusError, KeyError):
                    cluster = (await bus.api("STREAM.INFO.TASKS", timeout_s=2))["cluster"]
                    peers = cluster.get("replicas", [])
                    if cluster.get("leader") and len(peers) == 2 and all(peer["current"] for peer in peers):
                        return
                await asyncio.sleep(0.1)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncGenerator[Cluster]:
    components.nats()
    ports = [free_port() for _ in range(3)]
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
    async with contextlib.AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(
                nats_server(
                    tmp_path / f"n{n}",
                    config=f'cluster {{ name: apex, listen: "127.0.0.1:{port}", routes: [{routes}] }}\n',
                )
            )
            for n, port in enumerate(ports)
        ]
        cluster = Cluster(servers)
        async with cluster.bus(0) as bus:
            async with asyncio.timeout(60):
                while True:
                    try:
                        await provision(bus, DEVICES, replicas=3, store_mib=1_024)
                        break
                    except BusError:  # no leader yet
                        await asyncio.sleep(0.3)
        yield cluster


async def insisted(fill: Any) -> Filled | Taken:
    """As handlers do: what could not be known yet is tried again with the same attempt."""
    while True:
        try:
            return await fill()
        except Transient:
            await asyncio.sleep(0.1)


async def raced(cluster: Cluster, one: Any) -> Counter[str]:
    """`ROUNDS` rounds of a race between two servers' clients, while leaders are killed."""
    outcomes: Counter[str] = Counter()
    async with cluster.bus(0) as first, cluster.bus(1) as second, cluster.bus(2) as third:
        killing = asyncio.create_task(cluster.kill_leaders(third))
        free = asyncio.Semaphore(AT_ONCE)

        async def round_(n: int) -> None:
            async with free:
                outcomes[await one(TaskLog(first), TaskLog(second), n)] += 1

        await asyncio.gather(*(round_(n) for n in range(ROUNDS)))
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
        for server in cluster.servers:
            await server.start()
    return outcomes


def _begin(task: str) -> TaskStarted:
    request = TaskRequest(goal="g", task=task)
    return TaskStarted(request=request, pool="any", request_sequence=1, request_digest="d", started_at_ms=1)


async def _both(*fills: Awaitable[Filled | Taken]) -> str:
    results = await asyncio.gather(*fills)
    return {0: "none", 1: "one", 2: "both"}[sum(isinstance(result, Filled) for result in results)]


async def test_two_devices_that_race_for_one_task_never_both_have_it(cluster: Cluster) -> None:
    async def one(a: TaskLog, b: TaskLog, _: int) -> str:
        task = new_task_id()
        mine, yours = new_attempt(), new_attempt()
        return await _both(
            insisted(lambda: a.fill(started(DEVICES[0], task), _begin(task), attempt=mine)),
            insisted(lambda: b.fill(started(DEVICES[1], task), _begin(task), attempt=yours)),
        )

    outcomes = await raced(cluster, one)
    assert outcomes == {"one": ROUNDS}, outcomes
    assert cluster.kills > 0


async def test_start_and_cancel_in_the_queue_never_both_happen(cluster: Cluster) -> None:
    async def one(a: TaskLog, b: TaskLog, _: int) -> str:
        task = new_task_id()
        mine, yours = new_attempt(), new_attempt()
        return await _both(
            insisted(lambda: a.fill(started(DEVICES[0], task), _begin(task), attempt=mine)),
            insisted(lambda: b.fill(finished("none", task), END, attempt=yours)),
        )

    outcomes = await raced(cluster, one)
    assert outcomes == {"one": ROUNDS}, outcomes


async def test_cancel_against_act_and_plan_one_of_both_happens(cluster: Cluster) -> None:
    """Rounds in turn: an end against an act behind one plan, and an end against a plan behind one scene."""

    async def one(a: TaskLog, b: TaskLog, n: int) -> str:
        task = new_task_id()
        place = Slot(device=DEVICES[0], task=task, kind="planned", turn=0)
        ids = [new_attempt() for _ in range(3)]
        base = await insisted(lambda: a.fill(started(DEVICES[0], task), _begin(task), attempt=ids[0]))
        assert isinstance(base, Filled)
        step: Any = PlannedStep(action=TAP, page="p")
        if n % 2:
            base = await insisted(lambda: a.fill(place, step, attempt=ids[0], after=base.sequence))
            assert isinstance(base, Filled)
            place, step = place.sibling("acting"), ActIntent(action=TAP, session="s", deadline_ms=1)
        after = base.sequence
        return await _both(
            insisted(lambda: a.fill(place, step, attempt=ids[1], after=after)),
            insisted(lambda: b.fill(finished(DEVICES[0], task), END, attempt=ids[2], after=after)),
        )

    outcomes = await raced(cluster, one)
    assert outcomes["both"] == 0, outcomes
    assert outcomes["one"] >= ROUNDS * 0.99, outcomes  # none: both gave up before the log told who it was; tried again


async def test_what_was_acknowledged_is_there_after_the_leaders_have_been_killed(cluster: Cluster) -> None:
    kept: dict[Slot, str] = {}

    async def one(a: TaskLog, b: TaskLog, _: int) -> str:
        task, attempt = new_task_id(), new_attempt()
        filled = await insisted(lambda: a.fill(started(DEVICES[0], task), _begin(task), attempt=attempt))
        assert isinstance(filled, Filled)
        kept[started(DEVICES[0], task)] = attempt
        return "one"

    await raced(cluster, one)
    async with cluster.bus(0) as bus:
        await cluster._current(bus)
        log = TaskLog(bus)
        for slot, attempt in kept.items():
            entry: Entry | None = None
            async with asyncio.timeout(10):
                while entry is None:
                    entry = await log.read(slot)
            assert entry.attempt == attempt
