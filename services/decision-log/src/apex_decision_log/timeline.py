"""What is in the database, as clients ask for it: the tasks, and one task turn by turn.

Consumes JSON queries and the tables; gives the types of `apex_schemas.queries`. A turn is listed once it has a step
or a provider call; what the model said comes from the step, else from the call that the step names.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec

from apex_decision_log.errors import RefusedRow, StoreAway
from apex_decision_log.postgres import Record
from apex_decision_log.store import Store
from apex_schemas.geometry import Bounds
from apex_schemas.queries import (
    MOST_TASKS,
    QueryError,
    SceneBox,
    TaskList,
    TasksQuery,
    TaskSummary,
    Timeline,
    TimelineCall,
    TimelineQuery,
    TimelineScene,
    TimelineStep,
)

Query = TypeVar("Query", TimelineQuery, TasksQuery)


class _Place(msgspec.Struct, frozen=True):
    bounds: Bounds | None = None


class _Wireframe(msgspec.Struct, frozen=True):
    boxes: tuple[SceneBox, ...] = ()
    keyboard: Bounds | None = None


_SUMMARY: Final = """
select t.task_id, t.goal, t.device, t.status, t.started_at, t.finished_at, t.reason, t.failure_reason, t.answer,
    t.claimed, t.evidence_found, t.request_sequence,
    coalesce(t.turns, (select count(*) from steps s where s.task_id = t.task_id and s.event_at is not null)) as turns
from tasks t
"""
_NEWEST: Final = "order by coalesce(t.started_at, t.finished_at) desc nulls last, t.recorded_at desc"

_WANTED: Final = """
where ($1::text is null or t.status = $1) and ($2::text is null or t.device = $2)
    and ($3::text is null or position(lower($3) in lower(t.goal)) > 0)
    and ($4::timestamptz is null or coalesce(t.started_at, t.finished_at) >= $4)
    and ($5::text is null or position(lower($5) in lower(coalesce(t.failure_reason, ''))) > 0)
    and ($6::text is null or starts_with(t.task_id, $6))
"""

_STEPS: Final = """
select turn, coalesce(s.page, s.done_page, v.page) as page, coalesce(s.action, s.done_action) as action, s.target,
    s.arguments, s.purpose, s.expected_outcome, s.rationale, s.thinking, s.call, s.success,
    s.event_at is not null as done, s.code, s.message, v.observe_ms, s.plan_ms, s.act_ms, s.target_detail, s.wait_ms,
    s.verify_ms, s.read_back_ms, s.event_at, n.screen_changed as effect_seen
