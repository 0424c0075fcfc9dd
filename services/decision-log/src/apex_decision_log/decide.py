"""Messages as rows. Pure: a subject and bytes in, a row out; clock, database and bus stay outside.

Consumes every kind of TASKS and the records of DECISIONS. A message must say what its subject says, since any client
can have the server publish a stored message again elsewhere.
"""

from collections import Counter
from datetime import UTC, datetime

import msgspec

from apex_decision_log import cleaning
from apex_decision_log.rows import Acting, Decided, Finished, Happened, Planned, Row, Seen, Started
from apex_schemas import envelope
from apex_schemas.actions import Action, tool_name
from apex_schemas.decision import DecisionFault, DecisionRecord, ToolCallDecision
from apex_schemas.envelope import Message
from apex_schemas.errors import SubjectMismatch, Undecodable
from apex_schemas.ids import NO_DEVICE
from apex_schemas.scene import Scene, SemanticScene
from apex_schemas.slots import Slot
from apex_schemas.steps import ActIntent, PlannedStep, Timings, WorldEvent
from apex_schemas.structs import Wire
from apex_schemas.task import TaskFinished, TaskStarted
from apex_schemas.wireframe import wireframe

_MOST_LABELS = 40


def row_of(subject: str, data: bytes, *, stored_at_ms: int) -> Row:
    """The row that a stored message stands for. `stored_at_ms` is the server's time of storing it.

    Raises UnknownKind for a kind of a newer version, another WireError for what cannot be believed or read.
    """
    message = envelope.decode(data)
    try:
        if subject.startswith("decision."):
            return _decided(_record(subject, message))
        return _of_task(envelope.check_slot(message, subject), message.body, stored_at_ms)
    except (RecursionError, msgspec.MsgspecError, OverflowError) as error:
        raise Undecodable(f"the {message.kind} message on {subject}", str(error) or type(error).__name__) from error


def _record(subject: str, message: Message) -> DecisionRecord:
    body = message.body
    if not isinstance(body, DecisionRecord):
        raise SubjectMismatch(subject, f"no call of a provider, being a {message.kind}")
    key = body.key
    if subject != f"decision.{key.task}.{key.turn}.{key.call}" or (message.task, message.turn) != (key.task, key.turn):
        raise SubjectMismatch(subject, f"task {key.task}, turn {key.turn}, call {key.call}")
    return body


def _of_task(slot: Slot, body: Wire, stored_at_ms: int) -> Row:
    turn = slot.turn or 0
    match body:
        case TaskStarted():
            return _started(slot, body)
        case TaskFinished():
            return _finished(slot, body)
        case Scene():
            return _seen(slot.task, turn, body)
        case PlannedStep():
            return _planned(slot.task, turn, body)
        case ActIntent():
            return Acting(
                task_id=slot.task,
                turn=turn,
                intended_at=_moment(stored_at_ms) or datetime.fromtimestamp(0, UTC),
                deadline_ms=body.deadline_ms,
                session=cleaning.text(body.session),
                executed_by=cleaning.text(body.worker),
            )
        case WorldEvent():
            return _happened(slot.task, turn, body, stored_at_ms)
        case _:
            raise AssertionError(f"{slot.subject} was checked to hold a kind of the table")


def _started(slot: Slot, body: TaskStarted) -> Started:
    return Started(
        task_id=slot.task,
        device=slot.device,
        goal=cleaning.text(body.request.goal),
        pool=cleaning.text(body.pool),
        max_turns=body.request.max_turns,
        timeout_s=body.request.timeout_s,
        request_sequence=body.request_sequence,
        started_at=_moment(body.started_at_ms),
    )


def _finished(slot: Slot, body: TaskFinished) -> Finished:
    return Finished(
        task_id=slot.task,
        device=None if slot.device == NO_DEVICE else slot.device,
        goal=cleaning.text(body.goal) or None,
        status=body.status,
        turns=body.turns,
        finished_at=_moment(body.finished_at_ms),
        finished_by=cleaning.text(body.by),
        reason=cleaning.text(body.reason) or None,
        failure_reason=cleaning.text(body.failure_reason),
        stage=cleaning.text(body.stage),
        claimed=body.claimed,
        evidence=cleaning.text(body.evidence),
        evidence_found=body.evidence_found,
        answer=cleaning.text(body.answer),
    )


def _seen(task: str, turn: int, scene: Scene) -> Seen:
    shot, drawn = scene.screenshot, wireframe(scene)
    return Seen(
        task_id=task,
        turn=turn,
        kind="semantic_scene" if isinstance(scene, SemanticScene) else "scene",
        app=cleaning.text(scene.app),
        page=cleaning.text(scene.page),
        activity=cleaning.text(scene.activity),
        fingerprint=cleaning.text(scene.fingerprint),
        source=scene.source,
        settled=scene.settled,
        recovered=scene.recovered,
        elements=len(scene.elements),
        omitted=scene.omitted,
        width=scene.screen.size.width,
        height=scene.screen.size.height,
        screenshot_sha256=cleaning.text(shot.sha256) if shot else None,
        screenshot_bytes=shot.bytes if shot else None,
        summary=cleaning.json(_summary(scene)),
        observed_at=_moment(scene.observed_at_ms),
        observe_ms=scene.observe_ms,
        wireframe=cleaning.json({"boxes": drawn.boxes, "keyboard": drawn.keyboard}),
    )


