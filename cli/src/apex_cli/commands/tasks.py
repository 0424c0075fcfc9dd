"""submit, show, tasks, cancel, devices: what a client asks of a running system."""

import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click
import msgspec

from apex_cli import render
from apex_cli.client import Client, run
from apex_cli.errors import BadInput, TaskNotSucceeded
from apex_cli.live import LiveTask
from apex_cli.money import money
from apex_cli.place import clone, find
from apex_cli.text import console
from apex_schemas.ids import is_device, is_pool, is_task_id, new_task_id
from apex_schemas.queries import TasksQuery
from apex_schemas.task import TaskFinished, TaskRequest

Result = TypeVar("Result")
STATUSES = ("running", "succeeded", "failed", "cancelled")


def _ask(work: Callable[[Client], Awaitable[Result]]) -> Result:
    return run(find(os.environ, clone()), work)


def _task_id(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not is_task_id(value):
        raise click.BadParameter("a task id is 32 lower-case hex digits, as `apex tasks` lists them")
    return value


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
def submit(goal: str, follow: bool, pool: str, device: str | None, max_turns: int, timeout: int) -> None:
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
            {"goal": goal, "task": new_task_id(), "max_turns": max_turns, "timeout_s": timeout}, TaskRequest
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
            await client.submit(request, pool)
            click.echo(task)
            async for happening in happenings:
                live.see(happening)
        return live.end

    end = _ask(work)
    if not follow:
        click.echo(task)
        click.echo(f"`apex show {task}` tells how it goes", err=True)
    elif end is not None and end.status != "succeeded":
        raise TaskNotSucceeded(task, end.status)


@click.command()
@click.argument("task", required=False, callback=_task_id)
@click.option("--thinking", is_flag=True, help="Also what the model thought, where it said.")
@click.option("--json", "as_json", is_flag=True, help="All of it, as JSON.")
def show(task: str | None, thinking: bool, as_json: bool) -> None:
    """One task turn by turn, with the model's reasons, tokens and what they cost. Without TASK: the last one."""
    prices = money(os.environ)
    timeline = _ask(lambda client: client.timeline(task))
    if as_json:
        calls = [call for step in timeline.steps for call in step.calls]
        cost = prices.of(calls) if prices else None
        date = prices.prices.date if prices else None
        _as_json({**msgspec.to_builtins(timeline), "cost_usd": cost, "prices_of": date})
    else:
        console().print(render.timeline(timeline, thinking=thinking, money=prices))


@click.command()
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True)
@click.option("--status", type=click.Choice(STATUSES))
@click.option("--device")
@click.option("--json", "as_json", is_flag=True)
def tasks(limit: int, status: str | None, device: str | None, as_json: bool) -> None:
    """The latest tasks, newest first."""
    query = msgspec.convert({"limit": limit, "status": status, "device": device}, TasksQuery)
    found = _ask(lambda client: client.tasks(query)).tasks
    if as_json:
        _as_json(found)
    elif found:
        console().print(render.task_table(found))
    else:
        click.echo('no tasks; submit one: apex submit "turn on Wi-Fi" --follow')


@click.command()
@click.argument("task", callback=_task_id)
@click.option("--reason", default="cancelled by the client", show_default=True)
def cancel(task: str, reason: str) -> None:
    """End TASK. An act that is under way on the phone is not taken back."""
    _ask(lambda client: client.cancel(task, reason))
    click.echo(f"asked to cancel {task}; `apex show {task}` tells when it has ended")


@click.command()
@click.option("--json", "as_json", is_flag=True)
def devices(as_json: bool) -> None:
    """The phones, who drives each, and which task it is on."""
    found = _ask(lambda client: client.devices())
    if as_json:
        _as_json(found)
    elif found:
        console().print(render.device_table(found))
    else:
        click.echo("no executor knows a device; EXECUTOR_DEVICES of its process names them")
