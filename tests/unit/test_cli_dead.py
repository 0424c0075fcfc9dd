"""`apex dead again` when it goes wrong midway: what was done is told, then what was not, by the highest exit code."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import nats.errors
import pytest
from nats.aio.msg import Msg

from apex_bus.errors import LogUnavailable, Transient
from apex_cli import operator
from apex_cli.app import main
from apex_cli.errors import NotReachable
from apex_schemas import envelope
from apex_schemas.devices import DeadLetter, HandledAgain

Step = HandledAgain | Exception | None
HANDLED, FAILED = HandledAgain(outcome="handled"), HandledAgain(outcome="failed", reason="noise")


class FakeBus:
    """Dead letters by number: what its service says of each, or what reading it (None) or asking for it ends with."""

    def __init__(self, letters: dict[int, Step], unread: Exception) -> None:
        self._letters, self._unread, self.client = letters, unread, self
        self._last = 0

    async def request(self, subject: str, data: bytes, **_: Any) -> Any:
        if not subject.startswith("$JS.API.DIRECT.GET.DEAD"):
            step = self._letters[self._last]
            if isinstance(step, HandledAgain):
                return msgspec.json.encode(step)
            raise step or AssertionError("it was read")
        self._last = json.loads(data)["seq"]
        if self._letters[self._last] is None:
            raise self._unread
        letter = DeadLetter(
            service="executor", reason="r", subject="cancel.a", bytes=1, sha256="", stream="REQUESTS", sequence=1
        )
        headers = {"Nats-Sequence": str(self._last), "Nats-Time-Stamp": "2026-11-30T08:00:00Z"}
        return Msg(_client=self, data=envelope.encode(letter, attempt="a"), headers=headers)  # type: ignore[arg-type]


Hand = Callable[..., FakeBus]


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    """Have `apex dead again` find these letters. `lost`: the connection ends before the work does."""

    def arrange(letters: dict[int, Step], *, unread: Exception | None = None, lost: bool = False) -> FakeBus:
        bus = FakeBus(letters, unread or nats.errors.TimeoutError())

        def run(work: Any) -> Any:
            asked = operator.Operator(bus, None, "nats://here")  # type: ignore[arg-type]
            result = asyncio.run(work(asked))
            if lost:
                raise NotReachable("the connection was lost,", "nats://here")
            return result

        monkeypatch.setattr(operator, "run", run)
        return bus

    return arrange


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (nats.errors.TimeoutError(), "no answer in time"),
        (nats.errors.NoRespondersError(), "nobody is there to answer"),
        (nats.errors.ConnectionClosedError(), "connection closed"),
    ],
)
def test_letters_that_can_be_read_no_longer_leave_told_what_was_done_before(
    hand: Hand, capsys: pytest.CaptureFixture[str], error: Exception, said: str
) -> None:
    hand({1: HANDLED, 2: FAILED, 3: None, 4: HANDLED}, unread=error)
    assert main(["dead", "again", "1", "2", "3", "4"]) == 3
    told = capsys.readouterr()
    assert told.out == "1  cancel.a  handled\n2  cancel.a  failed again: noise\n"
    assert "apex: not handled: 2\n" in told.err
    assert f"apex: not handed back: 3, 4, since the dead letters cannot be read ({said}) at nats://here" in told.err
    assert "Error" not in told.err


def test_what_was_done_before_the_connection_was_lost_is_told_as_json_too(
    hand: Hand, capsys: pytest.CaptureFixture[str]
) -> None:
    hand({1: HANDLED}, lost=True)
    assert main(["dead", "again", "1", "--json"]) == 3
    told = capsys.readouterr()
    assert [each["number"] for each in json.loads(told.out)] == [1]
    assert "the connection was lost" in told.err


def test_every_letter_that_came_to_nothing_is_named_and_the_highest_exit_code_holds(
    hand: Hand, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = HandledAgain(outcome="gone", reason="REQUESTS does not hold it any more")
    silent = Transient("nobody serves again.executor.CANCEL")
    hand({1: FAILED, 2: silent, 3: gone, 4: LogUnavailable("x"), 5: HANDLED})
    assert main(["dead", "again", "1", "2", "3", "4", "5"]) == 4
    told = capsys.readouterr()
    assert [line.split()[0] for line in told.out.splitlines()] == ["1", "3", "5"]
    wanted = ("not handled: 1", "not answer for letter 2", "not answer for letter 4", "no longer there: 3")
    assert [line for line, want in zip(told.err.splitlines(), wanted, strict=True) if want not in line] == []
