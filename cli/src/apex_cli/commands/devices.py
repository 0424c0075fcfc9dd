"""devices, with pause and resume; queue: who drives each phone, and what waits for one.

Consumes the executors' answers on `query.devices` and `query.queue`; emits the operator's word on `control.<device>`.
"""

import os
from collections.abc import Iterable
from typing import Any, Final

import click
import msgspec
from rich.table import Table
from rich.text import Text

from apex_bus.errors import Transient
from apex_cli import client, lookup, operator, render
from apex_cli.errors import NotFound, NotReachable
from apex_cli.lookup import Whereabouts, queued, task_id, told
from apex_cli.operator import Operator
from apex_cli.place import clone, find
from apex_cli.text import console, plain, shortened
from apex_schemas import subjects
from apex_schemas.devices import DeviceControl, DeviceStatus
from apex_schemas.ids import is_device
from apex_schemas.queries import WaitingRequest

_CONTROL_S: Final = 5.0


def _json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


@click.group(invoke_without_command=True, short_help="The phones: what each is at; pause and resume one.")
@click.option("--json", "as_json", is_flag=True, help="All of it, as JSON.")
@click.pass_context
def devices(ctx: click.Context, as_json: bool) -> None:
    """The phones: state, session, which task each is on, who drives it. `pause` and `resume` one.

    States: ready, busy, waiting (paused, or the reason says for what), quarantined (set aside after failures and tried
    again), unprovisioned (NATS does not know it yet), elsewhere (another executor has it). Behind its driver stands
    when that last renewed the device's record; when it could not for long, others may take the device, which is said.
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
            look = "`apex devices` lists those that are driven"
            raise NotFound(f"no executor drives {device} ({error})", look) from error
        return msgspec.json.decode(reply, type=DeviceStatus)

    return operator.run(work)


@click.command(short_help="What waits for a phone, and how long.")
@click.argument("task", required=False, callback=task_id)
@click.option("--json", "as_json", is_flag=True, help="All of it, as JSON.")
def queue(task: str | None, as_json: bool) -> None:
    """The requests that wait for a phone, in the order of each pool; with TASK: how many are before it."""
    place = find(os.environ, clone())
    if task is not None:
        _place(client.run(place, lambda asked: lookup.find(asked, task)))
        return
    known = client.run(place, lambda asked: asked.waiting())
    if known is None:
        raise NotReachable("no executor answers, so that nobody knows what waits", place.found)
    if as_json:
        _json(known.waiting)
    elif known.waiting:
        console().print(_queue_table(known.waiting))
    else:
        click.echo("nothing waits for a device")
    if known.omitted:
        click.echo(f"{known.omitted} more wait", err=True)
    if not known.complete:
        click.echo("an executor has not looked at all of them yet: there may be more", err=True)


def _place(found: Whereabouts) -> None:
    if found.request is None:
        raise NotFound(f"task {found.task} does not wait: {told(found)}", look="")
    own = found.request
    click.echo(
        f"{found.before} before it in pool {own.pool}; it waits for {own.waits_s} s, and {own.left_s} s longer at most"
    )


def _queue_table(waiting: Iterable[WaitingRequest]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("before it", "pool", "task", "waits", "left", "goal"):
        table.add_column(name, no_wrap=name != "goal", justify="right" if name == "before it" else "left")
    for request, place in ((each.request, each.before) for each in queued(waiting) if each.request):
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
