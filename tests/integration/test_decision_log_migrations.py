"""The schema goes up and down with rows in it, old code writes to the new one, and the writer may write and no more."""

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

import asyncpg
import decision_log_world as world
import pytest
from integration.conftest import Postgres

from apex_decision_log import migrate
from apex_decision_log.decide import row_of
from apex_decision_log.store import open_store
from apex_decision_log.upserts import UPSERTS

TASK = world.task_id(0)

# The insert of the code that knows 0001 alone.
OLD_INSERT = """
insert into planner_decision_log (task_id, turn, call, outcome, provider, model, system_prompt, user_prompt, tools,
    tool_name, tool_arguments, purpose, expected_outcome, raw_answer, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, reasoning_tokens, latency_ms, worker)
values ($1, $2, 0, 'tool_call', 'anthropic', 'm', 'system', 'user', '["tap"]', 'tap', '{"element": "e1"}', 'p', 'e',
    '{}', 1, 2, 3, 4, 5, 6, 'w')
"""
COLUMNS = """
select column_name, data_type, is_nullable from information_schema.columns where table_name = $1 order by 1
"""


async def test_rows_from_before_read_null_and_survive_the_way_up_and_down(postgres: Postgres) -> None:
    await migrate.upgrade(postgres.dsn, "0001")
    await _run(postgres.dsn, OLD_INSERT, TASK, 0)
    await migrate.upgrade(postgres.dsn)
    [row] = await _run(postgres.dsn, "select * from planner_decision_log")
    assert (row["rationale"], row["thinking"]) == (None, None)
    assert (row["system_prompt"], json.loads(row["tool_arguments"])) == ("system", {"element": "e1"})
    await _run(postgres.dsn, OLD_INSERT, TASK, 1)  # the old code still writes
    await _write(postgres.dsn, world.decided(TASK, 2))
    rows = await _run(postgres.dsn, "select turn, rationale, thinking from planner_decision_log order by turn")
    assert [tuple(row) for row in rows] == [(0, None, None), (1, None, None), (2, "It is off.", "A switch.")]
    await migrate.downgrade(postgres.dsn, "0001")
    rows = await _run(postgres.dsn, "select * from planner_decision_log order by turn")
    assert [row["turn"] for row in rows] == [0, 1, 2]
    assert "rationale" not in dict(rows[0])
    await migrate.upgrade(postgres.dsn)
    await migrate.downgrade(postgres.dsn, "base")
    assert await _run(postgres.dsn, "select from pg_tables where tablename = any($1)", [*_tables()]) == []
    assert await migrate.current(postgres.dsn) is None


async def test_rationale_and_thinking_are_text_that_may_be_null(postgres: Postgres) -> None:
    await migrate.upgrade(postgres.dsn)
    columns = {row[0]: tuple(row)[1:] for row in await _run(postgres.dsn, COLUMNS, "planner_decision_log")}
    assert columns["rationale"] == columns["thinking"] == ("text", "YES")
    for name in ("system_prompt", "user_prompt", "tool_name", "raw_answer"):
        assert columns[name][0] == "text"
    assert columns["tool_arguments"][0] == "jsonb"


async def test_a_second_upgrade_changes_nothing_and_two_at_once_do_not_collide(postgres: Postgres) -> None:
    await asyncio.gather(*(migrate.upgrade(postgres.dsn) for _ in range(3)))
    await _write(postgres.dsn, *world.whole_task(TASK))
    await migrate.upgrade(postgres.dsn)
    assert await migrate.current(postgres.dsn) == "0004"
    [row] = await _run(postgres.dsn, "select count(*) from steps")
    assert row[0] == 1


async def test_a_lock_that_somebody_holds_ends_the_upgrade_and_not_the_writers_behind_it(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "100ms")
    await migrate.upgrade(postgres.dsn, "0001")
    holder = await asyncpg.connect(postgres.dsn)
    try:
        async with holder.transaction():
            await holder.execute("select * from planner_decision_log")
            with pytest.raises(Exception, match="lock timeout"):
                await migrate.upgrade(postgres.dsn)
    finally:
        await holder.close()
    assert await migrate.current(postgres.dsn) == "0001"
    await migrate.upgrade(postgres.dsn)