from (select * from steps where task_id = $1) s
full join (select distinct turn from planner_decision_log where task_id = $1) c using (turn)
left join (select * from scenes where task_id = $1) v using (turn)
left join (select turn - 1 as turn, screen_changed from steps where task_id = $1) n using (turn)
where turn >= $2
order by turn
"""
_CALLS: Final = """
select turn, call, outcome, model, tool_name, tool_arguments, rationale, thinking, error, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, reasoning_tokens, latency_ms, cost_usd
from planner_decision_log where task_id = $1 and turn >= $2 order by turn, call
"""
_SCENES: Final = """
select turn, width, height, app, source, settled, elements, omitted, wireframe, screenshot_sha256
from scenes where task_id = $1 and turn >= $2 order by turn limit $3
"""
_PAGE_BYTES: Final = 1_000_000
_PAGE_SCENES: Final = 40


async def answer_timeline(store: Store, question: bytes) -> bytes:
    """The answer to `query.timeline`: a Timeline or a QueryError, as JSON."""
    query = _read(question, TimelineQuery)
    if isinstance(query, QueryError):
        return msgspec.json.encode(query)
    try:
        return msgspec.json.encode(await timeline(store, query) or _not_found(query))
    except (StoreAway, RefusedRow) as error:
        return _failed(error)


async def answer_tasks(store: Store, question: bytes) -> bytes:
    """The answer to `query.tasks`: a TaskList or a QueryError, as JSON."""
    query = _read(question, TasksQuery)
    if isinstance(query, QueryError):
        return msgspec.json.encode(query)
    try:
        return msgspec.json.encode(await tasks(store, query))
    except (StoreAway, RefusedRow) as error:
        return _failed(error)


async def timeline(store: Store, query: TimelineQuery) -> Timeline | None:
    """One task: the one of the id, else of the stored request, else the last one. None when there is none.

    Its turns from `query.from_turn` on, as many as fit into a message.
    """
    wanted = "where ($1::text is null or t.task_id = $1) and ($2::bigint is null or t.request_sequence = $2)"
    found = await store.fetch(f"{_SUMMARY} {wanted} {_NEWEST} limit 1", query.task, query.request_sequence)
    if not found:
        return None
    summary = _summary(found[0])
    calls: dict[int, list[TimelineCall]] = {}
    for row in await store.fetch(_CALLS, summary.task, query.from_turn):
        calls.setdefault(row["turn"], []).append(_call(row))
    scenes: dict[int, TimelineScene] = {}
    if query.scenes:
        for row in await store.fetch(_SCENES, summary.task, query.from_turn, _PAGE_SCENES):
            scenes[row["turn"]] = _scene(row)
    rows = await store.fetch(_STEPS, summary.task, query.from_turn)
    most = _PAGE_SCENES if query.scenes else len(rows)
    steps = [_step(row, calls.get(row["turn"], []), scenes.get(row["turn"])) for row in rows[:most]]
    fitting = _fitting(steps)
    rest = rows[len(fitting) :]
    return Timeline(summary=summary, steps=tuple(fitting), next_turn=rest[0]["turn"] if rest else None)


def _fitting(steps: Sequence[TimelineStep]) -> Sequence[TimelineStep]:
    """As many as make a message of a moderate size; one at least."""
    size = 0
    for count, step in enumerate(steps):
        size += len(msgspec.json.encode(step))
        if size > _PAGE_BYTES and count:
            return steps[:count]
    return steps


async def tasks(store: Store, query: TasksQuery) -> TaskList:
    """The newest tasks first, at most `query.limit` and never more than MOST_TASKS."""
    limit = max(0, min(query.limit, MOST_TASKS))
    since = None if query.since_ms is None else datetime.fromtimestamp(max(0, query.since_ms) / 1000, UTC)
    asked = (query.status, query.device, query.goal, since, query.failure, query.task, limit)
    found = await store.fetch(f"{_SUMMARY} {_WANTED} {_NEWEST} limit $7", *asked)
    return TaskList(tasks=tuple(map(_summary, found)))


def _summary(row: Record) -> TaskSummary:
    return TaskSummary(
        task=row["task_id"],
        goal=row["goal"] or "",
        device=row["device"],
        status=row["status"],
        turns=row["turns"],
        started_at_ms=_ms(row["started_at"]),
        finished_at_ms=_ms(row["finished_at"]),
        reason=row["reason"],
        failure_reason=row["failure_reason"],
        answer=row["answer"],
        claimed=row["claimed"],
        evidence_found=row["evidence_found"],
        request_sequence=row["request_sequence"],
    )


def _scene(row: Record) -> TimelineScene:
    kept = None if row["wireframe"] is None else msgspec.json.decode(row["wireframe"], type=_Wireframe)
    return TimelineScene(
        width=row["width"],
        height=row["height"],
        app=row["app"],
        source=row["source"],
        settled=row["settled"],
        elements=row["elements"],
        omitted=row["omitted"],
        keyboard=kept.keyboard if kept else None,
        boxes=kept.boxes if kept else None,
        screenshot_sha256=row["screenshot_sha256"],
    )


def _step(row: Record, calls: Sequence[TimelineCall], scene: TimelineScene | None) -> TimelineStep:
    cause = next((call for call in calls if call.call == row["call"]), None)
    return TimelineStep(
        turn=row["turn"],
        page=row["page"],
        action=row["action"],
        target=row["target"],
        arguments=_object(row["arguments"]),
        purpose=row["purpose"],
        expected_outcome=row["expected_outcome"],
        rationale=row["rationale"] or (cause.rationale if cause else None),
        thinking=row["thinking"] or (cause.thinking if cause else None),
        success=row["success"],
        done=bool(row["done"]),
        code=row["code"],
        message=row["message"],
        observe_ms=row["observe_ms"],
        plan_ms=row["plan_ms"],
        act_ms=row["act_ms"],
        calls=tuple(calls),
        target_bounds=_bounds(row["target_detail"]),
        wait_ms=row["wait_ms"],
        verify_ms=row["verify_ms"],
        read_back_ms=row["read_back_ms"],
        event_at_ms=_ms(row["event_at"]),
        scene=scene,
        effect_seen=row["effect_seen"],
    )


def _call(row: Record) -> TimelineCall:
    return TimelineCall(
        call=row["call"],
        outcome=row["outcome"],
        model=row["model"],
        tool=row["tool_name"],
        arguments=_object(row["tool_arguments"]),
        rationale=row["rationale"],
        thinking=row["thinking"],
        error=row["error"],
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cache_read_tokens=row["cache_read_tokens"],
        reasoning_tokens=row["reasoning_tokens"],
        latency_ms=row["latency_ms"],
        cache_write_tokens=row["cache_write_tokens"],
        cost_usd=row["cost_usd"],
    )


def _read(question: bytes, type_: type[Query]) -> Query | QueryError:
    """The query; an empty one asks with every field at its default."""
    try:
        return msgspec.json.decode(question or b"{}", type=type_)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return QueryError(error=f"the query cannot be read: {error}", code="bad_query")


def _not_found(query: TimelineQuery) -> QueryError:
    if query.task is not None:
        return QueryError(error=f"there is no task {query.task}", code="task_not_found")
    if query.request_sequence is not None:
        return QueryError(error=f"no task has begun from request {query.request_sequence}", code="task_not_found")
    return QueryError(error="there is no task yet", code="task_not_found")


def _failed(error: StoreAway | RefusedRow) -> bytes:
    """Postgres is away, or the query holds what it cannot look for."""
    code = "database_away" if isinstance(error, StoreAway) else "bad_query"
    return msgspec.json.encode(QueryError(error=str(error), code=code))


def _object(text: str | None) -> dict[str, Any] | None:
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])


def _bounds(detail: str | None) -> Bounds | None:
    return None if detail is None else msgspec.json.decode(detail, type=_Place).bounds


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
