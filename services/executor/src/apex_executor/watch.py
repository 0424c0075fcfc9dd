"""What any executor does for all tasks: the watchdog, the intake and the cancellations.

Consumes `started`, `request.>` and `cancel.*` through shared consumers; fills `finished`. Time is counted on one's
own clock from the first sight of a state, and from the start again after a reconnect, or when the log was full: while
nothing could be read, or written, nobody was late.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from apex_bus.connection import Bus
from apex_bus.consume import Delivery, Done, Later, Verdict, bury
from apex_bus.errors import StoreFull
from apex_bus.tasklog import Entry, TaskLog, Unreadable, entry_of
from apex_executor import decide
from apex_executor.endings import Endings
from apex_executor.lease import record_of
from apex_executor.queue import Queue
from apex_executor.requests import Asked, read_request, task_of
from apex_executor.settings import ExecutorSettings
from apex_schemas import slots, subjects
from apex_schemas.consumers import PLATFORM_POOLS
from apex_schemas.devices import DeviceRecord
from apex_schemas.errors import WireError
from apex_schemas.ids import is_pool, is_task_id
from apex_schemas.slots import Slot
from apex_schemas.task import CancelRequest, TaskStarted

log = logging.getLogger(__name__)

_LOOK_S: Final = 15.0
_AGAIN_S: Final = 0.1
_UNKNOWN_POOL_S: Final = 30.0
_REMEMBERED: Final = 50_000


class FirstSights:
    """When each state was first seen, on this process's clock; the oldest are forgotten first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, tuple[object, float]] = OrderedDict()

    def waited_s(self, what: str, state: object) -> float:
        """Seconds since `what` has been in `state`, as far as we have seen."""
        now = self._clock()
        known = self._seen.get(what)
        if known is None or known[0] != state:
            known = (state, now)
        self._seen[what] = known
        self._seen.move_to_end(what)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return now - known[1]

    def forget(self, what: str) -> None:
        self._seen.pop(what, None)

    def start_again(self) -> None:
        self._seen.clear()


