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

from apex_cli import operator, render
from apex_cli.client import Client, run
from apex_cli.errors import BadInput, CommandError, TaskNotSucceeded
from apex_cli.live import LiveTask, waiting
from apex_cli.money import money
from apex_cli.place import clone, find
from apex_cli.recorded import recorded
from apex_cli.text import console
from apex_schemas.decision import DecisionRecord
from apex_schemas.ids import is_device, is_pool, is_task_id, new_task_id
from apex_schemas.queries import TasksQuery
from apex_schemas.task import TaskFinished, TaskRequest

Result = TypeVar("Result")
_AGE = re.compile(r"([0-9]{1,6})([smhdw])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_QUEUE_SECONDS = 1.0
STATUSES = ("running", "succeeded", "failed", "cancelled")


def _ask(work: Callable[[Client], Awaitable[Result]]) -> Result:
    return run(find(os.environ, clone()), work)


def task_id(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not is_task_id(value):
        raise click.BadParameter("a task id is 32 lower-case hex digits, as `apex tasks` lists them")
    return value


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


@click.command()
@click.argument("goal")
@click.option("--follow", "-f", is_flag=True, help="Watch it until it ends; the exit code tells how.")
@click.option("--pool", default="any", show_default=True, help="any, a platform (android, ios), or a device.")
@click.option("--device", help="The one device that may take it; the same as --pool DEVICE.")
@click.option("--max-turns", type=click.IntRange(1, 200), default=30, show_default=True)
@click.option("--timeout", type=click.IntRange(5, 86_400), default=1_800, show_default=True, metavar="SECONDS",
              help="From the start on a device.")  # fmt: skip
@click.option("--app", "apps", multiple=True, metavar="PACKAGE", help="May be acted in; repeat it, com.bank.* is fine. "
              "Without any: all.")  # fmt: skip
@click.option("--launch", metavar="APP", help="Opened before the first look.")
@click.option("--terminate", multiple=True, metavar="APP", help="Closed after the end; repeat it.")
@click.option("--secret", "secrets", multiple=True, metavar="NAME", help="May be typed, by its name; repeat it.")
def submit(
    goal: str,
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
    if device is not None and not is_device(device):
        raise click.BadParameter("a device is an alias of a-z, 0-9 and -, as `apex devices` lists them")
    pool = device or pool
    if not is_pool(pool):
        raise click.BadParameter(f"{pool!r} is no pool: any, android, ios, or a device that `apex devices` lists")
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
        raise BadInput(f"the goal cannot be used: {error}") from error
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
            live.stage(waiting(sequence, pool, await client.queue(), await client.devices()))
        except CommandError as error:
            live.stage(f"waiting; {error}")


@click.command()
@click.argument("task", required=False, callback=task_id)
@click.option("--thinking", is_flag=True, help="Also what the model thought, where it said.")
@click.option("--prompts", is_flag=True, help="Also what the model was asked, and its raw answer (operator only).")
@click.option("--json", "as_json", is_flag=True, help="All of it, as JSON.")
def show(task: str | None, thinking: bool, prompts: bool, as_json: bool) -> None:
    """One task turn by turn, with the model's reasons, tokens and what they cost. Without TASK: the last one."""
    prices = money(os.environ)
    timeline = _ask(lambda client: client.timeline(task))
    if as_json:
        calls = [call for step in timeline.steps for call in step.calls]
        told = {**msgspec.to_builtins(timeline), "cost_usd": prices.of(calls), "prices_of": prices.date}
        if prompts:
            told["decisions"] = msgspec.to_builtins(_recorded(timeline.summary.task))
        _as_json(told)
        return
    out = console()
    out.print(render.timeline(timeline, thinking=thinking, money=prices))
    if prompts:
        before = None
        for record in _recorded(timeline.summary.task):
            out.print(render.asked(record, before))
            before = record


@click.command()
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True)
@click.option("--status", type=click.Choice(STATUSES))
@click.option("--device")
@click.option("--goal", metavar="TEXT", help="Whose goal holds TEXT, in any case.")
@click.option("--failure", metavar="TEXT", help="Whose reason of failure holds TEXT, such as a code.")
@click.option("--since", metavar="WHEN", help="Begun since: 30m, 12h, 7d, or a date such as 2026-11-30T08:00.")
@click.option("--json", "as_json", is_flag=True)
def tasks(
    limit: int,
    status: str | None,
    device: str | None,
    goal: str | None,
    failure: str | None,
    since: str | None,
    as_json: bool,
) -> None:
    """The latest tasks, newest first."""
    since_ms = None if since is None else moment_ms(since, time.time())
    asked = {"limit": limit, "status": status, "device": device, "goal": goal, "failure": failure}
    query = msgspec.convert({**asked, "since_ms": since_ms}, TasksQuery)
    found = _ask(lambda client: client.tasks(query)).tasks
    if as_json:
        _as_json(found)
    elif found:
        console().print(render.task_table(found))
    else:
        chosen = any(value is not None for value in (status, device, goal, failure, since))
        hint = "choose less" if chosen else 'submit one: apex submit "turn on Wi-Fi" --follow'
        click.echo(f"no {'such ' if chosen else ''}tasks; {hint}")


@click.command()
@click.argument("task", callback=task_id)
@click.option("--reason", default="cancelled by the client", show_default=True)
def cancel(task: str, reason: str) -> None:
    """End TASK. An act that is under way on the phone is not taken back."""
    _ask(lambda client: client.cancel(task, reason))
    click.echo(f"asked to cancel {task}; `apex show {task}` tells when it has ended")
