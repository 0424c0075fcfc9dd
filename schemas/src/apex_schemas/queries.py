"""Questions to the decision-log and its answers, in JSON on the wire of clients."""

from typing import Any, Final, Literal

from apex_schemas.decision import DecisionRecord
from apex_schemas.geometry import Bounds
from apex_schemas.structs import Wire

MOST_TASKS: Final = 500
"""How many tasks one answer holds at most."""


class TimelineQuery(Wire, frozen=True, kw_only=True):
    """`task` None means the last one; `request_sequence` finds the task of a stored request.

    An answer holds the turns from `from_turn` on that fit into it. With `scenes` each has what was on the screen.
    """

    task: str | None = None
    request_sequence: int | None = None
    from_turn: int = 0
    scenes: bool = False


class TimelineCall(Wire, frozen=True, kw_only=True):
    """One provider call of a turn, from `planner_decision_log`."""

    call: int
    outcome: str
    model: str
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    rationale: str | None = None
    thinking: str | None = None
    error: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    reasoning_tokens: int = 0
    latency_ms: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None


class SceneBox(Wire, frozen=True, kw_only=True):
    """An element of a Scene as a wireframe draws it. What a password field holds is not told. `obstacle` says why it
    could not be reached by a coordinate."""

    element: str
    role: str
    bounds: Bounds
    label: str = ""
    value: str | None = None
    interactive: bool = False
    enabled: bool = True
    checked: bool | None = None
    focused: bool = False
    obstacle: str | None = None


class TimelineScene(Wire, frozen=True, kw_only=True):
    """What was on the screen, without its picture. `boxes` None: stored before wireframes were kept."""

    width: int
    height: int
    app: str | None = None
    source: str = "tree"
    settled: bool = True
    elements: int = 0
    omitted: int = 0
    keyboard: Bounds | None = None
    boxes: tuple[SceneBox, ...] | None = None
    screenshot_sha256: str | None = None


class TimelineStep(Wire, frozen=True, kw_only=True):
    """One turn. `effect_seen`: whether the screen of the next turn differs from this one's; None where that is not
    known, or there was no next turn."""

    turn: int
    page: str | None = None
    action: str | None = None
    target: str | None = None
    arguments: dict[str, Any] | None = None
    purpose: str | None = None
    expected_outcome: str | None = None
    rationale: str | None = None
    thinking: str | None = None
    success: bool | None = None
    done: bool = False
    code: str | None = None
    message: str | None = None
    observe_ms: int | None = None
    plan_ms: int | None = None
    act_ms: int | None = None
    calls: tuple[TimelineCall, ...] = ()
    target_bounds: Bounds | None = None
    wait_ms: int | None = None
    verify_ms: int | None = None
    read_back_ms: int | None = None
    event_at_ms: int | None = None
    scene: TimelineScene | None = None
    effect_seen: bool | None = None


class TaskSummary(Wire, frozen=True, kw_only=True):
    task: str
    goal: str
    device: str | None
    status: Literal["running", "succeeded", "failed", "cancelled"]
    turns: int = 0
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    reason: str | None = None
    failure_reason: str | None = None
    answer: str | None = None
    claimed: bool | None = None
    evidence_found: bool | None = None
    request_sequence: int | None = None


class Timeline(Wire, frozen=True, kw_only=True):
    """`next_turn` is where to go on asking; None when there is no more."""

    summary: TaskSummary
    steps: tuple[TimelineStep, ...] = ()
    next_turn: int | None = None


class TasksQuery(Wire, frozen=True, kw_only=True):
    """The latest tasks: `limit` of them, 500 at most. `goal` is a part of it, in any case; `since_ms` bounds the start,
    in Unix milliseconds; `failure` is a part of the reason of a failure; `task` is what the id begins with."""

    limit: int = 20
    status: Literal["running", "succeeded", "failed", "cancelled"] | None = None
    device: str | None = None
    goal: str | None = None
    since_ms: int | None = None
    failure: str | None = None
    task: str | None = None


class TaskList(Wire, frozen=True, kw_only=True):
    tasks: tuple[TaskSummary, ...] = ()


class DecisionsQuery(Wire, frozen=True, kw_only=True):
    """The provider calls of a task from turn `from_turn` on, in order, as many as fit into one answer."""

    task: str
    from_turn: int = 0


class RecordedDecisions(Wire, frozen=True, kw_only=True):
    """`next_turn` is where to go on asking; None when there is no more."""

    records: tuple[DecisionRecord, ...] = ()
    next_turn: int | None = None


class WaitingRequest(Wire, frozen=True, kw_only=True):
    """A request that waits for a device. Within a pool the one with the lowest `sequence` is the next."""

    task: str
    pool: str
    sequence: int
    goal: str = ""
    waits_s: int = 0
    left_s: int = 0


class WaitingRequests(Wire, frozen=True, kw_only=True):
    """What one executor knows of the queue; `omitted` counts those that did not fit. All answers together are the
    queue, and the same request may be in several. `complete` False: it has begun to look only now, and may not have
    seen all."""

    waiting: tuple[WaitingRequest, ...] = ()
    omitted: int = 0
    complete: bool = True


class QueryError(Wire, frozen=True, kw_only=True):
    """The answer to a query that could not be answered."""

    error: str
    code: str