class Watch:
    """Handlers for the consumers WATCHDOG, INTAKE and CANCEL."""

    def __init__(self, bus: Bus, tasklog: TaskLog, settings: ExecutorSettings) -> None:
        self._bus, self._log = bus, tasklog
        self._endings = Endings(bus, tasklog)
        self.queue = Queue(tasklog)
        self._limits = decide.Limits(
            perception=settings.perception_limit_seconds,
            planner=settings.planner_limit_seconds,
            executor=settings.executor_limit_seconds,
        )
        self._sights = FirstSights()
        bus.on_reconnect(self._sights.start_again)

    async def on_started(self, delivery: Delivery) -> Verdict:
        """Look after a running task: end it when a stage is late."""
        begin = entry_of(delivery)
        assert isinstance(begin.body, TaskStarted)
        slot, request = begin.slot, begin.body.request
        newest = await self._log.newest(slot.device, slot.task)
        if newest is None:
            return Later(_AGAIN_S)
        if await self._has_ended(newest):
            self._sights.forget(slot.task)
            self._sights.forget(f"{slot.task} runs")
            return Done()
        if (broken := await self._broken(newest)) is not None:
            await self._end_unreadable(newest, broken, goal=request.goal)
            return Later(_AGAIN_S)
        state = (newest.sequence, await self._sign_of_life(newest))
        verdict = decide.late(
            newest.slot.kind,
            waited_s=self._sights.waited_s(slot.task, state),
            running_s=self._sights.waited_s(f"{slot.task} runs", slot.task),
            timeout_s=request.timeout_s,
            limits=self._limits,
        )
        if isinstance(verdict, float | int):
            return Later(min(_LOOK_S, max(_AGAIN_S, verdict)))
        log.warning("task %s: %s", slot.task, verdict.reason)
        try:
            await self._endings.end(
                newest, status="failed", reason=verdict.reason, stage=verdict.stage, goal=request.goal
            )
        except StoreFull:
            self._sights.start_again()
            raise
        return Later(_AGAIN_S)

    async def _has_ended(self, newest: Entry) -> bool:
        """An act that was in hand at the end of its task has its event behind it."""
        if newest.slot.kind == "event":
            return await self._log.ended(newest.slot.task, device=newest.slot.device) is not None
        return newest.slot.kind == "finished"

    async def _broken(self, newest: Entry) -> Entry | None:
        """A slot that holds something else than its kind: the newest, or one that is to be filled next."""
        if isinstance(newest.body, Unreadable):
            return newest
        for slot in decide.next_slots(newest.slot):
            entry = await self._log.read(slot)
            if entry is not None and isinstance(entry.body, Unreadable):
                return entry
        return None

    async def _end_unreadable(self, newest: Entry, broken: Entry, *, goal: str) -> None:
        """Nobody can go on from a slot that holds something else."""
        reason = f"the slot {broken.slot.kind} of turn {broken.slot.turn} cannot be read: {broken.body.reason}"
        log.error("task %s: %s", newest.slot.task, reason)
        await self._endings.end(newest, status="failed", reason=reason, stage="executor", goal=goal)

    async def _sign_of_life(self, newest: Entry) -> int:
        """What is renewed while a stage is at work on a long wait, which is no lateness: the planner's claim during a
        provider call, and the device record while an act waits for approval."""
        slot = newest.slot
        if slot.kind == "scene":
            claim = await self._bus.get("CLAIMS", subjects.claim(slot.task, slot.turn or 0))
            return claim.sequence if claim else 0
        if slot.kind == "planned":
            stored = await self._bus.get("DEVICES", subjects.device(slot.device))
            record = record_of(stored, slot.device)
            if stored and record is not None and _waits(record, slot):
                return stored.sequence
        return 0

    async def on_request(self, delivery: Delivery) -> Verdict:
        """End what can never start: malformed, for nobody, or too old."""
        try:
            asked = read_request(delivery)
        except WireError as error:
            await self._endings.refuse(task_of(delivery), f"malformed request: {error}", goal="")
            await bury(self._bus, delivery, str(error), stream="REQUESTS")
            return Done()
        newest = await self._log.newest(None, asked.task)
        if newest is not None:
            if isinstance(newest.body, Unreadable) and newest.slot.kind != "finished":
                await self._end_unreadable(newest, newest, goal=asked.request.goal)
            return await self._known(newest, asked, delivery)
        pool = delivery.subject.partition(".")[2]
        record = await self._record(pool)
        if asked.expired(time.time()):
            self.queue.forget(asked.task)
            reason = f"no device of pool {pool} took it in time{decide.hindrance(pool, record)}"
            await self._endings.refuse(asked.task, reason, goal=asked.request.goal)
            return Later(_AGAIN_S)
        served = record is not None or pool in ("any", *PLATFORM_POOLS)
        if not served and self._sights.waited_s(f"pool of {asked.task}", pool) >= _UNKNOWN_POOL_S:
            reason = f"pool {pool} is unknown: use any, android, ios or the alias of a device (see `apex devices`)"
            await self._endings.refuse(asked.task, reason, goal=asked.request.goal)
            return Later(_AGAIN_S)
        age_s = self._bus.clock.age_s(delivery.timestamp_ns, time.time_ns())
        self.queue.see(asked, pool=pool, sequence=delivery.sequence, age_s=age_s)
        return Later(min(self.queue.pause_s, max(_AGAIN_S, asked.not_after - time.time())))

    async def _known(self, newest: Entry, asked: Asked, delivery: Delivery) -> Verdict:
        """The task has started or ended: this request is done, unless it is another one under the same id."""
        self._sights.forget(f"pool of {asked.task}")
        self.queue.forget(asked.task)
        first = await self._log.read(slots.started(newest.slot.device, asked.task))
        if first is not None and getattr(first.body, "request_digest", asked.digest) != asked.digest:
            reason = f"task {asked.task} was already asked for with other content; use another id"
            await bury(self._bus, delivery, reason, stream="REQUESTS")
        return Done()

    async def _record(self, pool: str) -> DeviceRecord | None:
        """The record of a device that is a pool of its own, or of a label that devices go by."""
        stored = await self._bus.get("DEVICES", subjects.device(pool)) if is_pool(pool) and pool != "any" else None
        return record_of(stored, pool)

    async def on_cancel(self, delivery: Delivery) -> Verdict:
        """End a task because its client says so, wherever it is."""
        task = delivery.subject.partition(".")[2]
        if not is_task_id(task):
            await bury(self._bus, delivery, f"{task!r} is no task id", stream="REQUESTS")
            return Done()
        newest = await self._log.newest(None, task)
        if newest is not None and await self._has_ended(newest):
            return Done()
        reason = _cancel_reason(delivery.data)
        if newest is None:
            goal = self.queue.goal(task)
            await self._endings.refuse(task, reason, goal=goal, status="cancelled", stage="client")
        else:
            goal = (await self._log.started(newest.slot.device, task)).request.goal
            await self._endings.end(newest, status="cancelled", reason=reason, stage="client", goal=goal)
        return Later(_AGAIN_S)


def _waits(record: DeviceRecord, slot: Slot) -> bool:
    """Whether the act of this turn waits for approval, with somebody there who looks for the answer."""
    ours = record.claim is not None and record.claim.task == slot.task
    return ours and record.waiting_turn == slot.turn and not record.released


def _cancel_reason(data: bytes) -> str:
    """The client's words, if there are any that can be read: a cancellation is never refused for its form."""
    if not data:
        return CancelRequest().reason
    try:
        decode = msgspec.json.decode if data[:1] == b"{" else msgspec.msgpack.decode
        return decode(data, type=CancelRequest).reason[:500]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return CancelRequest().reason
