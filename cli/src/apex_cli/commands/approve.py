"""approve and deny: the operator's answer to an act that the confirm policy holds back."""

import getpass

import click
import msgspec

from apex_cli import operator
from apex_cli.errors import NotFound
from apex_cli.operator import Operator
from apex_cli.text import plain
from apex_schemas import subjects
from apex_schemas.ids import is_task_id
from apex_schemas.task import Approval


def _task_id(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if not is_task_id(value):
        raise click.BadParameter("a task id is 32 lower-case hex digits, as `apex devices` lists them")
    return value


_TASK = click.argument("task", callback=_task_id)
_TURN = click.option("--turn", type=click.IntRange(0), help="Default: the turn whose act waits now.")
_BY = click.option("--by", help="Who answers, for the record. Default: your user name.")


@click.command()
@_TASK
@_TURN
@_BY
def approve(task: str, turn: int | None, by: str | None) -> None:
    """Allow the act of TASK that waits for it; `apex devices` shows which. Needs the operator's key."""
    _answer(task, turn, by, approved=True)


@click.command()
@_TASK
@_TURN
@_BY
def deny(task: str, turn: int | None, by: str | None) -> None:
    """Refuse the act of TASK that waits. Nothing is done; the model is told, and goes on. Needs the operator's key."""
    _answer(task, turn, by, approved=False)


def _answer(task: str, turn: int | None, by: str | None, *, approved: bool) -> None:
    async def work(asked: Operator) -> tuple[int, str]:
        waiting, what = (turn, "") if turn is not None else await _waiting(asked, task)
        body = Approval(approved=approved, by=by or _user())
        await asked.bus.publish(subjects.approve(task, waiting), msgspec.json.encode(body))
        return waiting, what

    answered, what = operator.run(work)
    held = f": {plain(what.partition(' waits for approval')[0])}" if what else ""
    click.echo(f"{'allowed' if approved else 'denied'} turn {answered} of {task}{held}")


async def _waiting(asked: Operator, task: str) -> tuple[int, str]:
    for status in await asked.client.devices():
        if status.task == task and status.waiting_turn is not None:
            return status.waiting_turn, status.reason or ""
    raise NotFound(f"no act of task {task} waits for approval; `apex devices` shows what does")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "the operator"
