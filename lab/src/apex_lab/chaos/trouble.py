"""The trouble: kills, pauses, restarts, cuts, delays and faults of phones, each at its own rate, all from one seed.

Owns what it breaks: every step mends what it broke before it ends, and `stop` lets each finish its step.
"""

import asyncio
import random
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from msgspec import Struct

from apex_lab.chaos.drivers import Drivers
from apex_lab.chaos.evidence import Made, Trouble
from apex_lab.chaos.linked import Linked
from apex_lab.chaos.links import Link

LONGEST_WAIT_S: Final = 15.0
"""The longest acknowledgement wait and lease that anything has; a pause lasts longer."""
_AIM_S: Final = 3.0
_AIMED: Final = 0.15
"""Of the kills, this share is aimed at the executor that is about to act; the others fall where they fall."""


class Rates(Struct, frozen=True, kw_only=True):
    """Troubles a minute."""

    kill: float = 20.0
    pause: float = 2.8
    nats: float = 2.2
    postgres: float = 1.6
    cut: float = 3.0
    delay: float = 1.5
    freeze: float = 1.5
    faults: float = 12.0


class Troublemaker:
    """Makes trouble for a stack from `run` to `stop`. What was done stands in `made`."""

    def __init__(
        self, stack: Linked, *, seed: int, rates: Rates, planned: asyncio.Queue[str], drivers: Drivers
    ) -> None:
        self._stack, self._seed, self._rates = stack, seed, rates
        self._planned, self._drivers = planned, drivers
        self._ending = asyncio.Event()
        self._paused: set[str] = set()
        self._processes = sorted(stack.links)
        self.made: list[Made] = []

    async def run(self) -> None:
        """Until `stop`, and until everything is mended."""
        steps: dict[str, Callable[[random.Random], Awaitable[None]]] = {
            "kill": self._kill, "pause": self._pause, "nats": self._nats, "postgres": self._postgres,
            "cut": self._cut, "delay": self._delay, "freeze": self._freeze, "faults": self._faults,
        }  # fmt: skip
        async with asyncio.TaskGroup() as group:
            for name, step in steps.items():
                rate = getattr(self._rates, name)
                if rate > 0:
                    group.create_task(self._keep(step, random.Random(f"{name} {self._seed}"), rate), name=name)
        for alias in self._phones:
            await self._stack.phones.set_faults(alias, _NO_FAULTS)

    def stop(self) -> None:
        self._ending.set()

    async def _keep(self, step: Callable[[random.Random], Awaitable[None]], rng: random.Random, rate: float) -> None:
        """The pause between two steps is shortened by what the last step took, so that the rate is kept."""
        due = time.monotonic()
        while True:
            due += rng.expovariate(rate / 60)
            if await self._sleep(due - time.monotonic()):
                return
            await step(rng)

    async def _sleep(self, seconds: float) -> bool:
        """Whether the end came meanwhile."""
        try:
            async with asyncio.timeout(max(0.001, seconds)):
                await self._ending.wait()
        except TimeoutError:
            return False
        return True

    @asynccontextmanager
    async def _noting(self, kind: Trouble, target: str) -> AsyncGenerator[None]:
        at_ms = _now_ms()
        try:
            yield
        finally:
            self.made.append(Made(kind, target, at_ms, _now_ms()))

    @property
    def _phones(self) -> list[str]:
        return [device.alias for device in self._stack.wiring.devices]

    async def _kill(self, rng: random.Random) -> None:
        """kill -9, started again at once or after a while; some are aimed at an act."""
        name = rng.choice([name for name in self._processes if name not in self._paused])
        down_s, aim_s = rng.choice((0.0, rng.uniform(0.2, 6))), rng.uniform(0.02, 0.7)
        if rng.random() < _AIMED:
            name = await self._about_to_act() or name
            await asyncio.sleep(aim_s)
        if name in self._paused:
            return
        async with self._noting("kill", name):
            await self._stack.kill(name, again=not down_s)
            if down_s:
                await asyncio.sleep(down_s)
                await self._stack.child(name).start()

    async def _about_to_act(self) -> str | None:
        """Wait for the model's next decision, some seconds at most, and name the process that will carry it out."""
        while not self._planned.empty():
            self._planned.get_nowait()
        try:
            async with asyncio.timeout(_AIM_S):
                return await self._drivers.of(await self._planned.get())
        except TimeoutError:
            return None

    async def _pause(self, rng: random.Random) -> None:
        name = rng.choice([name for name in self._processes if name not in self._paused])
        seconds = LONGEST_WAIT_S + rng.uniform(1, 5)
        self._paused.add(name)
        async with self._noting("pause", name):
            child = self._stack.child(name)
            child.signal(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            child.signal(signal.SIGCONT)
        self._paused.discard(name)

    async def _nats(self, rng: random.Random) -> None:
        hard, down_s = rng.random() < 0.7, rng.uniform(0, 4)
        async with self._noting("nats", "nats"):
            await (self._stack.nats.kill() if hard else self._stack.nats.stop())
            await asyncio.sleep(down_s)
            await self._stack.nats.start()

    async def _postgres(self, rng: random.Random) -> None:
        hard, down_s = rng.random() < 0.7, rng.uniform(0, 8)
        async with self._noting("postgres", "postgres"):
            await (self._stack.postgres.kill() if hard else self._stack.postgres.stop())
            await asyncio.sleep(down_s)
            await self._stack.postgres.start()

    def _link(self, rng: random.Random) -> tuple[str, Link]:
        name = rng.choice(self._processes)
        server = rng.choice(sorted(self._stack.links[name]))
        return name, self._stack.links[name][server]

    async def _cut(self, rng: random.Random) -> None:
        name, link = self._link(rng)
        away_s = rng.choice((0.0, 0.0, rng.uniform(1, 5)))
        async with self._noting("cut", name):
            link.cut()
            if away_s:
                link.refuse()
                await asyncio.sleep(away_s)
                link.heal()

    async def _delay(self, rng: random.Random) -> None:
        name, link = self._link(rng)
        link.delay_s = rng.uniform(0.02, 0.3)
        async with self._noting("delay", name):
            await asyncio.sleep(rng.uniform(3, 12))
            link.heal()

    async def _freeze(self, rng: random.Random) -> None:
        """Nothing comes through and nothing is closed, as when a cable is pulled."""
        name, link = self._link(rng)
        async with self._noting("freeze", name):
            link.freeze()
            await asyncio.sleep(rng.uniform(2, 14))
            link.heal()

    async def _faults(self, rng: random.Random) -> None:
        """Slow phones, so that there is time between `acting` and `event`; now and then a lost answer or session."""
        faults: dict[str, Any] = {
            "latency_ms": {name: rng.randrange(100, 900) for name in _ACTING} | {"source": rng.randrange(0, 150)},
            "latency_after": rng.random() < 0.5,
        }
        odd = rng.random()
        if odd < 0.1:
            faults["answer_lost"] = True
        elif odd < 0.2:
            faults["session_death"] = rng.choice(("before_act", "after_act"))
        try:
            await self._stack.phones.set_faults(rng.choice(self._phones), faults)
        except (aiohttp.ClientError, TimeoutError):
            return  # a busy machine: the next one will do


_ACTING: Final = ("actions", "click", "clear", "value", "activateApp", "terminateApp")
_NO_FAULTS: Final[dict[str, Any]] = {
    "latency_ms": None, "latency_after": None, "answer_lost": None, "session_death": None,
}  # fmt: skip


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
