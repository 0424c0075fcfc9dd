"""A claim is kept by a living holder, whatever the link to the server does. In virtual time."""

import asyncio
from typing import Any

import pytest
from chaos import virtual_clock

from apex_bus.connection import Refused, Stored
from apex_bus.errors import LogUnavailable
from apex_planner.ledger import CLAIM_SECONDS, BusLedger
from apex_schemas.steps import DecisionKey

KEY = DecisionKey(task="1" * 32, turn=0, call=0)


class Link:
    """A last-value subject with an expiry, `trip_s` away. Writes whose number is in `silent` are stored, unanswered."""

    worker = "a"

    def __init__(self, trip_s: float, silent: tuple[int, ...] = ()) -> None:
        self.trip_s, self.silent = trip_s, silent
        self.writes = self.sequence = self.lapses = 0
        self.data: bytes | None = None
        self._expiry: asyncio.TimerHandle | None = None

    def _lapse(self) -> None:
        self.data, self.lapses = None, self.lapses + 1

    def _stored(self, data: bytes, headers: dict[str, str]) -> bool:
        if int(headers["Nats-Expected-Last-Subject-Sequence"]) != (self.sequence if self.data else 0):
            return False
        self.sequence, self.data = self.sequence + 1, data
        if self._expiry:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(float(headers["Nats-TTL"][:-1]), self._lapse)
        return True

    async def publish(self, subject: str, data: bytes, *, headers: dict[str, str], **_: Any) -> int:
        self.writes += 1
        silent = self.writes in self.silent
        await asyncio.sleep(self.trip_s / 2)
        stored = self._stored(data, headers)
        sequence = self.sequence
        await asyncio.sleep(self.trip_s / 2)
        if silent:
            await asyncio.sleep(5)
            raise LogUnavailable(f"no answer for {subject}")
        if not stored:
            raise Refused(subject, 10071, "wrong last sequence")
        return sequence

    async def get(self, _: str, subject: str, **__: Any) -> Stored | None:
        await asyncio.sleep(self.trip_s)
        if self.data is None:
            return None
        return Stored(subject=subject, sequence=self.sequence, timestamp_ns=0, data=self.data, headers={})


@pytest.mark.parametrize(
    ("trip_s", "silent"),
    [(0.01, ()), (0.01, (2,)), (0.01, (2, 3)), (0.5, (2,)), (3.0, ())],
    ids=["near", "one answer lost", "two answers lost", "far, and an answer lost", "very far"],
)
def test_claim_outlives_several_of_its_terms_while_its_holder_lives(trip_s: float, silent: tuple[int, ...]) -> None:
    link = Link(trip_s, silent)

    async def hold() -> None:
        async with BusLedger(link).claim(KEY) as ours:  # type: ignore[arg-type]
            assert ours
            await asyncio.sleep(5 * CLAIM_SECONDS)

    virtual_clock.run(hold())
    assert not link.lapses
    assert link.writes > 5
