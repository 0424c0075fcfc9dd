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

    def __init__(self, world: "World", name: str, start: Callable[["Life"], list[Any]]) -> None:
        self.world, self.name, self._start = world, name, start
        self.serial, self.paused_until = 0, 0.0
        self.lives = 0
        self.begin()

    def begin(self) -> None:
        self.lives += 1
        self.serial += 1
        Life(self).begin(self._start)


class Life:
    """One life of a process, and its connection: what `Bus` is to the code that is tried."""

    def __init__(self, process: Process) -> None:
        self.process, self.world, self.dead = process, process.world, False
        self.worker = f"{process.name}-{process.serial}"
        self.identity = process.name
        self.clock = ServerClock()
        self.connected = True
        self.paused_until = 0.0

    def begin(self, start: Callable[["Life"], list[Any]]) -> None:
        self.world.log.clock.create_task(self._live(start))
        self._some_time(self.world.faults.crash_every_s, self.crash)
        self._some_time(self.world.faults.pause_every_s, self._pauses)

    async def _live(self, start: Callable[["Life"], list[Any]]) -> None:
        try:
            await asyncio.gather(*start(self))
        except Exception as error:  # noqa: BLE001  (whatever ends a process is a finding)
            self.world.failures.append(f"{self.worker} ended: {error!r}")

    def _some_time(self, every_s: float, trouble: Callable[[], None]) -> None:
        """At any time, also while nothing is done."""
        log = self.world.log
        after_s = log.rng.expovariate(1 / every_s)
        if log.now + after_s < log.faults.until:
            log.clock.call_later(after_s, trouble)

    def _pauses(self) -> None:
        if not self.dead:
            self.pause()
            self._some_time(self.world.faults.pause_every_s, self._pauses)

    def on_reconnect(self, wake: Callable[[], None]) -> None:
        self.world.reconnects.append(wake)

    def off_reconnect(self, wake: Callable[[], None]) -> None:
        self.world.reconnects.remove(wake)

    async def point(self) -> None:
        """A gap between two calls."""
        log, world = self.world.log, self.world
        world.points[self.process.name] += 1
        if not self.dead:
            if world.at is not None and world.at == (self.process.name, world.points[self.process.name]):
                self.crash() if world.then == "crash" else self.pause()
            elif log.troubled:
                drawn = log.rng.random()
                if drawn < log.faults.crash:
                    self.crash()
                elif drawn < log.faults.crash + log.faults.pause:
                    self.pause()
        while not self.dead and log.now < self.paused_until:
            await log.clock.nap(self.paused_until - log.now)
        if self.dead or world.over:
            await world.log.clock.create_future()  # for ever: to return from no call is to be dead

    def crash(self) -> None:
        """As SIGKILL: what this life does next never happens. After a while another begins."""
        if not self.dead:
            self.dead = True
            self.world.crashes += 1
            self.world.log.clock.call_later(self.world.rng.uniform(0.1, 20), self.process.begin)

    def pause(self) -> None:
        """As SIGSTOP: whatever this life does next, it does later."""
        self.world.pauses += 1
        self.paused_until = self.world.log.now + self.world.rng.uniform(1, self.world.faults.longest_pause_s)

    async def publish(
        self, subject: str, data: bytes, *, headers: dict[str, str] | None = None, timeout_s: float = 5.0
    ) -> int:
        log, faults = self.world.log, self.world.log.faults
        await self.point()
        await self._travels()
        if log.now < log.down_until or log.chance(faults.lost_request):
            await self._silence(subject, timeout_s)
        if log.chance(faults.late_write):
            log.clock.call_later(log.rng.uniform(1, 30), self._late, subject, data, headers or {})
            await self._silence(subject, timeout_s)
        if log.chance(faults.in_flight):
            raise Refused(subject, 10164, "last sequence by subject mismatch")
        sequence = log.apply(subject, data, headers or {})
        await self._travels()
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
        await self._travels()
        if log.now < log.down_until or log.chance(log.faults.lost_answer):
            await self._silence(subject, timeout_s)
        found = log.last(subject)
        if found is not None and log.chance(log.faults.lagging_read):
            age_s = log.now + EPOCH_S - found.timestamp_ns / 1e9
            found = log.before(subject, found) if age_s < log.faults.longest_lag_s else found
        await self.point()
        return found

    def _travels(self) -> "asyncio.Future[None]":
        rng = self.world.log.rng.random
        return self.world.log.clock.nap(0.001 + 0.019 * rng() if rng() < 0.95 else 0.1 + 1.9 * rng())

    async def _silence(self, subject: str, timeout_s: float) -> None:
        await self.world.log.clock.nap(timeout_s)
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
                await deliveries.something()
                await life.point()
            life.world.delivered[stored.subject] = deliveries.counts[stored.sequence]
            task = group.create_task(loop.settle(Delivered(life, deliveries, stored)))  # type: ignore[arg-type]
            task.add_done_callback(lambda _: free.release())
