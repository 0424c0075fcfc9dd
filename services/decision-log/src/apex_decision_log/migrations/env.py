"""Alembic's entry: runs the steps on the connection that `migrate` made, each in a transaction of its own."""

from alembic import context
from sqlalchemy import Connection


def _run() -> None:
    connection: Connection = context.config.attributes["connection"]
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


_run()
