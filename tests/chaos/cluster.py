"""Three nats-servers with replicas 3, whose leaders can be killed, and races between the clients of two of them.

Owns what counts as a round: two tries at once, each insisted on as handlers do, until the log has told of both.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import components
from chaos.conftest import DEVICES

from apex_bus.connection import Bus, connect
from apex_bus.errors import BusError, Transient
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_bus.tasklog import Filled, Taken, TaskLog
from apex_lab.chaos import gather
from apex_lab.chaos.errors import CannotRead
from apex_lab.embedded.nats import NatsServer, nats_server
from apex_lab.embedded.process import free_port
from apex_schemas import envelope
from apex_schemas.ids import new_attempt
from apex_schemas.slots import Slot
from apex_schemas.structs import Wire
from apex_schemas.subjects import Identity

AT_ONCE = 20


class Try(NamedTuple):
    """One try to fill a slot, what came of it, and how long that took."""

    slot: Slot
    attempt: str
    result: Filled | Taken
    waited_s: float

    @property
    def won(self) -> bool:
        return isinstance(self.result, Filled)


class Race(NamedTuple):
    """Rounds of tries, and how many leaders were killed meanwhile."""

    rounds: list[list[Try]]
    kills: int

    def winners(self) -> Counter[int]:
        """How many rounds had how many winners."""
        return Counter(sum(each.won for each in tries) for tries in self.rounds)

    def told(self) -> str:
        longest = max(each.waited_s for tries in self.rounds for each in tries)
        counts = ", ".join(f"{rounds} with {winners}" for winners, rounds in sorted(self.winners().items()))
        return f"{len(self.rounds)} rounds, {self.kills} leaders killed, winners: {counts}; longest try {longest:.1f} s"


async def tried(log: TaskLog, slot: Slot, body: Wire, *, after: int = 0) -> Try:
    """Fill a slot as handlers do: what could not be known yet is tried again with the same attempt."""
    attempt, began = new_attempt(), time.monotonic()
    while True:
        try:
            result = await log.fill(slot, body, attempt=attempt, after=after)
        except Transient:
            await asyncio.sleep(0.1)
        else:
            return Try(slot, attempt, result, time.monotonic() - began)


Round = Callable[[TaskLog, TaskLog, int], Awaitable[list[Try]]]


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

    async def race(self, one: Round, *, rounds: int, kills: int) -> Race:
        """At least so many rounds between clients of two servers, going on until so many leaders were killed."""
        before, ran = self.kills, list[list[Try]]()
        rng = random.Random(rounds)
        async with self.bus(0) as first, self.bus(1) as second, self.bus(2) as third:
            killing = asyncio.create_task(self._kill_leaders(third)) if kills else None
            begun = 0

            async def runner() -> None:
                nonlocal begun
                while begun < rounds or self.kills - before < kills:
                    if killing is not None and killing.done():
                        await killing  # it never ends but by an error
                    begun += 1
                    ran.append(await one(TaskLog(first), TaskLog(second), begun))
                    if kills:  # spread over the time in which leaders change
                        await asyncio.sleep(rng.uniform(0, 0.03))

            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(AT_ONCE):
                        group.create_task(runner())
            finally:
                if killing is not None:
                    killing.cancel()
                    await asyncio.gather(killing, return_exceptions=True)
            for server in self.servers:
                await server.start()
            await self.current(third)
        return Race(ran, self.kills - before)

    async def _kill_leaders(self, bus: Bus) -> None:
        """Until cancelled: kill whoever leads TASKS, start it again, let it catch up."""
        rng = random.Random(1)
        while True:
            await asyncio.sleep(rng.uniform(0.3, 1.5))
            with contextlib.suppress(BusError, KeyError):
                info = await bus.api("STREAM.INFO.TASKS", timeout_s=2)
                leader = info["cluster"]["leader"]
                server = next(each for each in self.servers if leader in each.config_path.read_text())
                await server.kill()
                self.kills += 1
                await asyncio.sleep(rng.uniform(0, 1))
                await server.start()
                await self.current(bus)

    async def current(self, bus: Bus) -> None:
        """Return once TASKS has a leader and two replicas that have caught up with it."""
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(BusError, KeyError):
                    cluster = (await bus.api("STREAM.INFO.TASKS", timeout_s=2))["cluster"]
                    peers = cluster.get("replicas", [])
                    if cluster.get("leader") and len(peers) == 2 and all(peer["current"] for peer in peers):
                        return
                await asyncio.sleep(0.1)

    async def stored(self) -> dict[str, str]:
        """What TASKS holds: the attempt by the subject. A subject that is there twice fails."""
        async with self.bus(0) as bus, asyncio.timeout(60):
            while True:
                await self.current(bus)
                try:
                    messages = await gather.messages(bus, "TASKS")
                    break
                except (Transient, CannotRead):  # who leads may still be changing
                    await asyncio.sleep(0.3)
        held = {subject: envelope.decode(data).attempt for subject, _, _, data in messages}
        assert len(held) == len(messages), "a slot has two messages"
        return held


@contextlib.asynccontextmanager
async def running_cluster(folder: Path) -> AsyncGenerator[Cluster]:
    """Three servers of one cluster on a folder, with every stream and two devices' consumers, three times each."""
    components.nats()
    ports = [free_port() for _ in range(3)]
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
    async with contextlib.AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(
                nats_server(
                    folder / f"n{n}",
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
