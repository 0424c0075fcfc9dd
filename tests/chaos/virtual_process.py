"""Processes in virtual time: they may die and pause before and after each of their calls. And the one consume loop."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chaos.virtual_clock import EPOCH_S
from chaos.virtual_log import Deliveries

from apex_bus.connection import Refused, ServerClock, Stored
from apex_bus.consume import _Loop
from apex_bus.errors import LogUnavailable
from apex_schemas.consumers import Consumer

if TYPE_CHECKING:
    from chaos.virtual_world import World


class Process:
    """One process: it may die or stop before and after each of its calls. Dead, it never returns from one."""

    def __init__(self, world: "World", name: str, start: Callable[["Process"], list[Any]]) -> None:
        self.world, self.name, self._start = world, name, start
        self.serial, self.paused_until = 0, 0.0
        self.lives = 0
        self.begin()

    def begin(self) -> None:
        self.lives += 1
        self.serial += 1
        life = Life(self)
        self.world.keep(asyncio.ensure_future(self._live(life)))

    async def _live(self, life: "Life") -> None:
        try:
            await asyncio.gather(*self._start(life))  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001  (whatever ends a process is a finding)
            self.world.failures.append(f"{life.worker} ended: {error!r}")


class Life:
    """One life of a process, and its connection: what `Bus` is to the code that is tried."""

    def __init__(self, process: Process) -> None:
        self.process, self.world, self.dead = process, process.world, False
        self.worker = f"{process.name}-{process.serial}"
        self.identity = process.name
        self.clock = ServerClock()
        self.connected = True
        self.paused_until = 0.0

    def on_reconnect(self, wake: Callable[[], None]) -> None:
        self.world.reconnects.append(wake)

    def off_reconnect(self, wake: Callable[[], None]) -> None:
        self.world.reconnects.remove(wake)

    async def point(self) -> None:
        """A gap between two calls."""
        log, world = self.world.log, self.world
        world.points[self.process.name] += 1
        chosen = world.at == (self.process.name, world.points[self.process.name])
        if not self.dead and (log.chance(log.faults.crash) or (chosen and world.then == "crash")):
            self.dead = True
            world.crashes += 1
            asyncio.get_running_loop().call_later(log.rng.uniform(0.1, 20), self.process.begin)
        if not self.dead and (log.chance(log.faults.pause) or (chosen and world.then == "pause")):
            self.pause()
        while not self.dead and log.now < self.paused_until:
            await asyncio.sleep(self.paused_until - log.now)
        if self.dead:
            await world.forever()

    def pause(self) -> None:
        """As SIGSTOP: whatever this life does next, it does later."""
        self.world.pauses += 1
        self.paused_until = self.world.log.now + self.world.rng.uniform(1, self.world.faults.longest_pause_s)

    async def publish(
        self, subject: str, data: bytes, *, headers: dict[str, str] | None = None, timeout_s: float = 5.0
    ) -> int:
        log, faults = self.world.log, self.world.log.faults
        await self.point()
        await self._travel()
        if log.now < log.down_until or log.chance(faults.lost_request):
            await self._silence(subject, timeout_s)
        if log.chance(faults.late_write):
            asyncio.get_running_loop().call_later(log.rng.uniform(1, 30), self._late, subject, data, headers or {})
            await self._silence(subject, timeout_s)
        if log.chance(faults.in_flight):
            raise Refused(subject, 10164, "last sequence by subject mismatch")
        sequence = log.apply(subject, data, headers or {})
        await self._travel()
        await self.point()
        if log.chance(faults.lost_answer):
            await self._silence(subject, timeout_s)
        return sequence

    def _late(self, subject: str, data: bytes, headers: dict[str, str]) -> None:
        with contextlib.suppress(Refused):
            self.world.log.apply(subject, data, headers)

    async def get(self, stream: str, subject: str, *, timeout_s: float = 5.0) -> Stored | None:
        log = self.world.log
        await self.point()
        await self._travel()
        if log.now < log.down_until or log.chance(log.faults.lost_answer):
            await self._silence(subject, timeout_s)
        found = log.last(subject)
        if found is not None and log.chance(log.faults.lagging_read):
            age_s = log.now + EPOCH_S - found.timestamp_ns / 1e9
            found = log.before(subject, found) if age_s < log.faults.longest_lag_s else found
        await self.point()
        return found

    async def _travel(self) -> None:
        rng = self.world.log.rng
        await asyncio.sleep(rng.uniform(0.001, 0.02) if rng.random() < 0.95 else rng.uniform(0.1, 2))

    async def _silence(self, subject: str, timeout_s: float) -> None:
        await asyncio.sleep(timeout_s)
        await self.point()
        raise LogUnavailable(f"no answer for {subject}")


class Delivered:
    """A Delivery of a virtual consumer."""

    def __init__(self, life: Life, deliveries: Deliveries, stored: Stored) -> None:
        self._life, self._from = life, deliveries
        self.subject, self.data, self.headers = stored.subject, stored.data, stored.headers
        self.sequence, self.timestamp_ns = stored.sequence, stored.timestamp_ns
        self.delivered = deliveries.counts[stored.sequence]

    @property
    def age_s(self) -> float:
        return self._life.world.log.now + EPOCH_S - self.timestamp_ns / 1e9

    async def _send(self, effect: Callable[[], None]) -> None:
        log = self._life.world.log
        await self._life.point()
        if log.now >= log.down_until and not log.chance(log.faults.lost_ack):
            effect()

    async def working(self) -> None:
        await self._send(lambda: self._from.again(self.sequence, 10))

    async def ack(self) -> None:
        await self._send(lambda: self._from.ack(self.sequence))

    async def again(self, delay_s: float) -> None:
        await self._send(lambda: self._from.again(self.sequence, delay_s))

    async def never(self) -> None:
        await self.ack()


async def consume(life: Life, consumer: Consumer, handle: Callable[[Any], Any], *, concurrency: int = 1) -> None:
    """As apex_bus.consume.consume, with its own table of what becomes of a message."""
    loop = _Loop(life, consumer, handle)  # type: ignore[arg-type]
    deliveries = life.world.log.deliveries(consumer)
    free = asyncio.Semaphore(concurrency)
    async with asyncio.TaskGroup() as group:
        while True:
            await free.acquire()
            await life.point()
            while (stored := deliveries.take()) is None:
                await life.world.log.something(min(5.0, max(0.05, deliveries.next_due_s())))
                await life.point()
            life.world.delivered[stored.subject] = deliveries.counts[stored.sequence]
            task = group.create_task(loop.settle(Delivered(life, deliveries, stored)))  # type: ignore[arg-type]
            task.add_done_callback(lambda _: free.release())
