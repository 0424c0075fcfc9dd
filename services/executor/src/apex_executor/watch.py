"""What any executor does for all tasks: the watchdog, the intake and the cancellations.

Consumes `started`, `request.>` and `cancel.*` through shared consumers; fills `finished`. Time is counted on one's
own clock from the first sight of a state, and from the start again after a reconnect: while nothing could be read,
nobody was late.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from apex_bus import metrics
from apex_bus.connection import Bus
from apex_bus.consume import Delivery, Done, Later, Verdict, bury
from apex_bus.tasklog import Entry, Filled, Taken, TaskLog, entry_of
from apex_bus.tracing import export_root
from apex_executor import decide
from apex_executor.requests import Asked, read_request, task_of
from apex_executor.settings import ExecutorSettings
from apex_schemas import envelope, subjects
from apex_schemas.devices import DeviceRecord
from apex_schemas.errors import WireError
from apex_schemas.ids import NO_DEVICE, is_pool, is_task_id, new_attempt
from apex_schemas.subjects import PLATFORM_POOLS, Slot
from apex_schemas.task import CancelRequest, TaskFinished, TaskStarted

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
        if newest.slot.kind == "finished":
            self._sights.forget(slot.task)
            self._sights.forget(f"{slot.task} runs")
            return Done()
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
        await self._end(newest, status="failed", reason=verdict.reason, stage=verdict.stage, goal=request.goal)
        return Later(_AGAIN_S)

    async def _sign_of_life(self, newest: Entry) -> int:
        """What is renewed while a stage is at work on a long wait, which is no lateness: the planner's claim during a
        provider call, and the device record while an act waits for approval."""
        slot = newest.slot
        if slot.kind == "scene":
            claim = await self._bus.get("CLAIMS", subjects.claim(slot.task, slot.turn or 0))
            return claim.sequence if claim else 0
        if slot.kind == "planned":
            stored = await self._bus.get("DEVICES", subjects.device(slot.device))
            record = envelope.decode(stored.data).body if stored else None
            if stored and isinstance(record, DeviceRecord) and _waits(record, slot):
                return stored.sequence
        return 0

    async def on_request(self, delivery: Delivery) -> Verdict:
        """End what can never start: malformed, for nobody, or too old."""
        try:
            asked = read_request(delivery)
        except WireError as error:
            await self._refuse(task_of(delivery), f"malformed request: {error}", goal="")
            await bury(self._bus, delivery, str(error), stream="REQUESTS")
            return Done()
        newest = await self._log.newest(None, asked.task)
        if newest is not None:
            return await self._known(newest, asked, delivery)
        pool = delivery.subject.partition(".")[2]
        if asked.expired(time.time()):
            await self._refuse(asked.task, f"no device of pool {pool} took it in time", goal=asked.request.goal)
            return Later(_AGAIN_S)
        if not await self._served(pool) and self._sights.waited_s(f"pool of {asked.task}", pool) >= _UNKNOWN_POOL_S:
            reason = f"pool {pool} is unknown: use any, android, ios or the alias of a device (see `apex devices`)"
            await self._refuse(asked.task, reason, goal=asked.request.goal)
            return Later(_AGAIN_S)
        return Later(min(_LOOK_S, max(_AGAIN_S, asked.not_after - time.time())))

    async def _known(self, newest: Entry, asked: Asked, delivery: Delivery) -> Verdict:
        """The task has started or ended: this request is done, unless it is another one under the same id."""
        self._sights.forget(f"pool of {asked.task}")
        first = await self._log.read(subjects.started(newest.slot.device, asked.task))
        if first is not None and first.body.request_digest != asked.digest:
            reason = f"task {asked.task} was already asked for with other content; use another id"
            await bury(self._bus, delivery, reason, stream="REQUESTS")
        return Done()

    async def _served(self, pool: str) -> bool:
        if pool in ("any", *PLATFORM_POOLS):
            return True
        return is_pool(pool) and await self._bus.get("DEVICES", subjects.device(pool)) is not None

    async def on_cancel(self, delivery: Delivery) -> Verdict:
        """End a task because its client says so, wherever it is."""
        task = delivery.subject.partition(".")[2]
        if not is_task_id(task):
            await bury(self._bus, delivery, f"{task!r} is no task id", stream="REQUESTS")
            return Done()
        newest = await self._log.newest(None, task)
        if newest is not None and newest.slot.kind == "finished":
            return Done()
        reason = _cancel_reason(delivery.data)
        if newest is None:
            await self._refuse(task, reason, goal="", status="cancelled", stage="client")
        else:
            goal = (await self._log.started(newest.slot.device, task)).request.goal
            await self._end(newest, status="cancelled", reason=reason, stage="client", goal=goal)
        return Later(_AGAIN_S)

    async def _refuse(
        self, task: str, reason: str, *, goal: str, status: str = "failed", stage: str = "intake"
    ) -> None:
        """End a task that never started; refused when it has."""
        slot = subjects.finished(NO_DEVICE, task)
        await self._fill(slot, 0, status=status, reason=reason, stage=stage, goal=goal, turns=0)

    async def _end(self, newest: Entry, *, status: str, reason: str, stage: str, goal: str) -> None:
        """End a running task right behind its newest slot; refused when something has happened since."""
        slot = newest.slot.sibling("finished")
        turns = decide.turns_of(newest.slot.kind, newest.slot.turn)
        await self._fill(slot, newest.sequence, status=status, reason=reason, stage=stage, goal=goal, turns=turns)

    async def _fill(
        self, slot: Slot, after: int, *, status: str, reason: str, stage: str, goal: str, turns: int
    ) -> None:
        body = TaskFinished(
            status="cancelled" if status == "cancelled" else "failed",
            turns=turns,
            finished_at_ms=time.time_ns() // 1_000_000,
            by=self._bus.worker,
            reason=reason,
            failure_reason=reason,
            stage=stage,
            goal=goal,
        )
        outcome = await self._log.fill(slot, body, attempt=new_attempt(), after=after)
        if isinstance(outcome, Taken):
            log.info("task %s went on before it could be ended", slot.task)
        if isinstance(outcome, Filled) and slot.device == NO_DEVICE:
            self._tell_end(slot.task, body)

    def _tell_end(self, task: str, body: TaskFinished) -> None:
        """A task that no device had has no other who gives its trace a root."""
        metrics.add(metrics.TASKS, 1, {"status": body.status, "stage": body.stage or ""})
        now_ns = time.time_ns()
        export_root(
            task,
            started_ns=now_ns,
            ended_ns=now_ns,
            failure=body.failure_reason or body.status,
            origin=None,
            attributes={"apex.turns": 0, "apex.status": body.status, "apex.stage": body.stage or ""},
        )


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
