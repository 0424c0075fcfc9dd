"""approve and deny: the operator's answer to an act that the confirm policy holds back."""

import getpass
from typing import NamedTuple

import click
import msgspec

from apex_cli import operator
from apex_cli.errors import Ambiguous, NotFound
from apex_cli.lookup import find, task_id
from apex_cli.operator import Operator
from apex_cli.text import plain
from apex_schemas import subjects
from apex_schemas.ids import is_task_id
from apex_schemas.task import Approval


class Held(NamedTuple):
    """An act that waits for the operator; `what` are the executor's words for it."""

    task: str
    turn: int
    what: str = ""


_TASK = click.argument("task", callback=task_id)
_TURN = click.option("--turn", type=click.IntRange(0), help="Default: the turn whose act waits now.")
_BY = click.option("--by", help="Who answers, for the record. Default: your user name.")


@click.command(short_help="Allow the act that a task holds back.")
@_TASK
@_TURN
@_BY
def approve(task: str, turn: int | None, by: str | None) -> None:
    """Allow the act of TASK that waits for it; `apex devices` shows which. Needs the operator's key."""
    _answer(task, turn, by, approved=True)


@click.command(short_help="Refuse the act that a task holds back.")
@_TASK
@_TURN
@_BY
def deny(task: str, turn: int | None, by: str | None) -> None:
    """Refuse the act of TASK that waits. Nothing is done; the model is told, and goes on. Needs the operator's key."""
    _answer(task, turn, by, approved=False)


def _answer(wanted: str, turn: int | None, by: str | None, *, approved: bool) -> None:
    async def work(asked: Operator) -> Held:
        if turn is None:
            held = await _waiting(asked, wanted)
        else:
            held = Held(wanted if is_task_id(wanted) else (await find(asked.client, wanted)).task, turn)
        body = Approval(approved=approved, by=by or _user())
        await asked.bus.publish(subjects.approve(held.task, held.turn), msgspec.json.encode(body))
        return held

    held = operator.run(work)
    what = f": {plain(held.what.partition(' waits for approval')[0])}" if held.what else ""
    click.echo(f"{'allowed' if approved else 'denied'} turn {held.turn} of {held.task}{what}")


async def _waiting(asked: Operator, wanted: str) -> Held:
    found = [
        Held(status.task, status.waiting_turn, status.reason or "")
        for status in await asked.client.devices()
        if status.task and status.task.startswith(wanted) and status.waiting_turn is not None
    ]
    if not found:
        raise NotFound(f"no act of task {wanted} waits for approval", "`apex devices` shows what does")
    if len(found) > 1:
        raise Ambiguous(wanted, [held.task for held in found])
    return found[0]


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "the operator"
