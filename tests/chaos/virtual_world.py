"""The system in virtual time: the real Worker, Lease, Claims, Turns, Watch, TaskLog, PlannerService and BusLedger, on
a log, phones and a provider that misbehave; processes that die and pause before and after every call.
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
from chaos.virtual_clock import EPOCH_S
from chaos.virtual_log import Deliveries, Faults, VirtualLog
from selenium.common.exceptions import InvalidSessionIdException

from apex_bus.connection import Refused, ServerClock, Stored
from apex_bus.consume import Done, Later, Verdict, _Loop
from apex_bus.errors import LogUnavailable
from apex_bus.tasklog import TaskLog
from apex_executor.claims import Claims, _Request
from apex_executor.errors import ActRefused, DeviceFailed
from apex_executor.outcomes import Outcome
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_executor.watch import FirstSights, Watch
from apex_executor.worker import Worker
from apex_planner.clients.protocol import Answer
from apex_planner.ledger import BusLedger
from apex_planner.recorded import RecordedClient
from apex_planner.service import PlannerService
from apex_schemas import envelope, subjects
from apex_schemas.actions import FinishTask, Tap
from apex_schemas.decision import DecisionRequest, ToolCallDecision
from apex_schemas.devices import DeviceRecord, SessionHandle
from apex_schemas.geometry import Point, Size
from apex_schemas.ids import new_attempt
from apex_schemas.scene import Scene, Screen
from apex_schemas.steps import DecisionKey, PlannedStep, WorldState
from apex_schemas.subjects import SHARED_CONSUMERS, Consumer, Slot, parse_slot
from apex_schemas.task import TaskRequest

SHARED = {consumer.name: consumer for consumer in SHARED_CONSUMERS}
SETTINGS = ExecutorSettings(lease_seconds=8, act_seconds=10, perception_limit_seconds=200, executor_limit_seconds=300)
HANG_S = 3_000.0


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


class VirtualPhone:
    """A phone behind an Appium server that keeps every session until it is deleted; a session's acts take a while."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.acts: list[tuple[float, int, int]] = []


class VirtualSession:
    """A PhoneSession. `checked` False is the broken form that begins acts without looking at lease and deadline."""

    checked = True

    def __init__(self, config: DeviceConfig, settings: ExecutorSettings) -> None:
        self.config, self._settings = config, settings
        self.life: Life = World.building  # type: ignore[assignment]
        self._phone = self.life.world.phones[config.alias]
        self.handle: SessionHandle | None = None

    async def open(self) -> SessionHandle:
        log = self.life.world.log
        await self.life.point()
        await asyncio.sleep(log.rng.uniform(0.1, 3))
        if log.chance(0.03):
            raise DeviceFailed(self.config.alias, "no session can be had")
        self.life.world.sessions += 1
        session = f"s{self.life.world.sessions}"
        self._phone.sessions.add(session)
        await self.life.point()
        self.handle = SessionHandle(id=session, url="http://phone")
        return self.handle

    async def alive(self) -> bool:
        await self.life.point()
        return self.handle is not None and self.handle.id in self._phone.sessions

    async def end(self) -> None:
        if self.handle is not None:
            await self.fence(self.handle)
        self.handle = None

    async def clear(self, known: SessionHandle | None) -> int:
        return 0

    async def fence(self, old: SessionHandle) -> bool:
        log = self.life.world.log
        await self.life.point()
        if log.chance(log.faults.fence_fails):
            await asyncio.sleep(1)
            return False
        self._phone.sessions.discard(old.id)
        await self.life.point()
        return True

    async def perform(self, action: Any, target: Any, *, held: Callable[[], bool]) -> Outcome:
        log = self.life.world.log
        deadline = log.now + self._settings.act_seconds
        if log.chance(log.faults.pause_in_act):
            self.life.pause()
        await self.life.point()
        if self.checked and (log.now > deadline or not held()):
            raise ActRefused("NOT_BEGUN", "the lease or the deadline was over")
        assert self.handle is not None
        session = self.handle.id
        arrived = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(log.rng.uniform(0.05, 2), self._touch, session, action, arrived)
        touched = await asyncio.shield(arrived)
        await self.life.point()
        if not touched:
            raise InvalidSessionIdException("the session is gone")
        if log.chance(0.03):
            raise OSError("the answer was lost")
        return Outcome(success=True)

    def _touch(self, session: str, action: Tap, arrived: "asyncio.Future[bool]") -> None:
        alive = session in self._phone.sessions
        if alive:
            self._phone.acts.append((self.life.world.log.now, action.at.x, action.at.y))
        if not arrived.done():
            arrived.set_result(alive)

    def shut(self) -> None:
        return


@dataclass
class Provider:
    life: Life

    async def ask(self, request: DecisionRequest) -> Answer:
        world = self.life.world
        await self.life.point()
        world.paid[request.key].append(self.life)
        await asyncio.sleep(world.log.rng.uniform(0.2, 6))
        await self.life.point()
        return Answer(reply=ToolCallDecision(tool="tap", arguments={}), raw="{}", ignored=())


