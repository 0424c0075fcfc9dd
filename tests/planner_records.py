"""Decision records of every provider answer in `planner_rows`, as they are stored, for the tests of replay.

`python tests/planner_records.py` adds records of rows that `tests/replay/recorded/rows.json` lacks; what stands there
is never written again, since it is what an earlier version of the code made of these bodies.
"""

import asyncio
from pathlib import Path
from typing import Any, Final

import msgspec
from planner_rows import ROWS, Row

from apex_planner.clients import anthropic_answer, chat_answer, responses_answer
from apex_planner.clients.exchange import Exchange
from apex_planner.clients.refusals import Where
from apex_planner.recorded import record_of
from apex_schemas.decision import DecisionRecord, DecisionRequest
from apex_schemas.steps import DecisionKey

STORED: Final = Path(__file__).parent / "replay" / "recorded"
READERS: Final = {"anthropic": anthropic_answer.read, "chat": chat_answer.read, "responses": responses_answer.read}
TASK: Final = "7" * 32


class Canned:
    """A dialect whose provider has given its answer already."""

    features = ()

    def __init__(self, row: Row) -> None:
        self._row = row

    async def body(self, request: DecisionRequest, features: Any) -> dict[str, Any]:
        return {}

    async def send(self, body: dict[str, Any]) -> str:
        return self._row.raw

    def read(self, raw: str) -> Any:
        return READERS[self._row.api](raw)

    async def close(self) -> None:
        pass


def exchange_of(row: Row) -> Exchange:
    """A provider's client that gets the row's body as every answer."""
    provider = "anthropic" if row.api == "anthropic" else "openai"
    return Exchange(Canned(row), Where(provider, "asked", "http://provider", "KEY", 2, 30.0), key="sk-0123456789")


async def record_of_row(row: Row) -> DecisionRecord:
    """What is stored of a call that was answered with the row's body."""
    request = DecisionRequest(
        key=DecisionKey(task=TASK, turn=0, call=0), system_prompt="s", user_blocks=("Goal: x", "u"), tools=()
    )
    return record_of(request, await exchange_of(row).ask(request))


def add_missing() -> None:
    file = STORED / "rows.json"
    stored = msgspec.json.decode(file.read_bytes(), type=dict[str, DecisionRecord]) if file.exists() else {}
    for row in ROWS:
        if row.id not in stored:
            stored[row.id] = asyncio.run(record_of_row(row))
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(stored), indent=1) + b"\n")


if __name__ == "__main__":
    add_missing()
