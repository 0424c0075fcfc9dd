"""The executor's decisions as functions of values: no clock, no ids, no I/O.

Consumes decoded slots and outcomes; emits the bodies of `event` and `finished`, and what the watchdog and the
intake make of a task.
"""

from typing import Final, Literal, NamedTuple

import msgspec

from apex_executor.outcomes import Failure, Outcome
from apex_schemas.actions import DescribeScreen, FinishTask, Look
from apex_schemas.devices import DeviceRecord
from apex_schemas.scene import Scene
from apex_schemas.slots import Kind, Slot
from apex_schemas.steps import PlannedStep, Timings, WorldEvent
from apex_schemas.task import TaskFinished

_SUMMARY_ELEMENTS: Final = 80


def event_of_outcome(step: PlannedStep, outcome: Outcome, *, session: str, timings: Timings, now_ms: int) -> WorldEvent:
    """What is said of an act that took place."""
    return _event(
        step,
        success=outcome.success,
        code=outcome.code,
        message=outcome.message,
        session=session,
        timings=timings,
        now_ms=now_ms,
    )


def event_of_failure(step: PlannedStep, failure: Failure, *, session: str | None, now_ms: int) -> WorldEvent:
    """What is said of an act that failed: False only where it provably was not done."""
    success = False if failure.acted is False else None
    return _event(step, success=success, code=failure.code, message=failure.message, session=session, now_ms=now_ms)


def event_of_refusal(step: PlannedStep, code: str, message: str, *, session: str | None, now_ms: int) -> WorldEvent:
    """What is said of an act that was not begun."""
    return _event(step, success=False, code=code, message=message, session=session, now_ms=now_ms)


def event_unknown(step: PlannedStep, *, session: str | None, now_ms: int) -> WorldEvent:
    """What is said when somebody began the act and nobody knows how it ended: it is not done again."""
    return _event(
        step,
        success=None,
        code="UNKNOWN_OUTCOME",
        message="the act was begun and its driver was lost; look whether it took effect",
        session=session,
        now_ms=now_ms,
    )


def event_without_act(step: PlannedStep, scene: Scene | None, *, session: str | None, now_ms: int) -> WorldEvent:
    """What is said of a turn that touches no phone. A description carries the Scene, cut to size."""
    match step.action:
        case Look(code=code, reason=reason):
            return _event(step, success=False, code=code, message=reason, session=session, now_ms=now_ms)
        case DescribeScreen():
            event = _event(step, success=scene is not None, code=None, message=None, session=session, now_ms=now_ms)
            return msgspec.structs.replace(event, scene_summary=_summary(scene))
        case action:
            raise AssertionError(f"{type(action).__name__} touches the phone or ends the task")


def _summary(scene: Scene | None) -> Scene | None:
    if scene is None:
        return None
    cut = max(0, len(scene.elements) - _SUMMARY_ELEMENTS)
    return msgspec.structs.replace(
        scene, elements=scene.elements[:_SUMMARY_ELEMENTS], omitted=scene.omitted + cut, screenshot=None
    )


def _event(
    step: PlannedStep,
    *,
    success: bool | None,
    code: str | None,
    message: str | None,
    session: str | None,
    now_ms: int,
    timings: Timings | None = None,
) -> WorldEvent:
    return WorldEvent(
        action=step.action,
        success=success,
        code=code,
        message=message,
        page=step.page,
        target=step.target,
        purpose=step.purpose,
        expected_outcome=step.expected_outcome,
        rationale=step.rationale,
        thinking=step.thinking,
        session=session,
        ungrounded=step.ungrounded,
        timings=timings,
        happened_at_ms=now_ms,
        fingerprint=step.fingerprint,
        tokens_used=step.tokens_used,
        screen_changed=step.screen_changed,
    )


def finished_by_model(
    step: PlannedStep, action: FinishTask, *, turn: int, goal: str, by: str, now_ms: int
) -> TaskFinished:
    """The end that the model asked for. Its claim stands beside what was found, and is not made more of."""
    return TaskFinished(
        status="succeeded" if action.success else "failed",
        turns=turn + 1,
        finished_at_ms=now_ms,
        by=by,
        reason=action.reason,
        failure_reason=None if action.success else action.reason,
        stage=None if action.success else "planner",
        claimed=action.success,
        evidence=action.evidence,
        evidence_found=step.evidence_found,
        answer=action.answer,
        goal=goal,
    )


class Limits(NamedTuple):
    """Seconds that each stage may keep a task waiting."""

    perception: float
    planner: float
    executor: float


class Late(NamedTuple):
    """The stage that kept a task waiting for too long, as a sentence for its end."""

    stage: str
    reason: str


_STAGE: Final[dict[Kind, Literal["perception", "planner", "executor"]]] = {
    "started": "perception",
    "event": "perception",
    "scene": "planner",
    "planned": "executor",
    "acting": "executor",
}


def late(newest: Kind, *, waited_s: float, running_s: float, timeout_s: float, limits: Limits) -> Late | float:
    """Who is late with a task whose newest slot is `newest`; else the seconds until somebody can be."""
    if newest == "finished":
        return float("inf")
    stage = _STAGE[newest]
    limit = getattr(limits, stage)
    if running_s >= timeout_s:
        return Late(stage, f"not done within {timeout_s:g} s; it was waiting for {stage}")
    if waited_s >= limit:
        return Late(stage, f"{stage} gave no answer within {limit:g} s; see its log and health")
    return min(limit - waited_s, timeout_s - running_s)


def next_slots(newest: Slot) -> tuple[Slot, ...]:
    """What is to be filled after this slot."""
    match newest.kind:
        case "started":
            return (newest.sibling("scene"),)
        case "event":
            return (newest.sibling("scene", later=1),)
        case "scene":
            return (newest.sibling("planned"),)
        case "planned":
            return newest.sibling("acting"), newest.sibling("event")
        case "acting":
            return (newest.sibling("event"),)
        case "finished":
            return ()


def turns_of(newest: Kind, turn: int | None) -> int:
    """How many turns were begun by the time of this slot."""
    return 0 if newest == "started" else (turn or 0) + 1


def hindrance(pool: str, record: DeviceRecord | None) -> str:
    """What kept a device from taking a request that named it, to follow its end's reason; empty where nothing is known
    to have."""
    if record is None:
        return ""
    if record.paused:
        return f"; {pool} is {record.paused}"
    if record.state == "quarantined":
        return f"; {pool} is set aside: {record.reason or 'no reason is known'}"
    if record.released:
        return f"; no executor drives {pool}"
    if record.claim is not None:
        return f"; {pool} was on task {record.claim.task}"
    return f"; {pool} waits: {record.reason}" if record.reason else ""
