"""The table of what becomes of a message, without a server: a delivery that only notes its verdicts."""

import asyncio
from typing import Any, cast

import nats.errors
import pytest
from nats.aio.msg import Msg

from apex_bus import consume as consuming
from apex_bus.connection import Bus, Refused
from apex_bus.consume import Delivery, Done, Later, Verdict
from apex_bus.errors import LogUnavailable, NotPermitted, StoreFull, Transient
from apex_schemas import envelope
from apex_schemas.consumers import SHARED_CONSUMERS
from apex_schemas.errors import LogTorn, SubjectMismatch, TooLarge, Undecodable, UnknownFields, UnknownKind
from apex_schemas.subjects import Identity

CONSUMER = next(each for each in SHARED_CONSUMERS if each.name == "CANCEL")


class NotedDelivery:
    """As a Delivery; `lost` makes its first verdict fail as a connection that is gone does."""

    def __init__(self, *, lost: bool = False) -> None:
        self.subject, self.data, self.headers, self.sequence = "cancel.a", b"a secret", dict[str, str](), 7
        self.verdicts: list[str] = []
        self._lost = lost

    async def _note(self, verdict: str) -> None:
        if self._lost:
            raise nats.errors.ConnectionClosedError
        self.verdicts.append(verdict)

    async def ack(self) -> None:
        await self._note("ack")

    async def again(self, delay_s: float) -> None:
        await self._note(f"again in {delay_s:g} s")

    async def never(self) -> None:
        await self._note("never")

    async def working(self) -> None:
        await self._note("working")


class DeadLetters:
    """As a Bus that can only publish."""

    identity = Identity.EXECUTOR

    def __init__(self, error: Exception | None = None) -> None:
        self.published: list[tuple[str, bytes]] = []
        self._error = error

    async def publish(self, subject: str, data: bytes, *, headers: dict[str, str]) -> int:
        if self._error is not None:
            raise self._error
        self.published.append((subject, data))
        return 1


async def settle(
    outcome: Verdict | BaseException, *, bus: DeadLetters | None = None, delivery: NotedDelivery | None = None
) -> tuple[list[str], list[tuple[str, bytes]]]:
    """The verdicts on a message whose handler returns or raises `outcome`, and the dead letters."""
    bus, delivery = bus or DeadLetters(), delivery or NotedDelivery()

    async def handle(_: Delivery) -> Verdict:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    loop = consuming._Loop(cast(Bus, bus), CONSUMER, handle)
    await loop.settle(cast(Delivery, delivery))
    return delivery.verdicts, bus.published


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Done(), "ack"),
        (Later(2.5), "again in 2.5 s"),
        (UnknownKind("new.v9"), "ack"),
        (LogTorn("t", 3, 2), "again in 0.2 s"),
        (Transient("busy", delay_s=3), "again in 3 s"),
        (LogUnavailable("away"), "again in 1 s"),
        (StoreFull("TASKS", "maximum bytes exceeded"), "again in 5 s"),
        (ZeroDivisionError(), "again in 5 s"),
        (KeyError("x"), "again in 5 s"),
        (TimeoutError(), "again in 5 s"),
        (ExceptionGroup("g", [ValueError()]), "again in 5 s"),
        (nats.errors.TimeoutError(), "again in 5 s"),
    ],
)
async def test_verdict_follows_the_table_and_nothing_is_dead(outcome: Any, verdict: str) -> None:
    assert await settle(outcome) == ([verdict], [])


@pytest.mark.parametrize(
    "error",
    [
        TooLarge("it", 2, 1),
        Undecodable("it", "noise"),
        SubjectMismatch("s", "another"),
        UnknownFields(["gaol"], ["goal"]),
    ],
)
async def test_message_that_is_wrong_for_ever_is_dead_and_never_again(error: Exception) -> None:
    verdicts, published = await settle(error)
    assert verdicts == ["never"]
    [(subject, data)] = published
    letter = envelope.decode(data).body
    assert (subject, letter.reason, letter.bytes, letter.sequence) == ("dead.executor", str(error), 8, 7)
    assert b"a secret" not in data


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (LogUnavailable("away"), "again in 1 s"),
        (StoreFull("DEAD", "full"), "again in 5 s"),
        (Refused("dead.executor", 1, "no"), "never"),
    ],
)
async def test_message_that_cannot_be_buried_now_is_buried_later(error: Exception, verdict: str) -> None:
    assert (await settle(Undecodable("it", "noise"), bus=DeadLetters(error)))[0] == [verdict]


async def test_missing_right_is_raised_and_no_verdict_is_given() -> None:
    delivery = NotedDelivery()
    with pytest.raises(NotPermitted):
        await settle(NotPermitted("executor", "publish x"), delivery=delivery)
    assert delivery.verdicts == []


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit()])
async def test_handler_that_is_ended_from_outside_leaves_its_message_alone(error: BaseException) -> None:
    delivery = NotedDelivery()
    with pytest.raises(type(error)):
        await settle(error, delivery=delivery)
    assert delivery.verdicts == []


@pytest.mark.parametrize("outcome", [Done(), Later(1), Undecodable("it", "noise"), ZeroDivisionError()])
async def test_verdict_that_cannot_be_sent_ends_nothing(outcome: Any) -> None:
    assert (await settle(outcome, delivery=NotedDelivery(lost=True)))[0] == []


async def test_message_that_fails_for_a_quarter_of_an_hour_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: Delivery) -> Verdict:
        raise ZeroDivisionError

    bus, delivery = DeadLetters(), NotedDelivery()
    loop = consuming._Loop(cast(Bus, bus), CONSUMER, fail)
    running = asyncio.get_running_loop()
    now = running.time()
    for minutes in (0, 7, 14.9, 15.1):
        monkeypatch.setattr(running, "time", lambda minutes=minutes: now + minutes * 60)
        await loop._settle(cast(Delivery, delivery))
    monkeypatch.undo()
    assert delivery.verdicts == ["again in 5 s"] * 3 + ["never"]
    assert len(bus.published) == 1


async def test_message_is_kept_by_heartbeats_exactly_while_its_handler_works() -> None:
    quick = consuming.Consumer(**{**_fields(CONSUMER), "ack_wait_s": 0.03})
    delivery = NotedDelivery()

    async def until_kept(_: Delivery) -> Verdict:
        while delivery.verdicts.count("working") < 3:
            await asyncio.sleep(0.001)
        return Done()

    await consuming._Loop(cast(Bus, DeadLetters()), quick, until_kept).settle(cast(Delivery, delivery))
    settled = [*delivery.verdicts]
    await asyncio.sleep(0.05)  # five heartbeats' time
    assert delivery.verdicts == settled == ["working"] * (len(settled) - 1) + ["ack"]
    assert len(settled) >= 4


def _fields(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


@pytest.mark.parametrize(
    "reply",
    [
        "$JS.ACK.REQUESTS.CANCEL.3.17.5.1700000000000000042.9",
        "$JS.ACK.hub.ACC.REQUESTS.CANCEL.3.17.5.1700000000000000042.9.x",
    ],
)
def test_delivery_reads_both_forms_of_the_acknowledgement_subject(reply: str) -> None:
    message = Msg(_client=cast(Any, None), subject="cancel.a", reply=reply, data=b"")
    delivery = Delivery(cast(Bus, None), message)
    assert (delivery.delivered, delivery.sequence, delivery.timestamp_ns) == (3, 17, 1_700_000_000_000_000_042)
