"""What is written to Postgres: one Struct for each kind of message, its fields the columns that this kind knows.

A row of `tasks` or `steps` is completed by several messages, which arrive in any order and more than once: each
writes its own columns alone. Names and types are those of the migrations; times are aware datetimes in UTC.
"""

from datetime import datetime
from typing import NewType

from msgspec import Struct

Json = NewType("Json", str)
"""The text of a jsonb value."""


class Started(Struct, frozen=True, kw_only=True):
    task_id: str
    device: str
    goal: str
    pool: str
    max_turns: int
    timeout_s: int
    request_sequence: int
    started_at: datetime | None


class Finished(Struct, frozen=True, kw_only=True):
    """`device` and `goal` are kept as the start gave them, where there was one."""

    task_id: str
    device: str | None
    goal: str | None
    status: str
    turns: int
    finished_at: datetime | None
    finished_by: str
    reason: str | None
    failure_reason: str | None
    stage: str | None
    claimed: bool | None
    evidence: str | None
    evidence_found: bool | None
    answer: str | None


class Seen(Struct, frozen=True, kw_only=True):
    task_id: str
    turn: int
    kind: str
    app: str | None
    page: str
    activity: str | None
    fingerprint: str
    source: str
    settled: bool
    recovered: bool
    elements: int
    omitted: int
    width: int
    height: int
    screenshot_sha256: str | None
    screenshot_bytes: int | None
    summary: Json
    observed_at: datetime | None
    observe_ms: int
    wireframe: Json | None


class Planned(Struct, frozen=True, kw_only=True):
    task_id: str
    turn: int
    call: int | None
    page: str
    action: str
    arguments: Json
    target: str | None
    target_detail: Json | None
    purpose: str | None
    expected_outcome: str | None
    rationale: str | None
    thinking: str | None
    ungrounded: bool
    fingerprint: str
    evidence_found: bool | None
    planned_at: datetime | None
    plan_ms: int
    screen_changed: bool | None


class Acting(Struct, frozen=True, kw_only=True):
    task_id: str
    turn: int
    intended_at: datetime
    deadline_ms: int
    session: str
    executed_by: str


class Happened(Struct, frozen=True, kw_only=True):
    """`success` None means unknown; `event_at` tells that there is an outcome at all."""

    task_id: str
    turn: int
    done_action: str
    done_page: str | None
    success: bool | None
    code: str | None
    message: str | None
    event_at: datetime
    wait_ms: int | None
    verify_ms: int | None
    act_ms: int | None
    read_back_ms: int | None
    rationale: str | None
    thinking: str | None


class Decided(Struct, frozen=True, kw_only=True):
    """One provider call. `outcome` is `tool_call` or the code of its fault, and `error` the fault's message."""

    task_id: str
    turn: int
    call: int
    outcome: str
    provider: str
    model: str
    system_prompt: str
    user_prompt: str
    tools: Json
    tool_name: str | None
    tool_arguments: Json | None
    purpose: str | None
    expected_outcome: str | None
    rationale: str | None
    thinking: str | None
    error: str | None
    correctable: bool | None
    raw_answer: str | None
    stop_reason: str | None
    response_id: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    latency_ms: int
    screenshot_sha256: str | None
    screenshot_bytes: int | None
    requested_at: datetime | None
    worker: str
    cost_usd: float | None


Row = Started | Finished | Seen | Planned | Acting | Happened | Decided
