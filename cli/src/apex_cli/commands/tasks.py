"""submit, show, tasks, cancel: what a client asks of a running system."""

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import click
import msgspec

from apex_cli import lookup, operator, render
from apex_cli.client import Client, run
from apex_cli.errors import BadInput, CommandError, NotFound, TaskNotSucceeded
from apex_cli.listing import as_row, listed, shown_whereabouts, task_table
from apex_cli.live import LiveTask, waiting
from apex_cli.lookup import NotBegun, task_id
from apex_cli.money import money
from apex_cli.place import clone, find
from apex_cli.recorded import recorded
from apex_cli.text import console
from apex_schemas.decision import DecisionRecord
from apex_schemas.edge import is_blank
from apex_schemas.ids import is_device, is_pool, is_task_id, new_task_id
from apex_schemas.queries import MOST_TASKS, TasksQuery, Timeline
from apex_schemas.task import TaskFinished, TaskRequest

Result = TypeVar("Result")
_AGE = re.compile(r"([0-9]{1,6})([smhdw])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_QUEUE_SECONDS = 1.0
_BLANK = 'the goal is blank; say what is to be done, such as: apex submit "turn on Wi-Fi"'
_OPTIONS = {
    "goal": "the goal cannot be used: it may have 4,000 characters of text",
    "apps": "--app takes the name of a package, of 1 to 256 characters; 32 of them at most",
    "launch": "--launch takes the name of an app, of 1 to 256 characters",
    "terminate": "--terminate takes the name of an app, of 1 to 256 characters; 8 of them at most",
    "secrets": "--secret takes a name of letters, digits and _ that begins with a letter; 32 of them at most",
}
"""Field of the request → what may stand there, for whoever wrote otherwise."""
STATUSES = ("queued", "running", "succeeded", "failed", "cancelled")


def _ask(work: Callable[[Client], Awaitable[Result]]) -> Result:
    return run(find(os.environ, clone()), work)


def _recorded(task: str) -> list[DecisionRecord]:
    return operator.run(lambda asked: recorded(asked, task))


def moment_ms(text: str, now: float) -> int:
    """A time that was given as an age (30m, 12h, 7d) or as a date, in Unix milliseconds."""
    if found := _AGE.fullmatch(text):
        return round((now - int(found[1]) * _UNIT_SECONDS[found[2]]) * 1_000)
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1_000)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r} is neither an age such as 12h nor a date", param_hint="--since") from None


def _as_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


@click.command(short_help="Ask for a goal to be carried out on a phone.")
@click.argument("words", metavar="GOAL", nargs=-1, required=True)
@click.option("--follow", "-f", is_flag=True, help="Watch it until it ends; the exit code tells how.")
@click.option("--pool", default="any", show_default=True, help="any, a platform (android, ios), or a device.")
@click.option("--device", help="The one device that may take it; the same as --pool DEVICE.")
@click.option("--max-turns", type=click.IntRange(1, 200), default=30, show_default=True, help="Then it fails.")
@click.option("--timeout", type=click.IntRange(5, 86_400), default=1_800, show_default=True, metavar="SECONDS",
              help="From the start on a device.")  # fmt: skip
@click.option("--app", "apps", multiple=True, metavar="PACKAGE", help="May be acted in; repeat it, com.bank.* is fine. "
              "Without any: all.")  # fmt: skip
