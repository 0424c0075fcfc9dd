"""Broken forms of the protocol, each with one rule taken away, and the troubles in which that does harm.

A test of the tester: whatever a rule is there to prevent must be found once the rule is gone.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any, NamedTuple
from unittest import mock

from chaos.virtual_log import NEVER, Faults
from chaos.virtual_phone import VirtualSession
from chaos.virtual_world import World

from apex_bus.tasklog import Filled, TaskLog
from apex_executor import decide
from apex_executor.claims import Claims
from apex_executor.outcomes import Failure
from apex_executor.tasks import Tasks
from apex_executor.turns import Turns
from apex_planner.ledger import BusLedger
from apex_schemas.devices import Claim, SessionHandle
from apex_schemas.slots import Slot
from apex_schemas.steps import ActIntent, DecisionKey, PlannedStep, WorldEvent

Fill = Callable[..., Any]
_fill: Fill = TaskLog.fill


@contextmanager
def no_intent() -> Iterator[None]:
    """`acting` is written, and what the log says to that is not heeded."""

    async def fill(self: TaskLog, slot: Slot, body: Any, **more: Any) -> Any:
        outcome = await _fill(self, slot, body, **more)
        return Filled(0) if isinstance(body, ActIntent) else outcome

    with mock.patch.object(TaskLog, "fill", fill):
        yield


@contextmanager
def ack_in_place_of_slot() -> Iterator[None]:
    """Whether an act is to be done is told by how often its message was delivered."""

    async def fill(self: TaskLog, slot: Slot, body: Any, **more: Any) -> Any:
        outcome = await _fill(self, slot, body, **more)
        if isinstance(body, ActIntent):
            world: World = self._bus.world  # type: ignore[attr-defined]
            return Filled(0) if world.delivered.get(slot.sibling("planned").subject, 1) == 1 else outcome
        return outcome

    with mock.patch.object(TaskLog, "fill", fill):
        yield


@contextmanager
def no_deadline_check() -> Iterator[None]:
    with mock.patch.object(VirtualSession, "checked", False):
        yield


@contextmanager
def ends_not_looked_for_before_an_act() -> Iterator[None]:
    """As it was: a Scene that crossed with the end hides it from the fences, and a replica from the planner."""

    async def no(self: Turns, acting: Slot) -> bool:
        return False

    with mock.patch.object(Turns, "_ended_before", no):
        yield


@contextmanager
def plans_fenced_by_themselves() -> Iterator[None]:
    """As it was: a plan is stored after the end of its task, and its act, fenced by the plan alone, is done."""
    fence = Slot.fence

    async def fill(self: TaskLog, slot: Slot, body: Any, *, after: int = 0, **more: Any) -> Any:
        return await _fill(self, slot, body, after=0 if slot.kind == "planned" else after, **more)

    def own(slot: Slot) -> str:
        return slot.subject if slot.kind == "planned" else fence(slot)

    with (
        mock.patch.object(TaskLog, "fill", fill),
        mock.patch.object(Slot, "fence", own),
        ends_not_looked_for_before_an_act(),
    ):
        yield


@contextmanager
def starts_fenced_by_themselves() -> Iterator[None]:
    """A task could start on two devices, and after it was ended in the queue."""
    fence = Slot.fence

    def own(slot: Slot) -> str:
        return slot.subject if slot.kind == "started" else fence(slot)

    with mock.patch.object(Slot, "fence", own):
        yield


@contextmanager
def outcome_before_the_session_is_gone() -> Iterator[None]:
    """As it was: an act whose answer does not come is unknown at once, though its session could not be ended."""

    async def once(self: Turns, session: str, server: str, **_: Any) -> None:
        await self._actor.fence(session, server)

    with mock.patch.object(Turns, "_over", once):
        yield


@contextmanager
def ends_fenced_by_themselves() -> Iterator[None]:
    """A cancellation, or an end by time, is stored whatever has happened since its writer looked."""
    fence = Slot.fence

    async def fill(self: TaskLog, slot: Slot, body: Any, *, after: int = 0, **more: Any) -> Any:
        return await _fill(self, slot, body, after=0 if slot.kind == "finished" else after, **more)

    def own(slot: Slot) -> str:
        return slot.subject if slot.kind == "finished" else fence(slot)

    with mock.patch.object(TaskLog, "fill", fill), mock.patch.object(Slot, "fence", own):
        yield


@contextmanager
def resumed_without_its_start() -> Iterator[None]:
    """Whoever takes a device over goes on with its task where that has started, and only there."""
    resume = Tasks.resume

    async def started_only(self: Tasks, claim: Claim) -> None:
        if await self._log.newest(self._alias, claim.task) is not None:
            await resume(self, claim)

    with mock.patch.object(Tasks, "resume", started_only):
        yield


@contextmanager
def request_acknowledged_before_its_claim() -> Iterator[None]:
    claim = Claims._claim

    async def early(self: Claims, request: Any, lease: Any) -> None:
        await request.delivery.ack()
        await claim(self, request, lease)

    with mock.patch.object(Claims, "_claim", early):
        yield


@contextmanager
def sessions_left_as_they_are() -> Iterator[None]:
    """Whoever takes over an act does not delete the session in which it may be waiting."""

    async def left(self: VirtualSession, old: SessionHandle) -> bool:
        return True

    with mock.patch.object(VirtualSession, "fence", left):
        yield


@contextmanager
def unknown_told_as_not_done() -> Iterator[None]:
    """An act whose answer was lost is taken for a failed one."""
    tell = decide.event_of_failure

    def failed(step: PlannedStep, failure: Failure, **more: Any) -> WorldEvent:
        return tell(step, failure._replace(acted=False), **more)

    with mock.patch.object(decide, "event_of_failure", failed):
        yield


@contextmanager
def calls_without_a_claim() -> Iterator[None]:
    """Two planners that have the same Scene both ask, and pay."""

    @asynccontextmanager
    async def claim(self: BusLedger, key: DecisionKey) -> AsyncGenerator[bool]:
        yield True

    with mock.patch.object(BusLedger, "claim", claim):
        yield


@contextmanager
def ended_tasks_not_let_go() -> Iterator[None]:
    """As it was: a request that is delivered again is claimed again when a replica hides that its task has ended."""

    async def kept(self: Tasks) -> None: ...

    with mock.patch.object(Tasks, "let_go_if_ended", kept):
        yield


HARSH = Faults(until=200, pause_in_act=0.3, longest_pause_s=90, crash=0.006, crash_every_s=40, pause_every_s=70)
PAUSED = Faults(
    until=300, pause=0.0005, pause_in_act=0.5, longest_pause_s=120, fence_fails=1.0, crash=0,
    crash_every_s=NEVER, pause_every_s=200,
)  # fmt: skip
"""Drivers that sleep right before their act, at phones whose sessions nobody can end."""
CUT = Faults(until=200, cut_in_act=0.4, fence_fails=0.6, longest_act_s=9)
"""Phones that cannot be reached for a while, with an act under way there."""

LAGGING = Faults(lagging_read=0.7, longest_lag_s=10, crash=0.002, crash_every_s=90, pause_every_s=90)
"""Replicas that mostly tell what was true a while ago."""
REPEATED = Faults(
    crash=0, crash_every_s=NEVER, pause=0, pause_every_s=NEVER, pause_in_act=0, lost_ack=0.3, server_crash_every_s=10
)
"""Deliveries that come again and again while nothing dies."""


class Broken(NamedTuple):
    """`symptom`: parts of sentences, one of which must be found; `cancelled`: the share of tasks that are."""

    form: Callable[[], AbstractContextManager[None]]
    symptom: str
    faults: Faults
    cancelled: float = 0


BROKEN: dict[str, Broken] = {
    "no intent": Broken(no_intent, "touched 2 times", HARSH),
    "ack in place of slot": Broken(ack_in_place_of_slot, "touched 2 times", HARSH),
    "no deadline check": Broken(no_deadline_check, "touched after its outcome", PAUSED),
    "plans fenced by themselves": Broken(plans_fenced_by_themselves, "was begun after the end", HARSH, 0.8),
    "starts fenced by themselves": Broken(starts_fenced_by_themselves, "was started 2 times|has 2 ends", HARSH, 0.8),
    "ends fenced by themselves": Broken(ends_fenced_by_themselves, "has 2 ends|was begun after the end", HARSH, 0.8),
    "outcome before the session is gone": Broken(outcome_before_the_session_is_gone, "touched after its outcome", CUT),
    "sessions left as they are": Broken(sessions_left_as_they_are, "touched after its outcome", CUT),
    "unknown told as not done": Broken(unknown_told_as_not_done, "said to be not done, and was", CUT),
    "resumed without its start": Broken(resumed_without_its_start, "is still on a task|has 0 ends", HARSH),
    "request acknowledged before its claim": Broken(request_acknowledged_before_its_claim, "has 0 ends", HARSH),
    "calls without a claim": Broken(calls_without_a_claim, "times without a kill or pause", REPEATED),
    "ended tasks not let go": Broken(ended_tasks_not_let_go, "is still on a task", LAGGING, 0.9),
}
