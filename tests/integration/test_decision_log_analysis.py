"""What analysts have of the log: views with their own role, the export, and the retention job that takes old tasks."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import decision_log_world as world
import pytest
from integration.conftest import Postgres

from apex_bus.errors import SettingsError
from apex_decision_log import migrate
from apex_decision_log.decide import row_of
from apex_decision_log.export import SOURCES, rows
from apex_decision_log.migrations.versions.v0004_effects import VIEWS
from apex_decision_log.retention import RetentionSettings, clean, retention_settings
from apex_decision_log.store import open_store

OLD, NEW, RUNNING = world.task_id(1), world.task_id(2), world.task_id(3)


async def test_every_view_answers_for_a_task_with_its_calls(postgres: Postgres) -> None:
    await _filled(postgres)
    for view in VIEWS:
        await _run(postgres.dsn, f"select * from {view}")
    [task] = await _run(postgres.dsn, "select * from v_tasks where task_id = $1", NEW)
    assert (task["status"], task["calls"], task["input_tokens"]) == ("succeeded", 2, 200)
    [step] = await _run(postgres.dsn, "select * from v_steps where task_id = $1 and turn = 1", NEW)
    assert (step["outcome"], step["action"], step["target"]) == ("done", "tap", "Wi-Fi")
    costs = await _run(postgres.dsn, "select * from v_cost_by_model where model = 'm' and provider = 'anthropic'")
    assert [(row["calls"], row["calls_without_price"], row["input_tokens"]) for row in costs] == [(2, 2, 200)] * 2
    codes = {(row["stage"], row["code"]) for row in await _run(postgres.dsn, "select * from v_failure_codes")}
    assert ("model", "no_tool_call") in codes


async def test_no_view_shows_a_prompt_or_a_raw_answer(postgres: Postgres) -> None:
    await _filled(postgres)
    query = "select column_name from information_schema.columns where table_name = any($1)"
    columns = {row[0] for row in await _run(postgres.dsn, query, list(VIEWS))}
    assert columns.isdisjoint({"system_prompt", "user_prompt", "raw_answer"})


async def test_the_reader_reads_views_and_no_table(postgres: Postgres) -> None:
    await migrate.make_roles(postgres.dsn, {"apex_reader": "read"})
    await _filled(postgres)
    connection = await asyncpg.connect(postgres.dsn)
    try:
        await connection.execute("set role apex_reader")
        for view in VIEWS:
            await connection.fetch(f"select * from {view}")
        for table in ("tasks", "steps", "scenes", "planner_decision_log"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.fetch(f"select * from {table}")
    finally:
        await connection.close()


async def test_the_services_own_role_exports(postgres: Postgres) -> None:
    await migrate.make_roles(postgres.dsn, {})
    await _filled(postgres)
    connection = await asyncpg.connect(postgres.dsn)
    try:
        await connection.execute("set role apex_writer")
        for view in VIEWS:
            await connection.fetch(f"select * from {view}")
    finally:
        await connection.close()


async def test_the_export_writes_each_row_once_as_a_line_of_json(postgres: Postgres) -> None:
    await _filled(postgres)
    for what in SOURCES:
        lines = [json.loads(line) async for line in rows(postgres.dsn, what)]
        keys = [tuple(line[key] for key in SOURCES[what].keys) for line in lines]
        assert keys == sorted(set(keys))
        assert {line["task_id"] for line in lines} >= {NEW}
    of_one = [json.loads(line) async for line in rows(postgres.dsn, "decisions", task=NEW, prompts=True)]
    assert [line["user_prompt"] for line in of_one] == ["Goal", "Goal"]
    future = datetime.now(UTC) + timedelta(days=9_000)
    assert [line async for line in rows(postgres.dsn, "tasks", since=future)] == []


async def test_more_rows_than_a_page_are_exported(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    await migrate.upgrade(postgres.dsn)
    await _write(postgres.dsn, *(world.event(NEW, turn) for turn in range(1_203)))
    lines = [json.loads(line) async for line in rows(postgres.dsn, "steps")]
    assert [line["turn"] for line in lines] == list(range(1_203))


def test_the_export_as_a_command_says_what_is_wrong() -> None:
    done = _command("apex_decision_log.export", "tasks")
    assert done.returncode == 2
    assert "DECISION_LOG_DATABASE_URL" in done.stderr
    assert "Traceback" not in done.stderr


async def test_old_tasks_go_as_a_whole_and_neither_new_nor_running_ones(postgres: Postgres) -> None:
    await _filled(postgres)
    settings = RetentionSettings(keep_days=30)
    assert (await clean(postgres.dsn, settings, dry_run=True)).tasks == 1
    assert await _tasks_of(postgres.dsn, "steps") >= {OLD, NEW, RUNNING}
    assert (await clean(postgres.dsn, settings)).tasks == 1
    for table in ("tasks", "steps", "scenes", "planner_decision_log"):
        assert OLD not in await _tasks_of(postgres.dsn, table)
        assert NEW in await _tasks_of(postgres.dsn, table)
    assert RUNNING in await _tasks_of(postgres.dsn, "tasks")
    assert (await clean(postgres.dsn, settings)).tasks == 0


async def test_prompts_can_go_earlier_and_leave_what_was_decided(postgres: Postgres) -> None:
    await _filled(postgres)
    await _run(postgres.dsn, "update planner_decision_log set recorded_at = now() - interval '8 days'")
    settings = RetentionSettings(keep_days=365, keep_prompts_days=7)
    wanted = (await clean(postgres.dsn, settings, dry_run=True)).prompts
    assert (await clean(postgres.dsn, settings)).prompts == wanted > 0
    for row in await _run(postgres.dsn, "select * from planner_decision_log"):
        assert (row["system_prompt"], row["user_prompt"], row["raw_answer"]) == ("", "", None)
    [row] = await _run(postgres.dsn, "select * from planner_decision_log where task_id = $1 and turn = 0", NEW)
    assert (row["tool_name"], row["rationale"], row["input_tokens"]) == ("tap", "It is off.", 100)
    assert (await clean(postgres.dsn, settings)).prompts == 0


@pytest.mark.parametrize("text", ["0", "soon", "-1"])
def test_days_that_are_none_are_refused_by_the_name_of_the_variable(text: str) -> None:
    with pytest.raises(SettingsError, match="DECISION_LOG_KEEP_DAYS"):
        retention_settings({"DECISION_LOG_KEEP_DAYS": text})


async def test_the_job_as_a_command_says_what_went(postgres: Postgres) -> None:
    await _filled(postgres)
    done = _command(
        "apex_decision_log.retention", "--dry-run", DECISION_LOG_DATABASE_URL=postgres.dsn, DECISION_LOG_KEEP_DAYS="30"
    )
    assert done.returncode == 0, done.stderr
    assert "would delete 1 tasks" in done.stdout


async def _filled(postgres: Postgres) -> None:
    await migrate.upgrade(postgres.dsn)
    for task in (OLD, NEW):
        calls = [world.decided(task, turn) for turn in range(2)]
        await _write(postgres.dsn, *world.whole_task(task, turns=2), *calls)
    await _write(postgres.dsn, world.started(RUNNING), world.event(RUNNING, 0), world.faulty(RUNNING, 0))
    now = "update tasks set started_at = now(), finished_at = now() where task_id = $1"
    await _run(postgres.dsn, now, NEW)
    for table in ("tasks", "steps", "scenes", "planner_decision_log"):
        old = f"update {table} set recorded_at = now() - interval '40 days' where task_id = $1"
        await _run(postgres.dsn, old, OLD)
    await _run(postgres.dsn, "update tasks set finished_at = now() - interval '40 days' where task_id = $1", OLD)
    await _run(postgres.dsn, "update tasks set started_at = now() - interval '40 days' where task_id = $1", RUNNING)


async def _write(dsn: str, *messages: world.Message) -> None:
    async with open_store(dsn) as store:
        await store.write([row_of(subject, data, stored_at_ms=world.START_MS) for subject, data in messages])


async def _run(dsn: str, query: str, *arguments: object) -> list[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetch(query, *arguments)
    finally:
        await connection.close()


async def _tasks_of(dsn: str, table: str) -> set[str]:
    return {row[0] for row in await _run(dsn, f"select task_id from {table}")}


def _command(module: str, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", module, *words]
    return subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, timeout=60, check=False
    )