@click.option("--launch", metavar="APP", help="Opened before the first look.")
@click.option("--terminate", multiple=True, metavar="APP", help="Closed after the end; repeat it.")
@click.option("--secret", "secrets", multiple=True, metavar="NAME", help="May be typed, by its name; repeat it.")
def submit(
    words: tuple[str, ...],
    follow: bool,
    pool: str,
    device: str | None,
    max_turns: int,
    timeout: int,
    apps: tuple[str, ...],
    launch: str | None,
    terminate: tuple[str, ...],
    secrets: tuple[str, ...],
) -> None:
    """Ask for GOAL to be carried out on a phone. Prints the task's id.

    Example: apex submit "turn on Wi-Fi" --follow
    """
    if len(words) > 1:
        raise click.UsageError(f'put the goal in quotes: apex submit "{" ".join(words)}"')
    goal = " ".join(words)
    if device is not None and not is_device(device):
        raise click.BadParameter("a device is an alias of a-z, 0-9 and -, as `apex devices` lists them")
    pool = device or pool
    if not is_pool(pool):
        raise click.BadParameter(f"{pool!r} is no pool: any, android, ios, or a device that `apex devices` lists")
    if is_blank(goal):
        raise BadInput(_BLANK)
    try:
        request = msgspec.convert(
            {
                "goal": goal,
                "task": new_task_id(),
                "max_turns": max_turns,
                "timeout_s": timeout,
                "apps": apps,
                "launch": launch,
                "terminate": terminate,
                "secrets": secrets,
            },
            TaskRequest,
        )
    except msgspec.ValidationError as error:
        raise BadInput(_refused(str(error))) from error
    task = request.task or ""

    async def work(client: Client) -> TaskFinished | None:
        if not follow:
            await client.submit(request, pool)
            return None
        live = LiveTask(console(stderr=True))
        async with client.following(task) as happenings:
            sequence = await client.submit(request, pool)
            click.echo(task)
            queued = asyncio.create_task(_tell_queue(client, live, sequence, pool))
            try:
                async for happening in happenings:
                    queued.cancel()
                    live.see(happening)
            finally:
                queued.cancel()
                live.close()
        return live.end

    end = _ask(work)
    if not follow:
        click.echo(task)
        click.echo(f"`apex show {task}` tells how it goes", err=True)
    elif end is not None and end.status != "succeeded":
        raise TaskNotSucceeded(task, end.status)


async def _tell_queue(client: Client, live: LiveTask, sequence: int, pool: str) -> None:
    """Until cancelled: how many are before the task. What cannot be asked is not worth ending for."""
    while True:
        await asyncio.sleep(_QUEUE_SECONDS)
        try:
            known = await client.waiting()
            requests = known.waiting if known else ()
            live.stage(waiting(sequence, pool, requests, await client.devices()))
        except CommandError as error:
            live.stage(f"waiting; {error}")


@click.command(short_help="One task turn by turn: reasons, outcomes, times, cost.")
@click.argument("task", required=False, callback=task_id)
@click.option("--thinking", is_flag=True, help="Also what the model thought, where it said.")
@click.option("--prompts", is_flag=True, help="Also what the model was asked, and its raw answer (operator only).")
@click.option("--json", "as_json", is_flag=True, help="All of it, as JSON.")
def show(task: str | None, thinking: bool, prompts: bool, as_json: bool) -> None:
    """One task turn by turn, with the model's reasons, tokens and what they cost. Without TASK: the last one.

    TASK is an id or its first digits. One that waits for a phone is shown with its place in the queue.
    """
    prices = money(os.environ)
    try:
        timeline, waiting = _ask(lambda client: _last_or(client, task))
    except NotBegun as error:
        if as_json:
            _as_json({"summary": as_row(error.found), "steps": []})
        else:
            console().print(shown_whereabouts(error.found))
        return
    if as_json:
        calls = [call for step in timeline.steps for call in step.calls]
        told = {**msgspec.to_builtins(timeline), "cost_usd": prices.of(calls), "prices_of": prices.date}
        if prompts:
            told["decisions"] = msgspec.to_builtins(_recorded(timeline.summary.task))
        _as_json(told)
        return
    out = console()
    out.print(render.timeline(timeline, thinking=thinking, money=prices))
    if waiting:
        click.echo(f"{waiting} {'task waits' if waiting == 1 else 'tasks wait'} for a phone: `apex queue`", err=True)
    if prompts:
        before = None
        for record in _recorded(timeline.summary.task):
            out.print(render.asked(record, before))
            before = record


