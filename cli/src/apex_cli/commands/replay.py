"""replay: the decisions of a task taken up again, without a phone.

The records hold prompts and raw answers, so this is the operator's. The planner's package is imported when it is used.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from rich.console import Group, RenderableType

from apex_bus.errors import SettingsError
from apex_cli import operator
from apex_cli.errors import BadInput, CommandError, NotFound, NotInstalled
from apex_cli.lookup import find, task_id
from apex_cli.operator import Operator
from apex_cli.recorded import recorded
from apex_cli.text import console, plain, shortened, styled
from apex_schemas.decision import DecisionRecord, DecisionReply, ToolCallDecision
from apex_schemas.ids import is_task_id

if TYPE_CHECKING:
    from apex_planner.replay import Replayed

_STYLE: Final = {"same": "green", "differs": "bold red", "no_answer": "dim"}


class DecisionsDiffer(CommandError):
    def __init__(self, count: int, of: int) -> None:
        super().__init__(f"{count} of {of} recorded answers are read otherwise than they were")


@click.command(short_help="A task's decisions once more, or by another model.")
@click.argument("task", callback=task_id)
@click.option("--provider", type=click.Choice(["anthropic", "openai"]), help="Ask this one instead of parsing again.")
@click.option("--model", help="The model to ask; default: AI_PLANNER_MODEL.")
@click.option("--base-url", metavar="URL", help="Of a server that speaks the provider's API.")
@click.option("--turn", type=click.IntRange(0), help="Only this turn.")
@click.option("--json", "as_json", is_flag=True, help="All of it, as JSON.")
def replay(
    task: str, provider: str | None, model: str | None, base_url: str | None, turn: int | None, as_json: bool
) -> None:
    """The decisions of TASK again: its recorded answers parsed anew, which must give the same to the letter.

    With --provider, --model or --base-url the recorded prompts are put to that model, which costs money, and what it
    decides otherwise is shown. No phone is touched and nothing is stored. Needs the operator's key.
    """
    records = [each for each in operator.run(lambda asked: _records(asked, task)) if turn in (None, each.key.turn)]
    if not records:
        of_turn = "" if turn is None else f" of turn {turn}"
        raise NotFound(
            f"no provider call{of_turn} of task {task} is recorded", f"`apex show {task[:8]}` tells its turns"
        )
    given = {"AI_PLANNER_PROVIDER": provider, "AI_PLANNER_MODEL": model, "AI_PLANNER_BASE_URL": base_url}
    asked = {name: value for name, value in given.items() if value}
    found = _asked_again(records, asked) if asked else _parsed_again(records)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode([_told(each) for each in found]), indent=2).decode())
    else:
        console().print(Group(*(_shown(each) for each in found), _sum(found)))
    differing = sum(each.verdict == "differs" for each in found)
    if differing and not asked:
        raise DecisionsDiffer(differing, len(found))


async def _records(asked: Operator, wanted: str) -> list[DecisionRecord]:
    whole = is_task_id(wanted)
    return await recorded(asked, wanted if whole else (await find(asked.client, wanted)).task)


def _parsed_again(records: list[DecisionRecord]) -> "list[Replayed]":
    try:
        from apex_planner.replay import parse_again
    except ImportError as error:
        raise NotInstalled("apex-planner") from error
    return [parse_again(record) for record in records]


def _asked_again(records: list[DecisionRecord], given: dict[str, str]) -> "list[Replayed]":
    try:
        from apex_planner.clients.choose import provider_client
        from apex_planner.replay import ask_again
        from apex_planner.settings import load_provider
    except ImportError as error:
        raise NotInstalled("apex-planner") from error
    try:
        settings = load_provider({**os.environ, **given})
    except SettingsError as error:
        raise BadInput(str(error)) from error

    async def all_of_them() -> "list[Replayed]":
        client = provider_client(settings)
        try:
            return [await ask_again(record, client) for record in records]
        finally:
            await client.close()

    return asyncio.run(all_of_them())


def _told(each: "Replayed") -> dict[str, Any]:
    return {
        "turn": each.turn,
        "call": each.call,
        "verdict": each.verdict,
        "differences": each.differences,
        "pictureless": each.pictureless,
        "then": each.then,
        "now": each.now,
    }


def _shown(each: "Replayed") -> RenderableType:
    head = styled(
        (f"{each.turn:>3}", "bold"),
        (f".{each.call}  ", "dim"),
        (each.verdict.replace("_", " "), _STYLE[each.verdict]),
        f"  {_decision(each.then)}",
        ("  (asked without its picture)" if each.pictureless else "", "yellow"),
    )
    if each.verdict != "differs":
        return head
    now = "cannot be read" if each.now is None else _decision(each.now)
    fields = ", ".join(each.differences)
    return Group(head, styled(("       now   ", "dim"), now), styled((f"       in    {fields}", "dim")))


def _decision(reply: DecisionReply) -> str:
    if isinstance(reply, ToolCallDecision):
        arguments = msgspec.json.encode(reply.arguments, order="sorted").decode()
        return f"{plain(reply.tool)} {shortened(plain(arguments), 160)}"
    return f"{plain(reply.code)}: {shortened(plain(reply.message), 160)}"


def _sum(found: "list[Replayed]") -> RenderableType:
    counts = {verdict: sum(each.verdict == verdict for each in found) for verdict in _STYLE}
    said = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items() if count)
    return styled((f"{len(found)} provider call{'' if len(found) == 1 else 's'}: {said}", "dim"))
