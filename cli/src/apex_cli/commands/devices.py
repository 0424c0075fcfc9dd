"""devices, with pause and resume; queue: who drives each phone, and what waits for one.

Consumes the executors' answers on `query.devices` and `query.queue`; emits the operator's word on `control.<device>`.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import click
import msgspec
import nats.errors
from rich.table import Table
from rich.text import Text

from apex_bus.connection import Bus
from apex_bus.errors import Transient
from apex_cli import client, operator, render
from apex_cli.errors import NotFound
from apex_cli.operator import Operator
from apex_cli.place import clone, find
from apex_cli.text import console, plain, shortened
from apex_schemas import subjects
from apex_schemas.devices import DeviceControl, DeviceStatus
from apex_schemas.ids import is_device, is_task_id
from apex_schemas.queries import WaitingRequest, WaitingRequests

_ANSWERS_S: Final = 1.5
_QUIET_S: Final = 0.3
_CONTROL_S: Final = 5.0


def _json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True)
@click.pass_context
def devices(ctx: click.Context, as_json: bool) -> None:
    """The phones: state, session, which task each is on, who drives it. `pause` and `resume` one.

    States: ready, busy, waiting (paused, or the reason says for what), quarantined (set aside after failures and tried
    again), unprovisioned (NATS does not know it yet), elsewhere (another executor has it).
    """
    if ctx.invoked_subcommand is not None:
        return
    found = client.run(find(os.environ, clone()), lambda asked: asked.devices())
    if as_json:
        _json(found)
    elif found:
        console().print(render.device_table(found))
    else:
        click.echo("no executor knows a device; EXECUTOR_DEVICES or EXECUTOR_DEVICES_FILE of its process names them")


def _alias(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if not is_device(value):
        raise click.BadParameter("a device is an alias of a-z, 0-9 and -, as `apex devices` lists them")
    return value


_DEVICE = click.argument("device", callback=_alias)
_BY = click.option("--by", help="Who says so, for the record. Default: your user name.")


@devices.command()
@_DEVICE
@click.option("--reason", default="", help="Shown to whoever wonders why it takes no task.")
@_BY
def pause(device: str, reason: str, by: str | None) -> None:
    """Let DEVICE take no further task, and leave its phone alone. The task that it is on goes on to its end.

    It stays paused over restarts. Needs the operator's key.
    """
    status = _say(device, DeviceControl(action="pause", reason=reason, by=by or operator_name()))
    busy = f", after task {status.task}" if status.task else ""
    click.echo(f"{device} is paused{busy}")


@devices.command()
@_DEVICE
@_BY
def resume(device: str, by: str | None) -> None:
    """Let DEVICE take tasks again; one that is set aside is tried at once. Needs the operator's key."""
    _say(device, DeviceControl(action="resume", by=by or operator_name()))
    click.echo(f"{device} takes tasks again")


def operator_name() -> str:
    return os.environ.get("USER") or os.environ.get("USERNAME") or "the operator"


def _say(device: str, word: DeviceControl) -> DeviceStatus:
    async def work(asked: Operator) -> DeviceStatus:
        try:
            reply = await asked.bus.request(subjects.control(device), msgspec.json.encode(word), timeout_s=_CONTROL_S)
        except Transient as error:
            raise NotFound(
                f"no executor drives {device} ({error}); `apex devices` lists those that are driven"
            ) from error
        return msgspec.json.decode(reply, type=DeviceStatus)

    return operator.run(work)


@click.command()
@click.argument("task", required=False)
@click.option("--json", "as_json", is_flag=True)
def queue(task: str | None, as_json: bool) -> None:
    """The requests that wait for a phone, in the order of each pool; with TASK: how many are before it."""
    if task is not None and not is_task_id(task):
        raise click.BadParameter("a task id is 32 lower-case hex digits, as `apex submit` prints it")
    waiting = client.run(find(os.environ, clone()), lambda asked: waiting_requests(asked._bus))  # pyright: ignore[reportPrivateUsage]
    if task is not None:
        _place(task, waiting)
    elif as_json:
        _json(waiting)
    elif waiting:
        console().print(_queue_table(waiting))
    else:
        click.echo("nothing waits for a device")


def _place(task: str, waiting: list[WaitingRequest]) -> None:
    own = next((request for request in waiting if request.task == task), None)
    if own is None:
        raise NotFound(f"task {task} does not wait: it has begun, has ended, or was never asked for")
    before = sum(request.pool == own.pool and request.sequence < own.sequence for request in waiting)
    click.echo(
        f"{before} before it in pool {own.pool}; it waits for {own.waits_s} s, and {own.left_s} s longer at most"
    )


async def waiting_requests(bus: Bus) -> list[WaitingRequest]:
    """What all executors together know of the queue, in order."""
    found: dict[str, WaitingRequest] = {}
    async for data in answers(bus, subjects.QUERY_QUEUE):
        for request in msgspec.json.decode(data, type=WaitingRequests).waiting:
            found[request.task] = request
    return sorted(found.values(), key=lambda request: request.sequence)


async def answers(bus: Bus, subject: str) -> AsyncIterator[bytes]:
    """The answers of all who serve a subject, until they fall silent; none where nobody does."""
    inbox = bus.client.new_inbox()
    subscription = await bus.client.subscribe(inbox)  # pyright: ignore[reportUnknownMemberType]
    await bus.client.publish(subject, b"", reply=inbox)
    loop = asyncio.get_running_loop()
    deadline, wait = loop.time() + _ANSWERS_S, _ANSWERS_S
    try:
        while (left := min(wait, deadline - loop.time())) > 0:
            message = await subscription.next_msg(timeout=left)
            if (message.headers or {}).get("Status") == "503":
                return
            yield message.data
            wait = _QUIET_S
    except nats.errors.TimeoutError:
        return
    finally:
        await subscription.unsubscribe()


def _queue_table(waiting: Iterable[WaitingRequest]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("before it", "pool", "task", "waits", "left", "goal"):
        table.add_column(name, no_wrap=name != "goal", justify="right" if name == "before it" else "left")
    before: dict[str, int] = {}
    for request in waiting:
        place = before.get(request.pool, 0)
        before[request.pool] = place + 1
        goal = Text(shortened(plain(request.goal), 80))
        table.add_row(
            str(place),
            plain(request.pool),
            Text(request.task, "cyan"),
            render.age(request.waits_s),
            render.age(request.left_s),
            goal,
        )
    return table
