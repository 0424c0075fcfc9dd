"""The consume loop on a real server: what becomes of a message, by its handler and by what happens to the server."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from integration.bus_rig import add_consumer, connected, pending, provisioned, running, until, until_answered
from integration.conftest import Nats

from apex_bus import consume as consuming
from apex_bus.connection import Bus
from apex_bus.consume import Delivery, Done, Later, Verdict, consume
from apex_bus.errors import Drift, Transient
from apex_schemas import envelope
from apex_schemas.consumers import SHARED_CONSUMERS, Consumer
from apex_schemas.devices import DeadLetter
from apex_schemas.errors import Undecodable, UnknownKind
from apex_schemas.subjects import Identity

CANCEL = next(each for each in SHARED_CONSUMERS if each.name == "CANCEL")
QUICK = Consumer(name="QUICK", stream="REQUESTS", filters=("approve.*.*",), identity=Identity.EXECUTOR, ack_wait_s=0.6)


class Handler:
    """Notes what it is given, and then does what the test wants done with the n-th one (from 0; the last repeats)."""

    def __init__(self, *behaviours: Callable[[], Awaitable[Verdict]]) -> None:
        self.seen: list[str] = []
        self.delivered: list[int] = []
        self._behaviours = behaviours or (done,)

    async def __call__(self, delivery: Delivery) -> Verdict:
        self.seen.append(delivery.subject)
        self.delivered.append(delivery.delivered)
        return await self._behaviours[min(len(self.seen), len(self._behaviours)) - 1]()


async def done() -> Verdict:
    return Done()


async def for_ever() -> Verdict:
    await asyncio.Event().wait()
    raise AssertionError


def raising(error: Exception) -> Callable[[], Awaitable[Verdict]]:
    async def behaviour() -> Verdict:
        raise error

    return behaviour


async def settled(bus: Bus, consumer: Consumer = CANCEL) -> None:
    async def nothing_left() -> bool:
        return await pending(bus, consumer) == (0, 0)

    await until_answered(nothing_left, f"{consumer.name} has nothing left")


async def test_message_that_is_done_is_acknowledged_and_not_seen_again(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        handler = Handler()
        async with running(consume(bus, CANCEL, handler)):
            await bus.publish("cancel.a", b"x")
            await settled(bus)
        assert handler.seen == ["cancel.a"]


@pytest.mark.parametrize("first", [raising(Transient("not yet", delay_s=0.05)), lambda: later()])
async def test_message_that_waits_is_delivered_again_after_its_delay(
    nats_server: Nats, first: Callable[[], Awaitable[Verdict]]
) -> None:
    async with provisioned(nats_server.url) as bus:
        handler = Handler(first, done)
        async with running(consume(bus, CANCEL, handler)):
            await bus.publish("cancel.a", b"x")
            await settled(bus)
        assert handler.seen == ["cancel.a", "cancel.a"]
        assert handler.delivered == [1, 2]


async def later() -> Verdict:
    return Later(0.05)


async def test_message_that_cannot_be_read_is_dead_without_its_content_and_never_again(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        handler = Handler(raising(Undecodable("it", "noise")))
        async with running(consume(bus, CANCEL, handler)):
            await bus.publish("cancel.a", b"a secret")
            await settled(bus)
        stored = await bus.get("DEAD", "dead.executor")
        assert stored is not None
        letter = envelope.decode(stored.data).body
        assert isinstance(letter, DeadLetter)
        assert (letter.subject, letter.bytes, letter.stream) == ("cancel.a", 8, "REQUESTS")
        assert b"a secret" not in stored.data
        assert handler.seen == ["cancel.a"]


async def test_message_of_an_unknown_kind_is_acknowledged_and_not_dead(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        async with running(consume(bus, CANCEL, Handler(raising(UnknownKind("new.v9"))))):
            await bus.publish("cancel.a", b"x")
            await settled(bus)
        assert await bus.get("DEAD", "dead.executor") is None


async def test_handler_with_a_bug_gets_the_message_again_and_the_loop_goes_on(
    nats_server: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming, "_BUG_DELAY_S", 0.05)
    async with provisioned(nats_server.url) as bus:
        handler = Handler(raising(ZeroDivisionError()), done)
        async with running(consume(bus, CANCEL, handler)):
            await bus.publish("cancel.a", b"x")
            await settled(bus)
        assert handler.seen == ["cancel.a", "cancel.a"]


async def test_message_that_fails_for_too_long_is_dead(nats_server: Nats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consuming, "_BUG_DELAY_S", 0.02)
    monkeypatch.setattr(consuming, "POISON_SECONDS", 0.2)
    async with provisioned(nats_server.url) as bus:
        async with running(consume(bus, CANCEL, Handler(raising(ZeroDivisionError())))):
            await bus.publish("cancel.a", b"x")
            await settled(bus)
        stored = await bus.get("DEAD", "dead.executor")
        assert stored is not None
        reason = envelope.decode(stored.data).body.reason
        assert reason.startswith("a fault of the program for ")
        assert reason.endswith(", of which the log of executor has the traceback")


async def test_message_of_a_handler_that_is_cancelled_goes_to_another(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus, connected(nats_server.url) as second:
        await add_consumer(bus, QUICK)
        first, other = Handler(for_ever), Handler()
        async with running(consume(bus, QUICK, first)):
            await bus.publish("approve.a.0", b"x")
            await until(lambda: first.seen == ["approve.a.0"], "it is in hand")
        async with running(consume(second, QUICK, other)):
            await until(lambda: other.seen == ["approve.a.0"], "the other has it")
            await settled(bus, QUICK)


async def test_message_of_a_handler_that_takes_longer_than_the_ack_wait_stays_its_own(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus, connected(nats_server.url) as second:
        await add_consumer(bus, QUICK)

        async def slow() -> Verdict:
            await asyncio.sleep(QUICK.ack_wait_s * 4)
            return Done()

        first, other = Handler(slow), Handler(slow)
        async with running(consume(bus, QUICK, first), consume(second, QUICK, other)):
            await bus.publish("approve.a.0", b"x")
            await settled(bus, QUICK)
        assert sorted(first.seen + other.seen) == ["approve.a.0"]


async def test_as_many_messages_as_asked_for_are_handled_at_a_time(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        at_once, most = 0, 0

        async def count(_: Delivery) -> Verdict:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.02)
            at_once -= 1
            return Done()

        async with running(consume(bus, CANCEL, count, concurrency=4)):
            for n in range(40):
                await bus.publish(f"cancel.{n}", b"x")
            await settled(bus)
        assert most == 4


async def test_consumer_that_does_not_exist_is_drift_and_not_silence(nats_server: Nats) -> None:
    missing = Consumer(name="MISSING", stream="REQUESTS", filters=("cancel.*",), identity=Identity.EXECUTOR)
    async with provisioned(nats_server.url) as bus:
        with pytest.raises(Drift, match="MISSING"):
            await consume(bus, missing, Handler())


async def test_consumer_that_is_deleted_meanwhile_ends_the_loop_with_drift(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        handler = Handler()
        loop = asyncio.create_task(consume(bus, CANCEL, handler))
        await bus.publish("cancel.a", b"x")
        await until(lambda: handler.seen == ["cancel.a"], "the loop is pulling")
        await bus.api("CONSUMER.DELETE.REQUESTS.CANCEL")
        with pytest.raises(ExceptionGroup) as group:
            await asyncio.wait_for(loop, 20)
        assert group.group_contains(Drift)


@pytest.mark.parametrize("status", ["100", "404", "409", "503"])
async def test_message_that_poses_as_a_status_of_the_server_is_handled_like_any_other(
    nats_server: Nats, status: str
) -> None:
    async with provisioned(nats_server.url) as bus:
        handler = Handler()
        async with running(consume(bus, CANCEL, handler)) as loops:
            await bus.publish("cancel.a", b"", headers={"Status": status, "Description": "Consumer Deleted"})
            await settled(bus)
            assert not loops[0].done()
        assert handler.seen == ["cancel.a"]


async def test_age_of_a_message_is_by_the_servers_clock_when_ours_is_five_minutes_off(
    nats_server: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = time.time_ns
    for off_s in (-300, 300):
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda off_s=off_s: truth() + off_s * 1_000_000_000)
            ages: list[float] = []

            async def note(delivery: Delivery, ages: list[float] = ages) -> Verdict:
                ages.append(delivery.age_s)
                return Done()

            async with provisioned(nats_server.url) as bus, running(consume(bus, CANCEL, note)):
                await bus.publish("cancel.a", b"x")
                await settled(bus)
            assert ages[0] == pytest.approx(0, abs=2)
