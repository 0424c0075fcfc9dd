"""Bring the database to a version: `python -m apex_decision_log.migrate upgrade [REVISION]`.

Also `downgrade REVISION` (`base` for nothing at all), `current`, and `roles`, which runs the role script as a
superuser and sets the passwords from DECISION_LOG_WRITER_PASSWORD_FILE and DECISION_LOG_OWNER_PASSWORD_FILE. One
migration runs at a time, waits for a database that is still starting, and gives up on a lock after seconds instead of
stopping every writer behind it.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from apex_bus.errors import SettingsError
from apex_decision_log import postgres
from apex_decision_log.errors import sentence_of
from apex_decision_log.settings import PREFIX, database_url, secret_of
from apex_decision_log.upserts import UPSERTS

HEAD: Final = "head"
LOCK_TIMEOUT: Final = "10s"
WAIT_SECONDS: Final = 60.0
_ONE_AT_A_TIME: Final = 0x61706578  # "apex"
_AWAY: Final = (OSError, postgres.CannotConnectNow, postgres.ConnectionDoesNotExist)

_GRANT: Final = """
do $$
declare
    name text;
    role text;
begin
    if exists (select from pg_roles where rolname = 'apex_writer') then
        for name in select tablename from pg_tables where schemaname = current_schema() and tablename in ({tables}) loop
            execute format('grant select, insert, update on %I to apex_writer', name);
        end loop;
    end if;
    for role in select rolname from pg_roles where rolname in ('apex_reader', 'apex_writer') loop
        for name in
            select viewname from pg_views where schemaname = current_schema() and starts_with(viewname, 'v_')
        loop
            execute format('grant select on %I to %I', name, role);
        end loop;
    end loop;
end
$$
"""


async def upgrade(dsn: str, revision: str = HEAD) -> None:
    """Apply the steps up to `revision`, and grant the writer its rights on the tables."""
    await _on_database(dsn, lambda connection, config: _upgrade(connection, config, revision))


async def downgrade(dsn: str, revision: str) -> None:
    """Take the steps after `revision` back. What they added is lost."""
    await _on_database(dsn, lambda _, config: command.downgrade(config, revision))


async def current(dsn: str) -> str | None:
    """The version of the database; None before the first step."""
    found: list[str | None] = []

    def look(connection: Connection, _: Config) -> None:
        found.append(MigrationContext.configure(connection).get_current_revision())

    await _on_database(dsn, look)
    return found[0]


async def make_roles(dsn: str, passwords: Mapping[str, str]) -> None:
    """Run the role script; `passwords` by role name. `dsn` is a superuser's."""
    connection = await _connect(dsn)
    try:
        await connection.execute(resources.files("apex_decision_log").joinpath("roles.sql").read_text("utf-8"))
        for role, password in passwords.items():
            change = await connection.fetchval(
                "select format('alter role %I password %L', $1::text, $2::text)", role, password
            )
            await connection.execute(change)
    finally:
        await connection.close()


async def _on_database(dsn: str, act: Callable[[Connection, Config], None]) -> None:
    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: _connect(dsn), poolclass=NullPool)

    def run(connection: Connection) -> None:
        connection.execute(text(f"select pg_advisory_lock({_ONE_AT_A_TIME})"))
        connection.execute(text(f"set lock_timeout = '{LOCK_TIMEOUT}'"))
        connection.commit()
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
        config.attributes["connection"] = connection
        act(connection, config)
        connection.commit()

    try:
        async with engine.connect() as connection:
            await connection.run_sync(run)
    finally:
        await engine.dispose()


def _upgrade(connection: Connection, config: Config, revision: str) -> None:
    command.upgrade(config, revision)
    tables = ", ".join(f"'{table}'" for table in sorted({upsert.table for upsert in UPSERTS.values()}))
    connection.execute(text(_GRANT.format(tables=tables)))


async def _connect(dsn: str) -> postgres.Connection:
    deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
    while True:
        try:
            return await postgres.connect(dsn, timeout_s=5)
        except _AWAY:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(0.2)


def _passwords(environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for role in ("owner", "writer", "reader"):
        variable = f"{PREFIX}{role.upper()}_PASSWORD_FILE"
        if path := environ.get(variable):
            found[f"apex_{role}"] = secret_of(variable, path)
    return found


async def _run(arguments: argparse.Namespace, environ: Mapping[str, str]) -> None:
    dsn = database_url(environ)
    match arguments.command:
        case "upgrade":
            await upgrade(dsn, arguments.revision)
        case "downgrade":
            await downgrade(dsn, arguments.revision)
        case "roles":
            await make_roles(dsn, _passwords(environ))
        case _:
            pass
    sys.stdout.write(f"decision-log database: version {await current(dsn) or 'none'}\n")


def main() -> int:
    """Ends 0, or 2 with one sentence about what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m apex_decision_log.migrate")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("upgrade").add_argument("revision", nargs="?", default=HEAD)
    commands.add_parser("downgrade").add_argument("revision")
    commands.add_parser("current")
    commands.add_parser("roles")
    try:
        asyncio.run(_run(parser.parse_args(), os.environ))
    except (SettingsError, SQLAlchemyError, postgres.PostgresError, OSError, TimeoutError) as error:
        sys.stderr.write(f"migration stops: {sentence_of(error)}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
