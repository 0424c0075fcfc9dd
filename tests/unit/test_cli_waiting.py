"""What the queue is, from what several executors tell of it."""

from typing import Any, cast

import pytest

from apex_bus.connection import Bus
from apex_cli.client import Client
from apex_schemas.queries import WaitingRequest, WaitingRequests


class Connection:
    fatal: Any = None


def answer(*sequences: int, omitted: int = 0, complete: bool = True) -> WaitingRequests:
    waiting = tuple(WaitingRequest(task=f"{n:032x}", pool="any", sequence=n) for n in sequences)
    return WaitingRequests(waiting=waiting, omitted=omitted, complete=complete)


@pytest.mark.parametrize(
    ("answers", "told", "omitted"),
    [
        ([answer(1, 2, 3), answer(2, 4)], [1, 2, 3, 4], 0),
        ([answer(1, 2, 3, omitted=7), answer(1, 3, 5, 8, omitted=2)], [1, 2, 3], 7),
        ([answer(1, 3, omitted=4), answer(2, 4, omitted=4)], [1, 2, 3], 5),
        ([answer(1, 2, omitted=4), answer(7)], [1, 2], 4),
    ],
    ids=["all is told", "one knows half", "each knows half", "one has just begun"],
)
async def test_answers_together_are_the_queue_without_a_gap_and_say_how_many_more_at_least(
    monkeypatch: pytest.MonkeyPatch, answers: list[WaitingRequests], told: list[int], omitted: int
) -> None:
    client = Client(cast(Bus, Connection()), "here")

    async def given(*_: object) -> list[WaitingRequests]:
        return answers

    monkeypatch.setattr(client, "_answers", given)
    known = await client.waiting()
    assert known is not None
    assert [each.sequence for each in known.waiting] == told
    assert known.omitted == omitted
    assert known.complete
