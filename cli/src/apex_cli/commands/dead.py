"""dead: what could not be handled, by whom and why. Consumes DEAD, message by message, as the operator may."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final

import click
import msgspec
import nats.errors
from rich.table import Table

from apex_bus.connection import Bus, parse_timestamp_ns
from apex_bus.errors import LogUnavailable
from apex_cli import operator
from apex_cli.operator import Operator
from apex_cli.text import console, plain
from apex_schemas import envelope
from apex_schemas.devices import DeadLetter
from apex_schemas.errors import WireError

_GET: Final = "$JS.API.DIRECT.GET.DEAD"
_ANSWER_S: Final = 5.0


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter and when it was written. `number` is its place in DEAD."""

    number: int
    at: str
    letter: DeadLetter


@click.command()
@click.option("--service", help="Only this service's.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="The latest so many.")
@click.option("--json", "as_json", is_flag=True)
def dead(service: str | None, limit: int, as_json: bool) -> None:
    """Messages that could not be handled: which, by whom, and why. Needs the operator's key.

    A task whose message is dead ends as failed, by the watchdog at the latest; ask for it again. What the decision-log
    could not write is missing in the database alone.
    """

    async def work(asked: Operator) -> list[Letter]:
        return [each async for each in _letters(asked.bus) if service in (None, each.letter.service)][-limit:]

    found = operator.run(work)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    elif found:
        console().print(_table(found))
    else:
        click.echo("no dead letters")


async def _letters(bus: Bus) -> AsyncIterator[Letter]:
    """All of them, oldest first. Raises LogUnavailable."""
    wanted = 1
    while True:
        body = json.dumps({"seq": wanted, "next_by_subj": "dead.>"}).encode()
        try:
            reply = await bus.client.request(_GET, body, timeout=_ANSWER_S)
        except (nats.errors.Error, TimeoutError) as error:
            raise LogUnavailable(f"DEAD could not be read ({type(error).__name__})") from error
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
    table = Table("at", "service", "subject", "bytes", "reason", box=None, pad_edge=False)
    for each in found:
        letter = each.letter
        table.add_row(each.at, letter.service, plain(letter.subject), str(letter.bytes), plain(letter.reason))
    return table
