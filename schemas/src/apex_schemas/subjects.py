"""Every subject of the system: its stream, payload, writers, triggers, readers and fence, in one table.

Permissions and `docs/SUBJECTS.md` are generated from here, with what `streams` and `consumers` say; code takes
subjects from the functions below, those of the task log from `slots`, and builds none of its own.
"""

from enum import StrEnum
from typing import Final

from apex_schemas.structs import Wire


class Identity(StrEnum):
    """Who may connect: one nkey each. `guest` is whoever shows no credentials."""

    PERCEPTION = "perception"
    PLANNER = "planner"
    ENDPOINT = "planner-decision"
    EXECUTOR = "executor"
    DECISION_LOG = "decision-log"
    CLIENT = "client"
    OPERATOR = "operator"
    GUEST = "guest"
    PROVISIONER = "provisioner"


def request(pool: str) -> str:
    return f"request.{pool}"


def cancel(task: str) -> str:
    return f"cancel.{task}"


def approve(task: str, turn: int) -> str:
    return f"approve.{task}.{turn}"


def device(alias: str) -> str:
    return f"device.{alias}"


def claim(task: str, turn: int) -> str:
    return f"claim.{task}.{turn}"


def shot(task: str, turn: int, attempt: str) -> str:
    return f"shot.{task}.{turn}.{attempt}"


def decision(task: str, turn: int, call: int) -> str:
    return f"decision.{task}.{turn}.{call}"


def dead(service: str) -> str:
    return f"dead.{service}"


def session(alias: str) -> str:
    """Core request: heal the session of a device."""
    return f"session.{alias}"


def control(alias: str) -> str:
    """Core request: the operator pauses or resumes a device."""
    return f"control.{alias}"


def again(service: str, consumer: str) -> str:
    """Core request: the operator hands a dead letter back."""
    return f"again.{service}.{consumer}"


PLANNER_DECISION: Final = "planner-decision.decide"
QUERY_TIMELINE: Final = "query.timeline"
QUERY_TASKS: Final = "query.tasks"
QUERY_DEVICES: Final = "query.devices"
QUERY_DECISIONS: Final = "query.decisions"
QUERY_QUEUE: Final = "query.queue"

_I = Identity
_CLIENTS: Final = (_I.CLIENT, _I.OPERATOR, _I.GUEST)


class Row(Wire, frozen=True, kw_only=True):
    """One line of the table.

    `triggers` receive messages through a consumer (or, where `stream` is None, by core subscription); `reads` may get
    single messages by subject; `follows` may watch live, by core subscription.
    """

    pattern: str
    payload: str
    stream: str | None
    writers: tuple[Identity, ...]
    triggers: tuple[Identity, ...] = ()
    reads: tuple[Identity, ...] = ()
    follows: tuple[Identity, ...] = ()
    fence: str = ""
    note: str = ""


