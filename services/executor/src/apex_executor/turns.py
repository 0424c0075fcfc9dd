"""One turn on one device: a `planned` slot becomes an `event`, or the `finished` of its task.

Consumes `planned`; fills `acting`, `event`, `finished`. The phone is touched only by whoever has just filled
`acting`. Where it was filled before, an earlier try may have touched the phone: its session is deleted, and the
outcome is written down as unknown.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from msgspec import structs
from opentelemetry.trace import Span

from apex_bus import metrics
from apex_bus.connection import Bus
from apex_bus.errors import Transient
from apex_bus.tasklog import Entry, Filled, Taken, TaskLog
from apex_bus.tracing import mark_failed, span
from apex_executor import decide
from apex_executor.allowed import outside
from apex_executor.approval import Approvals, Denied, Ended, bare_point
from apex_executor.errors import ActRefused
from apex_executor.failures import classify
from apex_executor.outcomes import Outcome
from apex_executor.secrets import revealed, told_of_failure, told_of_outcome
from apex_executor.session import server_of
from apex_executor.settings import ExecutorSettings
from apex_executor.waiting import wait
from apex_schemas.actions import DescribeScreen, DeviceAction, FinishTask, Look, Wait, tool_name
from apex_schemas.devices import SessionHandle
from apex_schemas.errors import Undecodable
from apex_schemas.ids import new_attempt
from apex_schemas.scene import Scene
from apex_schemas.slots import Slot
from apex_schemas.steps import ActIntent, PlannedStep, Target, Timings, WorldEvent

log = logging.getLogger(__name__)

_FENCE_AGAIN_S: Final = 1.0


class Actor(Protocol):
    """The device as a turn needs it."""

    @property
    def handle(self) -> SessionHandle | None: ...

    async def act(self, action: DeviceAction, target: Target | None) -> Outcome: ...

    def held(self) -> bool:
        """Whether the device is still ours, and we stay."""
        ...

    async def fence(self, session: str, server: str = "") -> bool:
        """Make sure that nothing begun in a session can still happen, and have a new one. True when that is known."""
        ...

    async def heal(self) -> None:
        """Have a session that works, if that can be had."""
        ...

    async def waits(self, turn: int | None, reason: str | None) -> None:
        """Show that an act waits for approval, or that none does any more."""
        ...

    def packages(self, app: str, /) -> Sequence[str]:
        """The packages that a name of an app may mean on this device."""
        ...


class Turns:
    """The turns of one device. What is remembered here is only for a try that goes on; the log holds the truth."""

    def __init__(self, bus: Bus, tasklog: TaskLog, actor: Actor, settings: ExecutorSettings) -> None:
        self._bus, self._log, self._actor, self._settings = bus, tasklog, actor, settings
        self._attempts: dict[Slot, str] = {}
        self._done: dict[Slot, WorldEvent] = {}
        self._first_seen: dict[Slot, float] = {}
        self.approvals = Approvals(bus, tasklog, actor, settings)

    async def take(self, planned: Entry, *, cause: dict[str, str] | None = None) -> bool:
        """Carry a planned step through to its `event` or `finished`. True when the task is finished with it.

        Raises Transient when that could not be written yet: take it again.
        """
        step = planned.body
        assert isinstance(step, PlannedStep)
        turn = planned.slot.turn or 0
        name = tool_name(step.action)
        about = {
            "apex.turn": turn,
            "apex.device": planned.slot.device,
            "apex.action": name,
            "apex.page": step.page,
        }
        with span("act", task=planned.slot.task, cause=cause or None, attributes=about) as current:
            match step.action:
                case FinishTask() as action:
                    return await self._finish(planned, step, action)
                case Look() | DescribeScreen():
                    event = await self._without_act(planned.slot, step)
                case action:
                    found = await self._act(planned, step, action)
                    if found is None:
                        return True
                    event = found
            _tell(current, name, event)
            await self._record(planned.slot, event)
            return False

    async def _record(self, slot: Slot, event: WorldEvent) -> None:
        outcome = await self._log.fill(slot.sibling("event"), event, attempt=new_attempt())
        if isinstance(outcome, Taken):
            log.warning(
                "%s: our outcome came late (%s); another is on record", slot.subject, event.code or event.success
            )
        for memory in (self._attempts, self._done, self._first_seen):
            memory.pop(slot, None)

    async def _finish(self, planned: Entry, step: PlannedStep, action: FinishTask) -> bool:
        slot = planned.slot
        started = await self._log.started(slot.device, slot.task)
        body = decide.finished_by_model(
            step, action, turn=slot.turn or 0, goal=started.request.goal, by=self._bus.worker, now_ms=_now_ms()
        )
        await self._log.fill(slot.sibling("finished"), body, attempt=new_attempt(), after=planned.sequence)
        if await self._log.ended(slot.task, device=slot.device) is None:
            raise Transient(f"the end of task {slot.task} was refused and cannot be read yet", delay_s=0.2)
        return True

    async def _without_act(self, slot: Slot, step: PlannedStep) -> WorldEvent:
        scene: Scene | None = None
        if isinstance(step.action, DescribeScreen):
            entry = await self._log.read(slot.sibling("scene"))
            scene = entry.body if entry is not None and isinstance(entry.body, Scene) else None
        return decide.event_without_act(step, scene, session=self._session(), now_ms=_now_ms())

    async def _act(self, planned: Entry, step: PlannedStep, action: DeviceAction) -> WorldEvent | None:
        """Claim the act, then do it. None when the task was ended in the meantime."""
        slot = planned.slot
        if (done := self._done.get(slot)) is not None:
            return done  # done in an earlier try, whose outcome could not be written
        request = (await self._log.started(slot.device, slot.task)).request
        if (message := outside(step, request.apps, self._actor.packages)) is not None:
            return decide.event_of_refusal(step, "APP_NOT_ALLOWED", message, session=self._session(), now_ms=_now_ms())
        age_s = self._bus.clock.age_s(planned.timestamp_ns, time.time_ns())
        answer = await self.approvals.settle(planned, step, age_s)
        if isinstance(answer, Ended):
            return None
        if isinstance(answer, Denied):
            return decide.event_of_refusal(step, "DENIED", answer.message, session=self._session(), now_ms=_now_ms())
        age_s = self._bus.clock.age_s(planned.timestamp_ns, time.time_ns())
        acting = slot.sibling("acting")
        fresh = answer.waited and not bare_point(step)
        if age_s > self._settings.plan_seconds and not fresh and await self._log.read(acting) is None:
            message = f"decided {age_s:.0f} s ago, on a screen that may have changed; nothing was done"
            return decide.event_of_refusal(step, "STALE_PLAN", message, session=self._session(), now_ms=_now_ms())
        if await self._ended_before(acting):
            return None
        allowed = (await self._log.started(slot.device, slot.task)).request.secrets
        intent = ActIntent(
            action=action,
            session=self._session() or "",
            deadline_ms=round(self._settings.act_seconds * 1_000),
            worker=self._bus.worker,
            server=server_of(self._actor.handle.url) if self._actor.handle else "",
        )
        attempt = self._attempts.setdefault(slot, new_attempt())
        match await self._log.fill(acting, intent, attempt=attempt, after=planned.sequence):
            case Filled():
                del self._attempts[slot]  # from here on a second try is somebody else's
                wait_ms = round(age_s * 1_000)
                if isinstance(action, Wait):
                    event = await self._wait(slot, step, action, wait_ms=wait_ms)
                else:
                    event = await self._touch(step, action, allowed, wait_ms=wait_ms)
                self._done[slot] = event
                return event
            case Taken(entry):
                return await (self._moved_on(slot) if entry is None else self._unknown(slot, step, entry))

    async def _ended_before(self, acting: Slot) -> bool:
        """Whether the task has ended without this act begun. The fence tells of an end behind `planned`; one that came
        right before the Scene is older than what the plan was fenced by, and a lagging replica hid it from the planner.
        """
        ended = await self._log.ended(acting.task, device=acting.device)
        return ended is not None and await self._log.read(acting) is None

    async def _moved_on(self, slot: Slot) -> None:
        """The log has something behind `planned`: an end, or an event that somebody else wrote."""
        if await self._log.ended(slot.task, device=slot.device) is not None:
            return
        if await self._log.read(slot.sibling("event")) is None:
            raise Transient(f"{slot.subject}: the act was refused and the reason cannot be read yet", delay_s=0.2)

    async def _wait(self, slot: Slot, step: PlannedStep, action: Wait, *, wait_ms: int) -> WorldEvent:
        async def ended() -> bool:
            try:
                return await self._log.ended(slot.task, device=slot.device) is not None
            except Transient:
                return False  # not known: the wait goes on, and what comes after it asks again

        began, session = time.monotonic(), self._session()
        most_s = self._settings.act_seconds
        outcome = await wait(action.seconds, most_s=most_s, held=self._actor.held, ended=ended)
        timings = Timings(wait_ms=wait_ms, act_ms=round((time.monotonic() - began) * 1_000))
        return decide.event_of_outcome(step, outcome, session=session or "", timings=timings, now_ms=_now_ms())

    async def _touch(
        self, step: PlannedStep, action: DeviceAction, allowed: tuple[str, ...], *, wait_ms: int
    ) -> WorldEvent:
        secrets = self._settings.secrets
        began, handle = time.monotonic(), self._actor.handle
        session = handle.id if handle else None
        try:
            for_phone, target = revealed(secrets, step, action, allowed=allowed)
            outcome = told_of_outcome(secrets, await self._actor.act(for_phone, target), action)
        except ActRefused as refused:
            message = secrets.mask(refused.message)
            return decide.event_of_refusal(step, refused.code, message, session=session, now_ms=_now_ms())
        except Exception as error:  # noqa: BLE001  (every failure of an act is classified, recorded and told)
            failure = told_of_failure(secrets, classify(error), action)
            log.warning("%s failed: %s: %s", tool_name(action), failure.code, failure.message)
            if failure.acted is None and handle is not None:
                await self._over(handle.id, server_of(handle.url), until=began + self._settings.act_seconds)
            elif failure.session_dead:
                await self._actor.heal()
            return decide.event_of_failure(step, failure, session=session, now_ms=_now_ms())
        timings = Timings(
            wait_ms=wait_ms,
            verify_ms=outcome.verify_ms,
            act_ms=round((time.monotonic() - began) * 1_000),
            read_back_ms=outcome.read_back_ms,
        )
        return decide.event_of_outcome(step, outcome, session=session or "", timings=timings, now_ms=_now_ms())

    async def _unknown(self, slot: Slot, step: PlannedStep, acting: Entry) -> WorldEvent:
        """Somebody began this act. Nothing more may come of it before its outcome is declared unknown."""
        if (event := await self._log.read(slot.sibling("event"))) is not None:
            return _held(event, WorldEvent)
        intent = _held(acting, ActIntent)
        first_seen = self._first_seen.setdefault(slot, time.monotonic())
        await self._over(intent.session, intent.server, until=first_seen + intent.deadline_ms / 1_000)
        log.warning("%s: begun by %s, outcome unknown", slot.subject, intent.worker)
        return decide.event_unknown(step, session=intent.session, now_ms=_now_ms())

    async def _over(self, session: str, server: str, *, until: float) -> None:
        """Return when nothing more can come of what was begun in a session: it is known to be deleted, or else the
        time of the act is over, by our own clock. A phone that is cut off may do yet what it was told before."""
        while not await self._actor.fence(session, server):
            left = until - time.monotonic()
            if left <= 0:
                return
            await asyncio.sleep(min(_FENCE_AGAIN_S, left))

    def _session(self) -> str | None:
        return self._actor.handle.id if self._actor.handle else None


_Body = TypeVar("_Body")


def _held(entry: Entry, type_: type[_Body]) -> _Body:
    """The body of a slot. Raises Undecodable where it holds something else: the watchdog ends the task."""
    if not isinstance(entry.body, type_):
        raise Undecodable(entry.slot.subject, "not of its kind")
    return entry.body


def _tell(current: Span, action: str, event: WorldEvent) -> None:
    """The outcome, on the span of its act and in the metrics."""
    outcome = {True: "done", False: "failed", None: "unknown"}[event.success]
    metrics.add(metrics.TURNS, 1, {"action": action, "outcome": outcome})
    if event.timings is not None:
        for stage, took_ms in structs.asdict(event.timings).items():
            if took_ms is not None:
                current.set_attribute(f"apex.{stage}", took_ms)
    if event.success is not True:
        code = event.code or "UNKNOWN_OUTCOME"
        current.set_attribute("apex.code", code)
        mark_failed(current, code, event.message)
        metrics.add(metrics.REFUSALS, 1, {"stage": "act", "code": code})


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
