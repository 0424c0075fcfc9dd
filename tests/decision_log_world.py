"""Messages of whole tasks, for the decision-log's tests: as they lie in the streams, with their subjects."""

from apex_schemas import envelope, slots, subjects
from apex_schemas.actions import FinishTask, Tap
from apex_schemas.decision import DecisionFault, DecisionRecord, ToolCallDecision, Usage
from apex_schemas.geometry import Point, Size
from apex_schemas.scene import Element, Scene, Screen
from apex_schemas.slots import Slot
from apex_schemas.steps import ActIntent, DecisionKey, PlannedStep, Target, Timings, WorldEvent
from apex_schemas.structs import Wire
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

DEVICE = "sim-1"
START_MS = 1_796_000_000_000

Message = tuple[str, bytes]
"""A subject and the data stored on it."""


def task_id(number: int) -> str:
    return f"{number + 1:032x}"


def stored(slot: Slot, body: Wire) -> Message:
    return slot.subject, envelope.encode(body, task=slot.task, device=slot.device, turn=slot.turn, attempt="a")


def started(task: str, *, goal: str = "turn on Wi-Fi", sequence: int = 7) -> Message:
    body = TaskStarted(
        request=TaskRequest(goal=goal),
        pool="any",
        request_sequence=sequence,
        request_digest="d",
        started_at_ms=START_MS + sequence,
    )
    return stored(slots.started(DEVICE, task), body)


def scene(task: str, turn: int, *, page: str = "Settings", label: str = "Wi-Fi") -> Message:
    element = Element(id="e1", role="switch", label=label, interactive=True)
    body = Scene(
        app="settings",
        page=page,
        screen=Screen(size=Size(width=1080, height=2400)),
        elements=(element,),
        fingerprint="f1",
        observed_at_ms=START_MS,
        observe_ms=11,
    )
    return stored(Slot(device=DEVICE, task=task, kind="scene", turn=turn), body)


def planned(
    task: str, turn: int, *, rationale: str | None = "It is off.", call: int = 0, changed: bool | None = None
) -> Message:
    body = PlannedStep(
        action=Tap(at=Point(x=5, y=6)),
        page="Settings",
        target=Target(element="e1", role="switch", label="Wi-Fi"),
        purpose="switch it on",
        expected_outcome="it is on",
        rationale=rationale,
        thinking="A switch.",
        decision=DecisionKey(task=task, turn=turn, call=call),
        planned_at_ms=START_MS,
        plan_ms=22,
        screen_changed=changed,
    )
    return stored(Slot(device=DEVICE, task=task, kind="planned", turn=turn), body)


def acting(task: str, turn: int, *, deadline_ms: int = 60_000) -> Message:
    body = ActIntent(action=Tap(at=Point(x=5, y=6)), session="s", deadline_ms=deadline_ms, worker="w")
    return stored(Slot(device=DEVICE, task=task, kind="acting", turn=turn), body)


def event(task: str, turn: int, *, success: bool | None = True, message: str | None = None) -> Message:
    body = WorldEvent(
        action=Tap(at=Point(x=5, y=6)),
        success=success,
        code=None if success else "STALE_SCENE",
        message=message,
        page="Settings",
        timings=Timings(act_ms=33),
        happened_at_ms=START_MS,
    )
    return stored(Slot(device=DEVICE, task=task, kind="event", turn=turn), body)


def finished(task: str, *, turns: int = 1) -> Message:
    body = TaskFinished(status="succeeded", turns=turns, finished_at_ms=START_MS + 9_000, by="w", answer="on")
    return stored(slots.finished(DEVICE, task), body)


def decided(task: str, turn: int, *, call: int = 0, said: str | None = "It is off.", tokens: int = 100) -> Message:
    reply = ToolCallDecision(
        tool="tap",
        arguments={"element": "e1"},
        text_output=said,
        thinking="A switch.",
        usage=Usage(input_tokens=tokens, output_tokens=5),
        provider="anthropic",
        model="m",
        latency_ms=44,
    )
    return recorded(task, turn, call, reply)


def faulty(task: str, turn: int, *, call: int = 0) -> Message:
    reply = DecisionFault(code="no_tool_call", message="no tool was called", correctable=True, model="m")
    return recorded(task, turn, call, reply)


def recorded(task: str, turn: int, call: int, reply: ToolCallDecision | DecisionFault) -> Message:
    key = DecisionKey(task=task, turn=turn, call=call)
    body = DecisionRecord(
        key=key, system_prompt="You drive a phone.", user_prompt="Goal", tools=("tap",), reply=reply, raw_answer="{}"
    )
    return subjects.decision(task, turn, call), envelope.encode(body, task=task, turn=turn, attempt="a")


def whole_task(task: str, *, turns: int = 1) -> list[Message]:
    """What TASKS holds of a task, in order."""
    middle = [
        message
        for turn in range(turns)
        for message in (scene(task, turn), planned(task, turn), acting(task, turn), event(task, turn))
    ]
    return [started(task), *middle, finished(task, turns=turns)]


def finishing(task: str, turn: int) -> Message:
    body = PlannedStep(action=FinishTask(success=True, reason="on"), page="Settings")
    return stored(Slot(device=DEVICE, task=task, kind="planned", turn=turn), body)
