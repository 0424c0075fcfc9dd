"""Every subject of the system: its stream, payload, writers, consumers, readers and fence, in one table.

Set-up of streams and consumers, permissions and `docs/SUBJECTS.md` are generated from here; code takes subjects and
fences from the functions below and builds none of its own.
"""

from enum import StrEnum
from typing import Final, Literal

from apex_schemas.errors import SubjectMismatch
from apex_schemas.ids import NO_DEVICE, is_device, is_task_id
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


Kind = Literal["started", "scene", "planned", "acting", "event", "finished"]
KINDS: Final[tuple[Kind, ...]] = ("started", "scene", "planned", "acting", "event", "finished")
END: Final = "end"
_KIND_BY_NAME: Final[dict[str, Kind]] = {kind: kind for kind in KINDS}


class Slot(Wire, frozen=True, kw_only=True):
    """A place in the task log that is written once. `turn` is None for `finished`, whose subject says `end`."""

    device: str
    task: str
    kind: Kind
    turn: int | None = None

    @property
    def subject(self) -> str:
        turn = END if self.turn is None else self.turn
        return f"task.{self.device}.{self.task}.{turn}.{self.kind}"

    def fence(self) -> str:
        """The one fence string of this kind: replicated leaders compare writes in flight by it, literally."""
        match self.kind:
            case "started":
                return f"task.*.{self.task}.>"
            case "planned" | "acting":
                return f"task.{self.device}.{self.task}.>"
            case "finished":
                return f"task.{'*' if self.device == NO_DEVICE else self.device}.{self.task}.>"
            case "scene" | "event":
                return self.subject

    def sibling(self, kind: Kind, *, later: int = 0) -> "Slot":
        """Another slot of the same task, `later` turns on; `finished` has no turn."""
        turn = None if kind == "finished" else (self.turn or 0) + later
        return Slot(device=self.device, task=self.task, kind=kind, turn=turn)


def started(device: str, task: str) -> Slot:
    return Slot(device=device, task=task, kind="started", turn=0)


def finished(device: str, task: str) -> Slot:
    return Slot(device=device, task=task, kind="finished")


def parse_slot(subject: str) -> Slot:
    """The slot that a subject names. Raises SubjectMismatch for anything that is not a slot of the table."""
    tokens = subject.split(".")
    if len(tokens) == 5 and tokens[0] == "task":
        _, device, task, turn, kind = tokens
        known = _KIND_BY_NAME.get(kind)
        ended = known == "finished" and turn == END
        numbered = known not in (None, "finished") and turn.isascii() and turn.isdigit() and str(int(turn)) == turn
        device_fits = is_device(device) or (device == NO_DEVICE and ended)
        if known is not None and (ended or numbered) and device_fits and is_task_id(task):
            return Slot(device=device, task=task, kind=known, turn=None if ended else int(turn))
    raise SubjectMismatch(subject, "no slot of the task log")


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


PLANNER_DECISION: Final = "planner-decision.decide"
QUERY_TIMELINE: Final = "query.timeline"
QUERY_TASKS: Final = "query.tasks"
QUERY_DEVICES: Final = "query.devices"
QUERY_DECISIONS: Final = "query.decisions"
QUERY_QUEUE: Final = "query.queue"

_DAY: Final = 86_400
_MIB: Final = 1024 * 1024


class Stream(Wire, frozen=True, kw_only=True):
    """A JetStream stream, always with limits retention and file storage.

    `once`: the server itself refuses a second message on a subject. `full` says what a full stream does: refuse new
    messages or drop the oldest. Ages in seconds, 0 for none; sizes in bytes.
    """

    name: str
    subjects: tuple[str, ...]
    max_age_s: int
    max_bytes: int
    full: Literal["refuse", "drop-oldest"]
    once: bool = False
    last_only: bool = False
    message_ttl: bool = False


