"""The tasks there are: those that wait for a phone, as the executors tell, then those on record.

Consumes `query.queue` and `query.tasks`; gives rows for a person and for programs.
"""

import asyncio
import time
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from apex_cli import render
from apex_cli.client import Client
from apex_cli.lookup import Whereabouts, queued, told
from apex_cli.text import plain, shortened, styled
from apex_schemas.queries import TasksQuery, TaskSummary

_QUEUED = "bold blue"


class Listed(NamedTuple):
    """Both newest first; `notes` say what could not be listed."""

    queued: list[Whereabouts]
    begun: list[TaskSummary]
    notes: list[str]


async def listed(client: Client, query: TasksQuery, *, waiting: bool, begun: bool) -> Listed:
    """The latest tasks that fit the query, `query.limit` at most, of one kind or both."""
    known, record = await asyncio.gather(
        client.waiting() if waiting else _nothing(), client.tasks(query) if begun else _nothing()
    )
    tasks = list(record.tasks) if record else []
    there = {each.task for each in tasks}
    fitting = [each for each in queued(known.waiting if known else ()) if _fits(each, query) and each.task not in there]
    notes: list[str] = []
    if waiting and known is None:
        notes.append("no executor answers, so that nobody knows what waits for a phone")
    if known and known.omitted:
        notes.append(f"{known.omitted} more wait for a phone")
    newest = fitting[::-1][: query.limit]
    return Listed(newest, tasks[: query.limit - len(newest)], notes)


async def _nothing() -> None:
    return None


def _fits(found: Whereabouts, query: TasksQuery) -> bool:
    request = found.request
    assert request is not None
    asked_at_ms = (time.time() - request.waits_s) * 1_000
    return (
        query.failure is None
        and query.device in (None, request.pool)
        and (query.goal or "").lower() in found.goal.lower()
        and (query.since_ms is None or asked_at_ms >= query.since_ms)
    )


def as_row(found: Whereabouts) -> dict[str, Any]:
    """For programs: the fields of a TaskSummary, and under `queue` where it stands."""
    row: dict[str, Any] = {"task": found.task, "goal": found.goal, "device": found.device, "status": found.status}
    if found.request is not None:
        request = found.request
        row["queue"] = {
            "pool": request.pool,
            "before": found.before,
            "waits_s": request.waits_s,
            "left_s": request.left_s,
            "request_sequence": request.sequence,
            "phones": found.phones,
        }
    elif found.why:
        row["reason"] = found.why
    return row


def task_table(tasks: Listed) -> Table:
    table = render.task_table(())
    for found in tasks.queued:
        request = found.request
        assert request is not None
        table.add_row(
            Text(found.task, "cyan"),
            Text("queued", _QUEUED),
            "—",
            plain(f"pool {request.pool}"),
            f"{found.before} before it" if found.before else "next",
            Text(shortened(plain(found.goal), 80)),
        )
    for row in tasks.begun:
        render.add_task(table, row)
    return table


def shown_whereabouts(found: Whereabouts) -> RenderableType:
    """A task of which nothing is on record yet."""
    style = _QUEUED if found.status == "queued" else "bold"
    lines = [styled(("Task ", "bold"), (found.task, "cyan"), "  ", (found.status, style))]
    if found.goal:
        lines.append(styled("  ", (plain(found.goal), "italic")))
    lines.append(styled("  ", told(found)))
    if found.request is not None:
        request = found.request
        waits, left = render.age(request.waits_s), render.age(request.left_s)
        lines += [styled("  ", plain(phone)) for phone in found.phones or ("no phone serves this pool",)]
        lines.append(styled((f"  it has waited for {waits}, and waits {left} longer at most", "dim")))
    else:
        lines.append(styled(("  the decision-log has nothing of it yet: ask again in a moment", "dim")))
    return Group(*lines)