TABLE: Final = (
    Row(
        pattern="task.*.*.0.started",
        payload="TaskStarted",
        stream="TASKS",
        writers=(_I.EXECUTOR,),
        triggers=(_I.PERCEPTION, _I.EXECUTOR, _I.DECISION_LOG),
        reads=(_I.EXECUTOR, _I.PLANNER, _I.PERCEPTION),
        follows=_CLIENTS,
        fence="0 over task.*.<task>.>",
        note="a device has taken the task; the executor's watchdog looks after it from here",
    ),
    Row(
        pattern="task.*.*.*.scene",
        payload="Scene | SemanticScene",
        stream="TASKS",
        writers=(_I.PERCEPTION,),
        triggers=(_I.PLANNER, _I.DECISION_LOG),
        reads=(_I.PERCEPTION, _I.EXECUTOR),
        fence="0 over itself",
        note="what is on the screen",
    ),
    Row(
        pattern="task.*.*.*.planned",
        payload="PlannedStep",
        stream="TASKS",
        writers=(_I.PLANNER,),
        triggers=(_I.EXECUTOR, _I.DECISION_LOG),
        reads=(_I.PLANNER, _I.EXECUTOR),
        follows=_CLIENTS,
        fence="sequence of `scene` over task.<device>.<task>.>",
        note="the one decision of the turn; none is taken once the task has ended",
    ),
    Row(
        pattern="task.*.*.*.acting",
        payload="ActIntent",
        stream="TASKS",
        writers=(_I.EXECUTOR,),
        triggers=(_I.DECISION_LOG,),
        reads=(_I.EXECUTOR,),
        fence="sequence of `planned` over task.<device>.<task>.>",
        note="written before the phone is touched",
    ),
    Row(
        pattern="task.*.*.*.event",
        payload="WorldEvent",
        stream="TASKS",
        writers=(_I.EXECUTOR,),
        triggers=(_I.PERCEPTION, _I.DECISION_LOG),
        reads=(_I.EXECUTOR, _I.PLANNER, _I.PERCEPTION),
        follows=_CLIENTS,
        fence="0 over itself",
        note="what came of it",
    ),
    Row(
        pattern="task.*.*.end.finished",
        payload="TaskFinished",
        stream="TASKS",
        writers=(_I.EXECUTOR, _I.PLANNER, _I.PERCEPTION),
        triggers=(_I.EXECUTOR, _I.DECISION_LOG),
        reads=(_I.EXECUTOR, _I.PLANNER, _I.PERCEPTION, *_CLIENTS),
        follows=_CLIENTS,
        fence="never started: 0 over task.*.<task>.>; running: last sequence seen over task.<device>.<task>.>",
        note="written by whoever ends the task; the device is `none` when it never started",
    ),
    Row(
        pattern="request.*",
        payload="TaskRequest",
        stream="REQUESTS",
        writers=_CLIENTS,
        triggers=(_I.EXECUTOR,),
        note="pool = any, a platform, or a device; msgpack or JSON",
    ),
    Row(
        pattern="cancel.*",
        payload="CancelRequest",
        stream="REQUESTS",
        writers=_CLIENTS,
        triggers=(_I.EXECUTOR,),
        note="msgpack or JSON, may be empty",
    ),
    Row(
        pattern="approve.*.*",
        payload="Approval",
        stream="REQUESTS",
        writers=(_I.OPERATOR,),
        reads=(_I.EXECUTOR,),
        note="approve or deny an act that the confirm policy holds back; msgpack or JSON",
    ),
    Row(
        pattern="device.*",
        payload="DeviceRecord",
        stream="DEVICES",
        writers=(_I.EXECUTOR,),
        reads=(_I.EXECUTOR, _I.PERCEPTION),
        fence="last sequence seen over itself",
        note="who drives it and which task it is on",
    ),
    Row(
        pattern="claim.*.*",
        payload="PlannerClaim",
        stream="CLAIMS",
        writers=(_I.ENDPOINT, _I.PLANNER),
        reads=(_I.ENDPOINT, _I.PLANNER, _I.EXECUTOR),
        fence="0 or last sequence seen over itself",
        note="expires unless renewed",
    ),
    Row(
        pattern="shot.*.*.*",
        payload="PNG or JPEG",
        stream="SHOTS",
        writers=(_I.PERCEPTION,),
        reads=(_I.PLANNER,),
        note="screenshots for the planner alone",
    ),
    Row(
        pattern="decision.*.*.*",
        payload="DecisionRecord",
        stream="DECISIONS",
        writers=(_I.ENDPOINT, _I.PLANNER),
        triggers=(_I.DECISION_LOG,),
        reads=(_I.ENDPOINT, _I.PLANNER),
        fence="0 over itself",
        note="one record per provider call",
    ),
    Row(
        pattern="dead.*",
        payload="DeadLetter",
        stream="DEAD",
        writers=(_I.EXECUTOR, _I.PLANNER, _I.ENDPOINT, _I.PERCEPTION, _I.DECISION_LOG),
        reads=(_I.OPERATOR,),
        note="what could not be handled; each service writes its own subject only",
    ),
    Row(
        pattern="session.*",
        payload="SessionRequest → SessionReply",
        stream=None,
        writers=(_I.PERCEPTION,),
        triggers=(_I.EXECUTOR,),
        note="request: heal the session of a device",
    ),
    Row(
        pattern=PLANNER_DECISION,
        payload="DecisionRequest → DecisionProgress*, DecisionReply",
        stream=None,
        writers=(_I.PLANNER,),
        triggers=(_I.ENDPOINT,),
        note="request: one provider call; queue group",
    ),
    Row(
        pattern=QUERY_TIMELINE,
        payload="TimelineQuery → Timeline | QueryError (JSON)",
        stream=None,
        writers=_CLIENTS,
        triggers=(_I.DECISION_LOG,),
        note="request: one task, turn by turn; queue group",
    ),
    Row(
        pattern=QUERY_TASKS,
        payload="TasksQuery → TaskList | QueryError (JSON)",
        stream=None,
        writers=_CLIENTS,
        triggers=(_I.DECISION_LOG,),
        note="request: the latest tasks; queue group",
    ),
    Row(
        pattern=QUERY_DECISIONS,
        payload="DecisionsQuery → RecordedDecisions | QueryError (JSON)",
        stream=None,
        writers=(_I.OPERATOR,),
        triggers=(_I.DECISION_LOG,),
        note="request: the provider calls of a task, with prompts and raw answers; queue group",
    ),
    Row(
        pattern=QUERY_DEVICES,
        payload="(empty) → DeviceStatus[] (JSON)",
        stream=None,
        writers=_CLIENTS,
        triggers=(_I.EXECUTOR,),
        note="request: every executor answers for the devices that it knows",
    ),
    Row(
        pattern=QUERY_QUEUE,
        payload="(empty) → WaitingRequests (JSON)",
        stream=None,
        writers=_CLIENTS,
        triggers=(_I.EXECUTOR,),
        note="request: every executor answers with the waiting requests that it has seen",
    ),
    Row(
        pattern="control.*",
        payload="DeviceControl → DeviceStatus (JSON)",
        stream=None,
        writers=(_I.OPERATOR,),
        triggers=(_I.EXECUTOR,),
        note="request: pause or resume a device; whoever drives it answers",
    ),
    *(
        Row(
            pattern=f"again.{service}.*",
            payload="DeadLetter → HandledAgain (JSON)",
            stream=None,
            writers=(_I.OPERATOR,),
            triggers=(service,),
            note="request: a dead letter is handed back to who wrote it, for the consumer named; queue group",
        )
        for service in (_I.EXECUTOR, _I.PLANNER, _I.PERCEPTION, _I.DECISION_LOG)
    ),
)
