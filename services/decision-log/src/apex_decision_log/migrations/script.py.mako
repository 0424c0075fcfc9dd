"""${message}."""

from typing import Final

from alembic import op

revision: Final = "${up_revision}"
down_revision: Final = "${down_revision}"


def upgrade() -> None:
    ${upgrades or "pass"}


def downgrade() -> None:
    ${downgrades or "pass"}
