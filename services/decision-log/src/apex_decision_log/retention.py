"""The retention job: `python -m apex_decision_log.retention [--dry-run]` deletes what is too old, and ends.

Consumes DECISION_LOG_KEEP_DAYS and DECISION_LOG_KEEP_PROMPTS_DAYS; run it daily as `apex_owner`, since the service's
own role may not delete. A task goes as a whole, some time after its end; one that runs is never touched. Prompts and
raw answers can go earlier: their rows stay, with what was decided and why.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from apex_bus.errors import SettingsError
from apex_bus.settings import load
from apex_decision_log import postgres
from apex_decision_log.errors import sentence_of
from apex_decision_log.settings import PREFIX, database_url

_TASKS_AT_ONCE: Final = 500
_TABLES: Final = ("steps", "scenes", "planner_decision_log", "tasks")

_OLD_TASKS: Final = """
select task_id from tasks
where status <> 'running' and coalesce(finished_at, recorded_at) < now() - make_interval(days => $1)
    and task_id > $2
order by task_id limit $3
"""
_ORPHANS: Final = """
delete from {table} x where recorded_at < now() - make_interval(days => $1)
    and not exists (select from tasks t where t.task_id = x.task_id)
"""
_PROMPTS: Final = """
update planner_decision_log set system_prompt = '', user_prompt = '', raw_answer = null
where recorded_at < now() - make_interval(days => $1) and (system_prompt <> '' or user_prompt <> ''
    or raw_answer is not null)
"""

Days = Annotated[int, Meta(ge=1, le=36_500)]


class RetentionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Days that things are kept. Below 14 a log that is written anew from its streams may bring tasks back."""

    keep_days: Days = 90
    keep_prompts_days: Days | None = None


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """How much went, or would go."""

    tasks: int
    prompts: int


def retention_settings(environ: Mapping[str, str]) -> RetentionSettings:
    """Raises SettingsError."""
    return load(RetentionSettings, environ, prefix=PREFIX)


async def clean(dsn: str, settings: RetentionSettings, *, dry_run: bool = False) -> Deleted:
    """Delete in small transactions, so that nobody waits for it. Safe to stop and to run again."""
    connection = await postgres.connect(dsn, timeout_s=10)
    try:
        tasks, last = 0, ""
        while found := await connection.fetch(_OLD_TASKS, settings.keep_days, last, _TASKS_AT_ONCE):
            ids = [row["task_id"] for row in found]
            tasks, last = tasks + len(ids), ids[-1]
            if not dry_run:
                await _delete(connection, ids)
        if not dry_run:
            for table in _TABLES[:-1]:
                await connection.execute(_ORPHANS.format(table=table), settings.keep_days)
        return Deleted(tasks=tasks, prompts=await _forget_prompts(connection, settings, dry_run=dry_run))
    finally:
        await connection.close()


async def _delete(connection: postgres.Connection, ids: list[str]) -> None:
    """The task's own row last: what is cut short is found again."""
    async with connection.transaction():
        for table in _TABLES:
            await connection.execute(f"delete from {table} where task_id = any($1)", ids)


async def _forget_prompts(connection: postgres.Connection, settings: RetentionSettings, *, dry_run: bool) -> int:
    if settings.keep_prompts_days is None:
        return 0
    if dry_run:
        where = _PROMPTS.partition("where")[2]
        return await connection.fetchval(
            f"select count(*) from planner_decision_log where {where}", settings.keep_prompts_days
        )
    return int((await connection.execute(_PROMPTS, settings.keep_prompts_days)).split()[-1])


def main() -> int:
    """Ends 0, or 2 with one sentence about what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m apex_decision_log.retention", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="only say how much would go")
    options = parser.parse_args()
    try:
        settings, dsn = retention_settings(os.environ), database_url(os.environ)
        deleted = asyncio.run(clean(dsn, settings, dry_run=options.dry_run))
    except (SettingsError, postgres.PostgresError, postgres.InterfaceError, OSError, TimeoutError) as error:
        sys.stderr.write(f"retention stops: {sentence_of(error)}\n")
        return 2
    verb = "would delete" if options.dry_run else "deleted"
    sys.stdout.write(f"retention: {verb} {deleted.tasks} tasks, and the prompts of {deleted.prompts} more calls\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