def _summary(scene: Scene) -> dict[str, object]:
    """What was on the screen, in few words: counts of roles, and the labels of what can be acted on."""
    labels = [element.label for element in scene.elements if element.interactive and element.label]
    summary: dict[str, object] = {
        "roles": Counter(element.role for element in scene.elements),
        "labels": labels[:_MOST_LABELS],
        "keyboard": scene.keyboard is not None,
        "recovery": scene.recovery,
    }
    if isinstance(scene, SemanticScene):
        summary["regions"] = [region.kind for region in scene.regions]
        summary["dialogs"] = [region.label for region in scene.dialogs]
    return summary


def _planned(task: str, turn: int, step: PlannedStep) -> Planned:
    name, arguments = _split(step.action)
    return Planned(
        task_id=task,
        turn=turn,
        call=step.decision.call if step.decision else None,
        page=cleaning.text(step.page),
        action=name,
        arguments=cleaning.json(arguments),
        target=cleaning.text(step.target.label) if step.target else None,
        target_detail=cleaning.json(step.target) if step.target else None,
        purpose=cleaning.text(step.purpose),
        expected_outcome=cleaning.text(step.expected_outcome),
        rationale=cleaning.text(step.rationale),
        thinking=cleaning.text(step.thinking),
        ungrounded=step.ungrounded,
        fingerprint=cleaning.text(step.fingerprint),
        evidence_found=step.evidence_found,
        planned_at=_moment(step.planned_at_ms),
        plan_ms=step.plan_ms,
        screen_changed=step.screen_changed,
    )


def _split(action: Action) -> tuple[str, dict[str, object]]:
    fields: dict[str, object] = msgspec.to_builtins(action)
    fields.pop("type", None)
    return tool_name(action), fields


def _happened(task: str, turn: int, event: WorldEvent, stored_at_ms: int) -> Happened:
    timings = event.timings or Timings()
    return Happened(
        task_id=task,
        turn=turn,
        done_action=tool_name(event.action),
        done_page=cleaning.text(event.page),
        success=event.success,
        code=cleaning.text(event.code),
        message=cleaning.text(event.message),
        event_at=_moment(event.happened_at_ms) or _moment(stored_at_ms) or datetime.fromtimestamp(0, UTC),
        wait_ms=timings.wait_ms,
        verify_ms=timings.verify_ms,
        act_ms=timings.act_ms,
        read_back_ms=timings.read_back_ms,
        rationale=cleaning.text(event.rationale),
        thinking=cleaning.text(event.thinking),
    )


def _decided(record: DecisionRecord) -> Decided:
    reply = record.reply
    called = reply if isinstance(reply, ToolCallDecision) else None
    fault = reply if isinstance(reply, DecisionFault) else None
    return Decided(
        task_id=record.key.task,
        turn=record.key.turn,
        call=record.key.call,
        outcome=cleaning.text(fault.code) if fault else "tool_call",
        provider=cleaning.text(reply.provider),
        model=cleaning.text(reply.model),
        system_prompt=cleaning.text(record.system_prompt),
        user_prompt=cleaning.text(record.user_prompt),
        tools=cleaning.json(record.tools),
        tool_name=cleaning.text(called.tool) if called else None,
        tool_arguments=cleaning.json(called.arguments) if called else None,
        purpose=cleaning.text(called.purpose) if called else None,
        expected_outcome=cleaning.text(called.expected_outcome) if called else None,
        rationale=cleaning.text(reply.text_output),
        thinking=cleaning.text(reply.thinking),
        error=cleaning.text(fault.message) if fault else None,
        correctable=fault.correctable if fault else None,
        raw_answer=cleaning.text(record.raw_answer),
        stop_reason=cleaning.text(reply.stop_reason),
        response_id=cleaning.text(reply.response_id),
        input_tokens=reply.usage.input_tokens,
        output_tokens=reply.usage.output_tokens,
        cache_read_tokens=reply.usage.cache_read_tokens,
        cache_write_tokens=reply.usage.cache_write_tokens,
        reasoning_tokens=reply.usage.reasoning_tokens,
        latency_ms=reply.latency_ms,
        screenshot_sha256=cleaning.text(record.screenshot_sha256),
        screenshot_bytes=record.screenshot_bytes,
        requested_at=_moment(record.requested_at_ms),
        worker=cleaning.text(record.worker),
        cost_usd=record.cost_usd,
    )


def _moment(ms: int) -> datetime | None:
    """A time of a message, in Unix milliseconds; None for none, and for one that no calendar has."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC) if ms > 0 else None
    except (OverflowError, ValueError, OSError):
        return None
