"""Wireframes of scenes, the cost of calls, and views for analysts.

Additive: two nullable columns, rows from before read NULL, the code of 0002 still inserts. The views leave prompts and
raw answers out; whoever may read them (`apex_reader`) sees no table.
"""

from typing import Final

from alembic import op

revision: Final = "0003"
down_revision: Final = "0002"

VIEWS: Final = {
    "v_tasks": """
        select t.task_id, t.goal, t.device, t.pool, t.status, t.stage, t.failure_reason, t.claimed, t.evidence_found,
            t.answer, t.turns, t.started_at, t.finished_at,
            extract(epoch from t.finished_at - t.started_at) as seconds,
            coalesce(c.calls, 0) as calls, coalesce(c.input_tokens, 0) as input_tokens,
            coalesce(c.output_tokens, 0) as output_tokens, c.cost_usd
        from tasks t left join (
            select task_id, count(*) as calls, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
                sum(cost_usd) as cost_usd
            from planner_decision_log group by task_id
        ) c using (task_id)
    """,
    "v_steps": """
        select s.task_id, s.turn, t.device, t.goal, coalesce(s.page, s.done_page) as page, v.app,
            coalesce(s.action, s.done_action) as action, s.target, s.purpose, s.expected_outcome, s.rationale,
            case when s.event_at is null then null when s.success then 'done' when s.success is null then 'unknown'
                else 'failed' end as outcome,
            s.code, s.message, s.ungrounded, v.observe_ms, s.plan_ms, s.wait_ms, s.verify_ms, s.act_ms,
            s.read_back_ms, v.elements, v.settled, s.event_at
        from steps s left join tasks t using (task_id) left join scenes v using (task_id, turn)
    """,
    "v_decisions": """
        select d.task_id, d.turn, d.call, d.provider, d.model, d.outcome, d.tool_name, d.tool_arguments, d.purpose,
            d.expected_outcome, d.rationale, d.thinking, d.error, d.input_tokens, d.output_tokens,
            d.cache_read_tokens, d.cache_write_tokens, d.reasoning_tokens, d.cost_usd, d.latency_ms, d.requested_at,
            s.page, s.code as step_code, s.success as step_success
        from planner_decision_log d left join steps s using (task_id, turn)
    """,
    "v_cost_by_model": """
        select date_trunc('day', coalesce(requested_at, recorded_at)) as day, provider, model, count(*) as calls,
            count(distinct task_id) as tasks, sum(input_tokens) as input_tokens,
            sum(cache_read_tokens) as cache_read_tokens, sum(output_tokens) as output_tokens,
            sum(reasoning_tokens) as reasoning_tokens, sum(cost_usd) as cost_usd,
            count(*) filter (where cost_usd is null) as calls_without_price,
            percentile_cont(0.5) within group (order by latency_ms) as latency_ms_p50
        from planner_decision_log group by 1, 2, 3
    """,
    "v_failure_codes": """
        select 'act' as stage, code, count(*) as times, count(distinct task_id) as tasks, max(event_at) as last_at
        from steps where code is not null group by code
        union all
        select 'model', outcome, count(*), count(distinct task_id), max(coalesce(requested_at, recorded_at))
        from planner_decision_log where outcome <> 'tool_call' group by outcome
        union all
        select 'task', coalesce(nullif(split_part(failure_reason, ': ', 1), failure_reason), stage, status), count(*),
            count(*), max(finished_at)
        from tasks where status in ('failed', 'cancelled') group by 2
    """,
}


def upgrade() -> None:
    op.execute("alter table scenes add column wireframe jsonb")
    op.execute("alter table planner_decision_log add column cost_usd double precision")
    for name, query in VIEWS.items():
        op.execute(f"create view {name} as {query}")


def downgrade() -> None:
    for name in reversed(VIEWS):
        op.execute(f"drop view {name}")
    op.execute("alter table planner_decision_log drop column cost_usd")
    op.execute("alter table scenes drop column wireframe")
