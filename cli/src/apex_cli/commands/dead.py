"""dead, with again: what could not be handled, by whom and why, and handing it back to be handled once more.

Consumes DEAD, message by message, as the operator may; emits a letter on `again.<service>.<consumer>`, to its writer.
"""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final, assert_never

import click
import msgspec
import nats.errors
from rich.table import Table

from apex_bus.connection import Bus, parse_timestamp_ns, why
from apex_bus.errors import LogUnavailable, Transient
from apex_cli import operator
from apex_cli.errors import CommandError, NotFound, NotReachable
from apex_cli.operator import Operator
from apex_cli.text import console, plain
from apex_schemas import envelope, subjects
from apex_schemas.consumers import consumer_of
from apex_schemas.devices import DeadLetter, HandledAgain
from apex_schemas.errors import WireError

_GET: Final = "$JS.API.DIRECT.GET.DEAD"
_ANSWER_S: Final = 5.0
_AGAIN_S: Final = 30.0


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter and when it was written. `number` is its place in DEAD."""

    number: int
    at: str
    letter: DeadLetter


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one letter that was handed back."""

    number: int
    subject: str
    answer: HandledAgain


class NotHandled(CommandError):
    """Exit 1: at least one letter failed again, or its task had ended before."""

    def __init__(self, numbers: list[int]) -> None:
        super().__init__(f"not handled: {', '.join(map(str, numbers))}")
        self.numbers = numbers


class Unread(NotReachable):
    """Exit 3: the letters could be read no longer, so that the rest was not handed back."""

    def __init__(self, why: LogUnavailable, left: tuple[int, ...], place: str) -> None:
        super().__init__(f"not handed back: {', '.join(map(str, left))}, since {why}", place)
        self.left = left


class Gone(NotFound):
    """Exit 4: there is no such letter, or its message is kept no longer."""

    def __init__(self, numbers: list[int]) -> None:
        CommandError.__init__(self, f"no longer there: {', '.join(map(str, numbers))}; `apex dead` lists what there is")
        self.numbers = numbers


