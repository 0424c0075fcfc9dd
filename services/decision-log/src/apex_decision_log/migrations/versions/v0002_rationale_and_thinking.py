"""What the model said before its call, and what it thought: text of their own, no blob.

Nullable and without a default, so that no row is rewritten, rows from before read NULL, and the code of 0001 still
inserts.
"""

from typing import Final

from alembic import op

revision: Final = "0002"
down_revision: Final = "0001"

TABLES: Final = ("planner_decision_log", "steps")


def upgrade() -> None:
    for table in TABLES:
        op.execute(f"alter table {table} add column rationale text, add column thinking text")


def downgrade() -> None:
    for table in TABLES:
        op.execute(f"alter table {table} drop column thinking, drop column rationale")