async def _last_or(client: Client, task: str | None) -> tuple[Timeline, int]:
    """The task, and where none was asked for by id, how many have been asked for since. Raises NotBegun, NotFound."""
    if task is not None:
        return await lookup.timeline(client, task), 0
    known = await client.waiting()
    requests = known.waiting if known else ()
    try:
        last = await client.timeline()
    except NotFound:
        if not requests:
            raise
        raise NotBegun(await lookup.find(client, requests[-1].task)) from None
    return last, sum(each.sequence > (last.summary.request_sequence or 0) for each in requests)


@click.command(short_help="The latest tasks, and those that wait for a phone.")
@click.option("--limit", type=click.IntRange(1, MOST_TASKS), default=20, show_default=True, help="The newest so many.")
@click.option("--status", type=click.Choice(STATUSES), help="Only these; queued ones wait for a phone.")
@click.option("--device", metavar="ALIAS", help="Only those on this phone, or that wait for it alone.")
@click.option("--goal", metavar="TEXT", help="Whose goal holds TEXT, in any case.")
@click.option("--failure", metavar="TEXT", help="Whose reason of failure holds TEXT, such as a code.")
@click.option("--since", metavar="WHEN", help="Begun since: 30m, 12h, 7d, or a date such as 2026-11-30T08:00.")
@click.option("--json", "as_json", is_flag=True, help="As JSON; what waits has a field `queue`.")
def tasks(
    limit: int,
    status: str | None,
    device: str | None,
    goal: str | None,
    failure: str | None,
    since: str | None,
    as_json: bool,
) -> None:
    """The latest tasks, newest first; before them those that wait for a phone."""
    since_ms = None if since is None else moment_ms(since, time.time())
    asked = {"limit": limit, "status": None if status == "queued" else status, "device": device, "goal": goal}
    query = msgspec.convert({**asked, "failure": failure, "since_ms": since_ms}, TasksQuery)
    found = _ask(lambda client: listed(client, query, waiting=status in (None, "queued"), begun=status != "queued"))
    if as_json:
        _as_json([*map(as_row, found.queued), *found.begun])
    elif found.queued or found.begun:
        console().print(task_table(found))
    else:
        chosen = any(value is not None for value in (status, device, goal, failure, since))
        hint = "choose less" if chosen else 'submit one: apex submit "turn on Wi-Fi" --follow'
        click.echo(f"no {'such ' if chosen else ''}tasks; {hint}")
    for note in found.notes:
        click.echo(note, err=True)


@click.command(short_help="End a task that waits or runs.")
@click.argument("task", callback=task_id)
@click.option("--reason", default="cancelled by the client", show_default=True, help="Kept with the task's end.")
def cancel(task: str, reason: str) -> None:
    """End TASK, an id or its first digits. An act that is under way on the phone is not taken back.

    One that has ended stays as it is, which is said; one that nobody knows is refused.
    """
    click.echo(_ask(lambda client: _cancelled(client, task, reason)))


async def _cancelled(client: Client, wanted: str, reason: str) -> str:
    """What to say. It is sent also where nobody could say whether there is such a task: the stream keeps it until
    somebody can."""
    found, silent = await lookup.search(client, wanted)
    if found is None and (not silent or not is_task_id(wanted)):
        raise lookup.unknown(wanted, silent)
    if found is not None and found.ended:
        return f"nothing to cancel: task {found.task} had ended before; {lookup.told(found)}"
    task = wanted if found is None else found.task
    await client.cancel(task, reason)
    if found is None:
        return f"asked to cancel {task}, though nobody could say whether there is such a task: {'; '.join(silent)}"
    return f"asked to cancel {task}: {lookup.told(found)}; `apex show {task[:8]}` tells when it has ended"


def _refused(reason: str) -> str:
    """What msgspec finds wrong with a request, in a person's words: which option, and what may stand there."""
    field = next((name for name in _OPTIONS if f"$.{name}" in reason), None)
    return _OPTIONS[field] if field else f"the request cannot be used: {reason}"