STREAMS: Final = (
    Stream(name="TASKS", subjects=("task.>",), max_age_s=7 * _DAY, max_bytes=4096 * _MIB, full="refuse", once=True),
    Stream(
        name="REQUESTS",
        subjects=("request.*", "cancel.*", "approve.*.*"),
        max_age_s=_DAY,
        max_bytes=256 * _MIB,
        full="refuse",
    ),
    Stream(name="DEVICES", subjects=("device.*",), max_age_s=0, max_bytes=64 * _MIB, full="refuse", last_only=True),
    Stream(
        name="CLAIMS",
        subjects=("claim.*.*",),
        max_age_s=_DAY,
        max_bytes=64 * _MIB,
        full="refuse",
        last_only=True,
        message_ttl=True,
    ),
    Stream(name="SHOTS", subjects=("shot.*.*.*",), max_age_s=3_600, max_bytes=1024 * _MIB, full="drop-oldest"),
    Stream(
        name="DECISIONS",
        subjects=("decision.*.*.*",),
        max_age_s=14 * _DAY,
        max_bytes=2048 * _MIB,
        full="refuse",
        once=True,
    ),
    Stream(name="DEAD", subjects=("dead.*",), max_age_s=14 * _DAY, max_bytes=64 * _MIB, full="drop-oldest"),
)

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
)


class Consumer(Wire, frozen=True, kw_only=True):
    """A durable pull consumer with explicit acknowledgement. `max_deliver` -1: only time or content ends a message."""

    name: str
    stream: str
    filters: tuple[str, ...]
    identity: Identity
    ack_wait_s: float = 10
    max_deliver: int = -1
    max_ack_pending: int = 1_000


SHARED_CONSUMERS: Final = (
    Consumer(
        name="PERCEPTION",
        stream="TASKS",
        filters=("task.*.*.0.started", "task.*.*.*.event"),
        identity=_I.PERCEPTION,
        max_deliver=1_000,
    ),
    Consumer(name="PLANNER", stream="TASKS", filters=("task.*.*.*.scene",), identity=_I.PLANNER, max_deliver=1_000),
    Consumer(
        name="WATCHDOG",
        stream="TASKS",
        filters=("task.*.*.0.started",),
        identity=_I.EXECUTOR,
        max_ack_pending=20_000,
    ),
    Consumer(name="INTAKE", stream="REQUESTS", filters=("request.>",), identity=_I.EXECUTOR, max_ack_pending=20_000),
    Consumer(name="CANCEL", stream="REQUESTS", filters=("cancel.*",), identity=_I.EXECUTOR),
    Consumer(
        name="DECISION_LOG_TASKS",
        stream="TASKS",
        filters=("task.>",),
        identity=_I.DECISION_LOG,
        ack_wait_s=15,
        max_ack_pending=5_000,
    ),
    Consumer(
        name="DECISION_LOG_DECISIONS",
        stream="DECISIONS",
        filters=("decision.>",),
        identity=_I.DECISION_LOG,
        ack_wait_s=15,
        max_ack_pending=1_000,
    ),
)

PLATFORM_POOLS: Final = ("android", "ios")


def pool_consumer(pool: str) -> Consumer:
    """Whoever is ready in the pool pulls from it. Short ack wait: a claim is quick, the session is opened before."""
    return Consumer(
        name=f"POOL_{pool}",
        stream="REQUESTS",
        filters=(request(pool),),
        identity=_I.EXECUTOR,
        ack_wait_s=5,
        max_ack_pending=1_000,
    )


def device_consumer(alias: str) -> Consumer:
    """What the driver of one device acts on, in order. More than one may be pending: after a crash the message that
    its last driver held stays pending until its ack wait, and must not keep the next one from the new driver."""
    return Consumer(
        name=f"DEVICE_{alias}",
        stream="TASKS",
        filters=(f"task.{alias}.*.*.planned", f"task.{alias}.*.end.finished"),
        identity=_I.EXECUTOR,
        ack_wait_s=10,
        max_ack_pending=16,
    )


def consumers(devices: tuple[str, ...]) -> tuple[Consumer, ...]:
    """All consumers of an installation with these devices."""
    pools = ("any", *PLATFORM_POOLS, *devices)
    return (*SHARED_CONSUMERS, *map(pool_consumer, pools), *map(device_consumer, devices))