@dataclass
class VirtualPlanner:
    """A Planner that asks its provider once a turn, taps, and ends the task in its last turn."""

    life: Life

    def __post_init__(self) -> None:
        ledger = BusLedger(self.life)  # type: ignore[arg-type]
        self.client = RecordedClient(Provider(self.life), ledger, concurrency=8)

    async def plan(
        self, scene: Scene, world: WorldState, screenshot: Any = None, *, task: str | None = None
    ) -> PlannedStep:
        assert task is not None
        key = DecisionKey(task=task, turn=world.turn, call=0)
        await self.client.decide(DecisionRequest(key=key, system_prompt="", user_blocks=(), tools=()))
        number, turns = self.life.world.numbers[task]
        if world.turn + 1 >= turns:
            return PlannedStep(action=FinishTask(success=True, reason="done"), page="p", decision=key)
        return PlannedStep(action=Tap(at=Point(x=number, y=world.turn)), page="p", decision=key)


def _observes(life: Life) -> Callable[[Any], Any]:
    """Perception as far as the protocol goes: the next scene, if the device is still on the task."""
    tasks = TaskLog(life)  # type: ignore[arg-type]

    async def handle(delivery: Any) -> Verdict:
        slot = parse_slot(delivery.subject)
        turn = 0 if slot.kind == "started" else (slot.turn or 0) + 1
        wanted = Slot(device=slot.device, task=slot.task, kind="scene", turn=turn)
        if await tasks.read(wanted) or await tasks.read(slot.sibling("finished")):
            return Done()
        stored = await life.get("DEVICES", subjects.device(slot.device))
        record = envelope.decode(stored.data).body if stored else None
        if not isinstance(record, DeviceRecord) or record.claim is None or record.claim.task != slot.task:
            return Done()
        if record.session is None:
            return Later(1)
        scene = Scene(app="a", page="p", screen=Screen(size=Size(width=1, height=1)))
        await tasks.fill(wanted, scene, attempt=new_attempt())
        return Done()

    return handle


@dataclass
class World:
    """Everything of one run. `building` is the life whose worker is being made; `at` is a process and the number of
    one of its gaps, and `then` what happens to it there.
    """

    seed: int
    faults: Faults = field(default_factory=Faults)
    tasks: int = 3
    cancelled: float = 0.3
    copies: int = 2
    at: tuple[str, int] | None = None
    then: Literal["crash", "pause"] = "crash"
    devices: tuple[str, ...] = ("d-1", "d-2")
    building: Any = None

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
        self._kept: list[Any] = []

    def keep(self, something: Any) -> None:
        self._kept.append(something)

    async def forever(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._kept.append(future)  # else what waits for it would be collected, and tidy up as the dead do not
        await future

    async def run(self) -> None:
        """Until every task has ended and every device is free, or nothing more is to be hoped for."""
        copies = range(1, self.copies + 1)
        processes = [Process(self, f"executor-{n}", self._executor) for n in copies]
        processes += [Process(self, f"planner-{n}", self._planner) for n in copies]
        processes += [Process(self, f"perception-{n}", self._perception) for n in copies]
        self.keep(asyncio.ensure_future(self._server_crashes()))
        for number in range(self.tasks):
            task = self.rng.randbytes(16).hex()
            self.numbers[task] = (number, self.rng.randint(2, 4))
            request = TaskRequest(goal="g", task=task, timeout_s=2_000)
            self.log.apply(subjects.request("any"), msgspec.json.encode(request), {})
            if self.rng.random() < self.cancelled:
                loop = asyncio.get_running_loop()
                loop.call_later(self.rng.uniform(0, 60), self.log.apply, subjects.cancel(task), b"", {})
        while not (self._all_ended() and self._all_free()) and self.log.now < HANG_S:
            await asyncio.sleep(1)
        self.ended_s, self.free = self.log.now, self._all_free()

    def _all_ended(self) -> bool:
        return all(self.log.last(f"task.*.{task}.end.finished") for task in self.numbers)

    def _all_free(self) -> bool:
        records = [self.log.last(subjects.device(device)) for device in self.devices]
        return all(each is None or envelope.decode(each.data).body.claim is None for each in records)

    async def _server_crashes(self) -> None:
        while True:
            await asyncio.sleep(self.rng.expovariate(1 / self.faults.server_crash_every_s))
            if self.log.troubled:
                self.server_crashes += 1
                self.log.crash(self.rng.uniform(0, 8))
                asyncio.get_running_loop().call_later(8, self._reconnected)

    def _reconnected(self) -> None:
        for wake in list(self.reconnects):
            wake()

    def _executor(self, life: Any) -> list[Any]:
        tasklog = TaskLog(life)
        watch = Watch(life, tasklog, SETTINGS)
        watch._sights = FirstSights(lambda: self.log.now)
        World.building = life
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
        return [consume(life, SHARED["PERCEPTION"], _observes(life), concurrency=8)]


async def _take_next(self: Claims, lease: Any, **_: Any) -> None:
    """In place of pulling from the pools: one request from the shared pool."""
    life: Life = self._bus  # type: ignore[assignment]
    deliveries = life.world.log.deliveries(subjects.pool_consumer("any"))
    stored = deliveries.take()
    if stored is None:
        await life.world.log.something(5)
        return
    await self._claim(_Request(Delivered(life, deliveries, stored), "any"), lease)  # type: ignore[arg-type]


@contextlib.contextmanager
def simulated() -> Iterator[None]:
    """The seams: what pulls and what holds a phone."""
    with (
        mock.patch("apex_executor.worker.consume", consume),
        mock.patch("apex_executor.worker.PhoneSession", VirtualSession),
        mock.patch.object(Claims, "take_next", _take_next),
    ):
        yield