async def test_the_writer_reads_inserts_and_updates_and_can_do_nothing_else(postgres: Postgres) -> None:
    await migrate.make_roles(postgres.dsn, {"apex_owner": "it's", "apex_writer": "w"})
    await migrate.upgrade(_as(postgres.dsn, "apex_owner", "it%27s"))
    writer = _as(postgres.dsn, "apex_writer", "w")
    await _write(writer, *world.whole_task(TASK), world.decided(TASK, 0))
    await _write(writer, *world.whole_task(TASK), world.decided(TASK, 0))
    assert len(await _run(writer, "select * from planner_decision_log")) == 1
    for forbidden in (
        "delete from steps",
        "truncate steps",
        "drop table steps",
        "alter table steps add column x int",
        "create table mine (x int)",
        "create temporary table mine (x int)",
        "create schema mine",
        "update alembic_version set version_num = '0001'",
        "create role mine",
        "copy steps to program 'true'",
        "set role apex_owner",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await _run(writer, forbidden)


async def test_what_a_superuser_has_migrated_is_handed_to_the_owner(postgres: Postgres) -> None:
    await migrate.upgrade(postgres.dsn)
    await _write(postgres.dsn, *world.whole_task(TASK))
    await migrate.make_roles(postgres.dsn, {"apex_owner": "o", "apex_writer": "w"})
    owner = _as(postgres.dsn, "apex_owner", "o")
    await migrate.downgrade(owner, "0003")
    await migrate.upgrade(owner)
    assert len(await _run(_as(postgres.dsn, "apex_writer", "w"), "select * from tasks")) == 1


async def test_what_another_role_has_in_the_database_stays_with_it_when_roles_are_made(postgres: Postgres) -> None:
    await migrate.upgrade(postgres.dsn)
    await _run(postgres.dsn, "create table theirs (x int)")
    await _run(postgres.dsn, "alter table theirs owner to pg_monitor")
    await migrate.make_roles(postgres.dsn, {})
    owners = "select relname, relowner::regrole::text from pg_class where relname = any($1) order by 1"
    found = await _run(postgres.dsn, owners, ["steps", "theirs", "v_steps", "alembic_version"])
    assert dict(map(tuple, found)) == {
        "alembic_version": "apex_owner", "steps": "apex_owner", "theirs": "pg_monitor", "v_steps": "apex_owner",
    }  # fmt: skip


async def test_the_command_says_the_version_and_names_what_is_missing(postgres: Postgres) -> None:
    done = await _command(postgres.dsn, "upgrade")
    assert (done.returncode, done.stdout) == (0, "decision-log database: version 0004\n"), done.stderr
    done = await _command(postgres.dsn, "downgrade", "0001")
    assert (done.returncode, done.stdout) == (0, "decision-log database: version 0001\n"), done.stderr
    done = await _command(None, "current")
    assert done.returncode == 2
    assert "DECISION_LOG_DATABASE_URL" in done.stderr
    wrong = _as(postgres.dsn, "apex", "hunter2")
    done = await _command(wrong, "current")
    assert done.returncode == 2
    assert "hunter2" not in done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1


async def test_what_the_database_refuses_is_told_in_its_own_words_without_names_of_classes(postgres: Postgres) -> None:
    await _run(postgres.dsn, "create table tasks (theirs text)")
    done = await _command(postgres.dsn, "upgrade")
    assert (done.returncode, done.stderr) == (2, 'migration stops: relation "tasks" already exists\n')


async def _command(dsn: str | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], **({"DECISION_LOG_DATABASE_URL": dsn} if dsn else {})}
    command = [sys.executable, "-m", "apex_decision_log.migrate", *arguments]
    return await asyncio.to_thread(subprocess.run, command, env=environ, capture_output=True, text=True, check=False)


def _tables() -> set[str]:
    return {upsert.table for upsert in UPSERTS.values()}


def _as(dsn: str, role: str, password: str) -> str:
    return f"postgresql://{role}:{password}@{dsn.rpartition('@')[2]}"


async def _write(dsn: str, *messages: world.Message) -> None:
    rows = [row_of(subject, data, stored_at_ms=world.START_MS) for subject, data in messages]
    async with open_store(dsn) as store:
        await store.write(rows)


async def _run(dsn: str, query: str, *arguments: object) -> list[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetch(query, *arguments)
    finally:
        await connection.close()
