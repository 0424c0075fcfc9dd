"""The system in virtual time: the real Worker, Lease, Claims, Turns, Watch, TaskLog, PlannerService and BusLedger, on
a log, phones and a provider that misbehave.
"""

import asyncio
import contextlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from unittest import mock

import msgspec
from chaos import virtual_clock
from chaos.virtual_log import Faults, VirtualLog
from chaos.virtual_phone import VirtualPhone, VirtualSession
from chaos.virtual_process import Delivered, Life, Process, consume
from chaos.virtual_services import VirtualPlanner, observes

from apex_bus.tasklog import TaskLog
from apex_executor.claims import _ROUND_S, Claims, _Request
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_executor.watch import FirstSights, Watch
from apex_executor.worker import Worker
from apex_planner.service import PlannerService
from apex_schemas import envelope, subjects
from apex_schemas.consumers import SHARED_CONSUMERS, pool_consumer
from apex_schemas.steps import DecisionKey
from apex_schemas.task import TaskRequest

SHARED = {consumer.name: consumer for consumer in SHARED_CONSUMERS}
SETTINGS = ExecutorSettings(lease_seconds=8, act_seconds=10, perception_limit_seconds=200, executor_limit_seconds=300)
HANG_S = 3_000.0


@dataclass
class World:
    """Everything of one run. `at` is a process and the number of one of its gaps, `then` what happens to it there."""

    seed: int
    faults: Faults = field(default_factory=Faults)
    tasks: int = 3
    cancelled: float = 0.3
    copies: int = 2
    at: tuple[str, int] | None = None
    then: Literal["crash", "pause"] = "crash"
    devices: tuple[str, ...] = ("d-1", "d-2")

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.log = VirtualLog(self.rng, self.faults)
        self.phones = {device: VirtualPhone() for device in self.devices}
        self.numbers: dict[str, tuple[int, int]] = {}
        self.paid: dict[DecisionKey, list[Life]] = defaultdict(list)
        self.delivered: dict[str, int] = {}
        self.points: Counter[str] = Counter()
        self.failures: list[str] = []
        self.reconnects: list[Callable[[], None]] = []
        self.crashes = self.pauses = self.sessions = self.server_crashes = 0
        self.ended_s, self.free = 0.0, False
        self.over = False

    async def run(self) -> None:
        """Until every task has ended and every device is free, or nothing more is to be hoped for."""
        self.log.clock = virtual_clock.running()
        copies = range(1, self.copies + 1)
        processes = [Process(self, f"executor-{n}", self._executor) for n in copies]
        processes += [Process(self, f"planner-{n}", self._planner) for n in copies]
        processes += [Process(self, f"perception-{n}", self._perception) for n in copies]
        self.log.clock.create_task(self._server_crashes())
        for number in range(self.tasks):
            task = self.rng.randbytes(16).hex()
            self.numbers[task] = (number, self.rng.randint(2, 4))
            request = TaskRequest(goal="g", task=task, timeout_s=2_000)
            self.log.apply(subjects.request("any"), msgspec.json.encode(request), {})
            if self.rng.random() < self.cancelled:
                self.log.clock.call_later(self.rng.uniform(0, 60), self.log.apply, subjects.cancel(task), b"", {})
        while not (self._all_ended() and self._all_free()) and self.log.now < HANG_S:
            await self.log.clock.nap(1)
        self.ended_s, self.free = self.log.now, self._all_free()
        self.over = True

    def _all_ended(self) -> bool:
        return len(self.log.ended) >= len(self.numbers)

    def _all_free(self) -> bool:
        records = [self.log.last(subjects.device(device)) for device in self.devices]
        return all(each is None or envelope.decode(each.data).body.claim is None for each in records)

    async def _server_crashes(self) -> None:
        while True:
            await self.log.clock.nap(self.rng.expovariate(1 / self.faults.server_crash_every_s))
            if self.log.troubled:
                self.server_crashes += 1
                self.log.crash(self.rng.uniform(0, 8))
                self.log.clock.call_later(8, self._reconnected)

    def _reconnected(self) -> None:
        for wake in list(self.reconnects):
            wake()

    def _executor(self, life: Any) -> list[Any]:
        tasklog = TaskLog(life)
        watch = Watch(life, tasklog, SETTINGS)
        watch._sights = FirstSights(lambda: self.log.now)
        VirtualSession.building = life
        workers = [
            Worker(life, tasklog, DeviceConfig(alias=each, url="http://phone"), SETTINGS) for each in self.devices
        ]
        return [
            consume(life, SHARED["WATCHDOG"], watch.on_started, concurrency=32),
            consume(life, SHARED["INTAKE"], watch.on_request, concurrency=32),
            consume(life, SHARED["CANCEL"], watch.on_cancel),
            *(worker.run() for worker in workers),
        ]

    def _planner(self, life: Any) -> list[Any]:
        service = PlannerService(TaskLog(life), VirtualPlanner(life), None)  # type: ignore[arg-type]
        return [consume(life, SHARED["PLANNER"], service.handle, concurrency=8)]

    def _perception(self, life: Any) -> list[Any]:
        return [consume(life, SHARED["PERCEPTION"], observes(life), concurrency=8)]


async def _take_next(self: Claims, lease: Any, *, until: asyncio.Event) -> None:
    """In place of pulling from the pools: one request from the shared pool."""
    life: Life = self._bus  # type: ignore[assignment]
    deliveries = life.world.log.deliveries(pool_consumer("any"))
    if (stored := deliveries.take()) is None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ROUND_S):
                await deliveries.something()
        await life.point()
        if (stored := deliveries.take()) is None:
            return
    delivered = Delivered(life, deliveries, stored)
    if until.is_set():
        await delivered.again(0.05)
        return
    await self._claim(_Request(delivered, "any"), lease)  # type: ignore[arg-type]


@contextlib.contextmanager
def simulated() -> Iterator[None]:
    """The seams: what pulls, what holds a phone, and what names attempts, which are equal in equal runs."""
    ids = random.Random(0)
    with (
        mock.patch("secrets.token_hex", lambda count: ids.randbytes(count).hex()),
        mock.patch("apex_executor.worker.consume", consume),
        mock.patch("apex_executor.worker.PhoneSession", VirtualSession),
        mock.patch.object(Claims, "take_next", _take_next),
    ):
        yield
