"""Tasks, their turns, what was seen, and every provider call in discrete columns.

No foreign keys: the rows come from two streams, in any order. Columns that a later message fills are nullable.
"""

from typing import Final

from alembic import op

revision: Final = "0001"
down_revision: Final = None

TABLES: Final = {
    "tasks": """
        task_id text primary key,
        device text,
        goal text,
        pool text,
        status text not null default 'running',
        max_turns bigint,
        timeout_s bigint,
        request_sequence bigint,
        started_at timestamptz,
        turns bigint,
        finished_at timestamptz,
        finished_by text,
        reason text,
        failure_reason text,
        stage text,
        claimed boolean,
        evidence text,
        evidence_found boolean,
        answer text,
        recorded_at timestamptz not null default now()
    """,
    "steps": """
        task_id text not null,
        turn bigint not null,
        call bigint,
        page text,
        action text,
        arguments jsonb,
        target text,
        target_detail jsonb,
        purpose text,
        expected_outcome text,
        ungrounded boolean,
        fingerprint text,
        evidence_found boolean,
        planned_at timestamptz,
        plan_ms bigint,
        intended_at timestamptz,
        deadline_ms bigint,
        session text,
        executed_by text,
        done_action text,
        done_page text,
        success boolean,
        code text,
        message text,
        event_at timestamptz,
        wait_ms bigint,
        verify_ms bigint,
        act_ms bigint,
        read_back_ms bigint,
        recorded_at timestamptz not null default now(),
        primary key (task_id, turn)
    """,
    "scenes": """
        task_id text not null,
        turn bigint not null,
        kind text not null,
        app text,
        page text not null,
        activity text,
        fingerprint text not null,
        source text not null,
        settled boolean not null,
        recovered boolean not null,
        elements bigint not null,
        omitted bigint not null,
        width bigint not null,
        height bigint not null,
        screenshot_sha256 text,
        screenshot_bytes bigint,
        summary jsonb not null,
        observed_at timestamptz,
        observe_ms bigint not null,
        recorded_at timestamptz not null default now(),
        primary key (task_id, turn)
    """,
    "planner_decision_log": """
        task_id text not null,
        turn bigint not null,
        call bigint not null,
        outcome text not null,
        provider text not null,
        model text not null,
        system_prompt text not null,
        user_prompt text not null,
        tools jsonb not null,
        tool_name text,
        tool_arguments jsonb,
        purpose text,
        expected_outcome text,
        error text,
        correctable boolean,
        raw_answer text,
        stop_reason text,
        response_id text,
        input_tokens bigint not null,
        output_tokens bigint not null,
        cache_read_tokens bigint not null,
        cache_write_tokens bigint not null,
        reasoning_tokens bigint not null,
        latency_ms bigint not null,
        screenshot_sha256 text,
        screenshot_bytes bigint,
        requested_at timestamptz,
        worker text not null,
        recorded_at timestamptz not null default now(),
        primary key (task_id, turn, call)
    """,
}


def upgrade() -> None:
    for table, columns in TABLES.items():
        op.execute(f"create table {table} ({columns})")
    op.execute("create index tasks_started_at on tasks (started_at desc nulls last)")
    op.execute("create index tasks_request_sequence on tasks (request_sequence)")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.execute(f"drop table {table}")
