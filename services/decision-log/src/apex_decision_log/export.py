"""The export: `python -m apex_decision_log.export decisions > decisions.jsonl` writes rows as JSON, one a line.

Consumes the views (as `apex_reader`) or, with `--prompts`, the table of provider calls with prompts and raw answers
(as `apex_writer` or `apex_owner`). Reads in pages by key, so that any number of rows needs little memory.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from apex_bus.errors import SettingsError
from apex_decision_log import postgres
from apex_decision_log.errors import sentence_of
from apex_decision_log.settings import database_url

_PAGE: Final = 500


class _Source(NamedTuple):
    """A view, its key, and the time by which `--since` chooses."""

    view: str
    keys: tuple[str, ...]
    at: str


SOURCES: Final = {
    "decisions": _Source("v_decisions", ("task_id", "turn", "call"), "requested_at"),
    "steps": _Source("v_steps", ("task_id", "turn"), "event_at"),
    "tasks": _Source("v_tasks", ("task_id",), "started_at"),
}
_WITH_PROMPTS: Final = SOURCES["decisions"]._replace(view="planner_decision_log")


async def rows(
    dsn: str, what: str, *, task: str | None = None, since: datetime | None = None, prompts: bool = False
) -> AsyncIterator[str]:
    """The rows as JSON texts, in the order of their keys."""
    source = _WITH_PROMPTS if prompts else SOURCES[what]
    keys = ", ".join(source.keys)
    first = ", ".join("''" if key == "task_id" else "-1" for key in source.keys)
    query = f"""
        select {keys}, row_to_json(x)::text as line from {source.view} x
        where ({keys}) > ({{after}}) and ($1::text is null or task_id = $1)
            and ($2::timestamptz is null or {source.at} >= $2)
        order by {keys} limit {_PAGE}
    """
    after, arguments = first, ()
    connection = await postgres.connect(dsn, timeout_s=10)
    try:
        while found := await connection.fetch(query.format(after=after), task, since, *arguments):
            for row in found:
                yield row["line"]
            arguments = tuple(found[-1][key] for key in source.keys)
            after = ", ".join(f"${number}" for number in range(3, 3 + len(arguments)))
    finally:
        await connection.close()


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


async def _write(options: argparse.Namespace, dsn: str) -> None:
    async for line in rows(dsn, options.what, task=options.task, since=options.since, prompts=options.prompts):
        sys.stdout.write(f"{line}\n")


def main() -> int:
    """Ends 0, or 2 with one sentence about what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m apex_decision_log.export")
    parser.add_argument("what", choices=tuple(SOURCES))
    parser.add_argument("--task", help="of this task alone")
    parser.add_argument("--since", type=_moment, metavar="DATE", help="ISO 8601; UTC unless it says otherwise")
    parser.add_argument("--prompts", action="store_true", help="decisions with prompts and raw answers")
    options = parser.parse_args()
    if options.prompts and options.what != "decisions":
        parser.error("--prompts goes with decisions")
    try:
        asyncio.run(_write(options, database_url(os.environ)))
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except (SettingsError, postgres.PostgresError, postgres.InterfaceError, OSError, TimeoutError) as error:
        sys.stderr.write(f"export stops: {sentence_of(error)}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