@click.group(invoke_without_command=True)
@click.option("--service", help="Only this service's.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="The latest so many.")
@click.option("--json", "as_json", is_flag=True, help="All of it, as JSON.")
@click.pass_context
def dead(ctx: click.Context, service: str | None, limit: int, as_json: bool) -> None:
    """Messages that could not be handled: which, by whom, and why. `again` has one handled once more.

    A task whose message is dead ends as failed, by the watchdog at the latest; ask for it again. What the decision-log
    could not write is missing in the database alone. Needs the operator's key.
    """
    if ctx.invoked_subcommand is not None:
        return

    async def work(asked: Operator) -> list[Letter]:
        return [each async for each in _letters(asked.bus) if service in (None, each.letter.service)][-limit:]

    found = operator.run(work)
    if as_json:
        _json(found)
    elif found:
        console().print(_table(found))
    else:
        click.echo("no dead letters")


@dead.command()
@click.argument("numbers", metavar="NUMBER...", type=click.IntRange(1), nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="All of it, as JSON.")
def again(numbers: tuple[int, ...], as_json: bool) -> None:
    """Have the messages of dead letters, by their NUMBER in `apex dead`, handled once more by who gave them up.

    Mend what was wrong first: the database, the settings, the program. Nothing is done twice, however often you ask.
    A message that still waits after ten seconds is gone on with for as long as its service runs.

    \b
    Exit codes, the highest that holds for one of them:
      0  handled, or being handled
      1  failed again (the reason is told), or its task had ended before
      3  its service does not answer
      4  no such letter, or its message is no longer kept
    """
    outcomes: list[Outcome] = []
    wrong: list[CommandError] = []

    async def work(asked: Operator) -> None:
        for place, number in enumerate(numbers):
            try:
                outcomes.append(await _hand_back(asked, number))
            except NotReachable as error:
                wrong.append(error)
            except LogUnavailable as error:
                wrong.append(Unread(error, numbers[place:], asked.found))
                return

    try:
        operator.run(work)
    finally:  # what was done is told, also where the connection was lost meanwhile
        _tell(outcomes, as_json=as_json)
    if gone := [each.number for each in outcomes if each.answer.outcome == "gone"]:
        wrong.append(Gone(gone))
    if failed := [each.number for each in outcomes if each.answer.outcome in ("failed", "ended")]:
        wrong.append(NotHandled(failed))
    *others, worst = sorted(wrong, key=lambda error: error.exit_code) or [None]
    for other in others:
        click.echo(f"apex: {other}", err=True)
    if worst is not None:
        raise worst


def _tell(outcomes: list[Outcome], *, as_json: bool) -> None:
    if as_json:
        _json(outcomes)
        return
    for outcome in outcomes:
        click.echo(f"{outcome.number}  {outcome.subject}  {_sentence(outcome.answer)}")


async def _hand_back(asked: Operator, number: int) -> Outcome:
    """Raises NotReachable when nobody who could handle it answers, LogUnavailable when its letter cannot be read."""
    found = await anext(_letters(asked.bus, number), None)
    if found is None or found.number != number:
        return _outcome(number, "", "gone", f"there is no dead letter {number}")
    letter = found.letter
    consumer = consumer_of(letter.service, letter.stream or "", letter.subject)
    if consumer is None:
        return _outcome(number, letter.subject, "failed", f"{letter.service} is not given such a message any more")
    subject = subjects.again(letter.service, consumer.name)
    try:
        data = await asked.bus.request(subject, msgspec.json.encode(letter), timeout_s=_AGAIN_S)
    except Transient as error:
        raise NotReachable(f"{letter.service} does not answer for letter {number} ({error})", asked.found) from error
    return Outcome(number=number, subject=letter.subject, answer=msgspec.json.decode(data, type=HandledAgain))


def _outcome(number: int, subject: str, outcome: Any, reason: str) -> Outcome:
    return Outcome(number=number, subject=subject, answer=HandledAgain(outcome=outcome, reason=reason))


def _sentence(answer: HandledAgain) -> str:
    reason, end = plain(answer.reason or ""), plain(answer.end or "")
    match answer.outcome:
        case "handled":
            return f"handled; {end}" if end else "handled"
        case "failed":
            return f"failed again: {reason}" + (f" ({end})" if end else "")
        case "waiting":
            return "is being handled" + (f"; it waits: {reason}" if reason else "")
        case "ended":
            return f"nothing to be done: {end}"
        case "gone":
            return f"is gone: {reason}"
        case _:
            assert_never(answer.outcome)


async def _letters(bus: Bus, first: int = 1) -> AsyncIterator[Letter]:
    """All of them from a number on, oldest first. Raises LogUnavailable."""
    wanted = first
    while True:
        body = json.dumps({"seq": wanted, "next_by_subj": "dead.>"}).encode()
        try:
            reply = await bus.client.request(_GET, body, timeout=_ANSWER_S)
        except (nats.errors.Error, TimeoutError) as error:
            raise LogUnavailable(f"the dead letters cannot be read ({why(error)})") from error
        headers: dict[str, Any] = reply.headers or {}
        if "Nats-Sequence" not in headers:
            return
        number = int(headers["Nats-Sequence"])
        wanted = number + 1
        try:
            letter = envelope.decode(reply.data).body
        except WireError:
            continue  # written by somebody else than a service
        if isinstance(letter, DeadLetter):
            seconds = parse_timestamp_ns(headers["Nats-Time-Stamp"]) / 1e9
            yield Letter(
                number=number, at=datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds"), letter=letter
            )


def _table(found: list[Letter]) -> Table:
    table = Table("number", "at", "service", "subject", "bytes", "reason", box=None, pad_edge=False)
    for each in found:
        letter = each.letter
        row = (each.at, letter.service, plain(letter.subject), str(letter.bytes), plain(letter.reason))
        table.add_row(str(each.number), *row)
    return table


def _json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
