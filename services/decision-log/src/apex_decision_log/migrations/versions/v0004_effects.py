"""Whether a step had an effect that could be seen.

Additive: one nullable column of `steps`, rows from before read NULL, the code of 0003 still inserts; and at the end of
`v_steps` what the next turn saw of this one's effect.
"""

from typing import Final

from alembic import op

from apex_decision_log.migrations.versions import v0003_wireframes_costs_views as before

revision: Final = "0004"
down_revision: Final = "0003"

_STEPS: Final = """
        select s.task_id, s.turn, t.device, t.goal, coalesce(s.page, s.done_page) as page, v.app,
            coalesce(s.action, s.done_action) as action, s.target, s.purpose, s.expected_outcome, s.rationale,
            case when s.event_at is null then null when s.success then 'done' when s.success is null then 'unknown'
                else 'failed' end as outcome,
            s.code, s.message, s.ungrounded, v.observe_ms, s.plan_ms, s.wait_ms, s.verify_ms, s.act_ms,
            s.read_back_ms, v.elements, v.settled, s.event_at, n.screen_changed as effect_seen
        from steps s left join tasks t using (task_id) left join scenes v using (task_id, turn)
            left join steps n on n.task_id = s.task_id and n.turn = s.turn + 1
"""
VIEWS: Final = {**before.VIEWS, "v_steps": _STEPS}


def upgrade() -> None:
    op.execute("alter table steps add column screen_changed boolean")
    op.execute(f"create or replace view v_steps as {_STEPS}")


def downgrade() -> None:
    op.execute("drop view v_steps")
    op.execute(f"create view v_steps as {before.VIEWS['v_steps']}")
    op.execute("alter table steps drop column screen_changed")
