"""The consume loop while the server dies, hangs and comes back, and when it is itself told to end."""

import asyncio

import pytest
from integration.bus_rig import add_consumer, pending, provisioned, running, until, until_answered
from integration.conftest import Nats
from integration.test_bus_consume import CANCEL, QUICK, Handler, done, for_ever, raising

from apex_bus.connection import Bus
from apex_bus.consume import Delivery, Done, Verdict, consume, consume_batches
from apex_bus.errors import NotPermitted, Transient
from apex_bus.pull import EXPIRES_S, Pull
from apex_schemas.consumers import SHARED_CONSUMERS
from apex_schemas.errors import Undecodable

BATCHES = next(each for each in SHARED_CONSUMERS if each.name == "DECISION_LOG_DECISIONS")


async def test_loop_goes_on_within_seconds_of_a_server_that_was_killed_and_started_again(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        handler = Handler()
        async with running(consume(bus, CANCEL, handler)):
            await bus.publish("cancel.first", b"x")
            await until(lambda: len(handler.seen) == 1, "the loop is pulling")
            for n in range(3):
                await nats_server.kill()
                await nats_server.start()
                await until(lambda: bus.connected, "it is connected again")
                await bus.publish(f"cancel.{n}", b"x")
                took = await until(lambda n=n: f"cancel.{n}" in handler.seen, "it is handled")
                assert took < EXPIRES_S, "sooner than by the end of a pull"


async def test_message_in_hand_when_the_server_is_killed_is_handled_again_and_settled(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        released = asyncio.Event()

        async def hold() -> Verdict:
            await released.wait()
            return Done()

        handler = Handler(hold)
        async with running(consume(bus, CANCEL, handler, concurrency=2)):
            await bus.publish("cancel.a", b"x")
            await until(lambda: handler.seen == ["cancel.a"], "it is in hand")
            await nats_server.kill()
            await nats_server.start()
            released.set()

            async def nothing_left() -> bool:
                try:
                    return await pending(bus, CANCEL) == (0, 0)
                except Transient:
                    return False

            await until_answered(nothing_left, "it is settled", within_s=20)


async def test_messages_stored_while_the_loop_was_cut_off_come_without_an_ack_wait(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        handler = Handler()
        for n in range(20):
            await bus.publish(f"cancel.{n}", b"x")
        async with running(consume(bus, CANCEL, Handler(raising(Transient("later", delay_s=0.01))))):
            await nats_server.kill()
            await until(lambda: not bus.connected, "the loop is cut off")
        await nats_server.start()
        await until(lambda: bus.connected, "it is connected again")
        async with running(consume(bus, CANCEL, handler)):
            await until(lambda: len(set(handler.seen)) == 20, "all are handled", within_s=CANCEL.ack_wait_s + 5)


async def test_bad_message_that_cannot_be_buried_while_the_server_is_away_does_not_end_the_loop(
    nats_server: Nats, caplog: pytest.LogCaptureFixture
) -> None:
    async with provisioned(nats_server.url) as bus:
        began = asyncio.Event()

        async def bad_once_the_server_is_away() -> Verdict:
            began.set()
            await until(lambda: not bus.connected, "the server is away")
            raise Undecodable("it", "noise")

        handler = Handler(bad_once_the_server_is_away, raising(Undecodable("it", "noise")))
        async with running(consume(bus, CANCEL, handler)) as loops:
            await bus.publish("cancel.a", b"x")
            await began.wait()
            await nats_server.kill()
            await until(lambda: "not buried yet" in caplog.text, "burying has failed")
            await nats_server.start()

            async def buried() -> bool:
                try:
                    return await bus.get("DEAD", "dead.executor") is not None
                except Transient:
                    return False

            await until_answered(buried, "it is dead", within_s=20)
            assert not loops[0].done()


async def test_loop_that_is_cancelled_gives_back_at_once_what_was_delivered_and_not_looked_at(
    nats_server: Nats,
) -> None:
    async with provisioned(nats_server.url) as bus:
        for n in range(200):
            await bus.publish(f"cancel.{n}", b"x" * 20_000)
        async with Pull(bus, CANCEL) as pull:
            assert await pull.next(200) is not None  # the others are in the socket, in the client or on their way
        handler = Handler()
        async with running(consume(bus, CANCEL, handler, concurrency=50)):
            took = await until(lambda: len(set(handler.seen)) == 199, "the others are handled")
        assert took < CANCEL.ack_wait_s, "sooner than the ack wait"


async def test_batch_that_is_cancelled_is_given_back_at_once(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        for n in range(300):
            await bus.publish(f"decision.t.0.{n}", b"x")
        seen: list[int] = []

        async def never(deliveries: list[Delivery]) -> None:
            seen.extend(delivery.sequence for delivery in deliveries)
            await asyncio.Event().wait()

        async with running(consume_batches(bus, BATCHES, never, batch=100)):
            await until(lambda: len(seen) == 100, "a batch is in hand")
        again: set[int] = set()

        async def note(deliveries: list[Delivery]) -> None:
            again.update(delivery.sequence for delivery in deliveries)

        async with running(consume_batches(bus, BATCHES, note, batch=100)):
            took = await until(lambda: len(again) == 300, "all are handled")
        assert took < BATCHES.ack_wait_s, "sooner than the ack wait"


async def test_batch_is_kept_while_it_cannot_be_committed_and_acknowledged_once_it_is(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        tries: list[list[int]] = []

        async def commit(deliveries: list[Delivery]) -> None:
            tries.append([delivery.sequence for delivery in deliveries])
            if len(tries) < 4:
                raise (Transient("the database is away") if len(tries) % 2 else ZeroDivisionError())

        for n in range(10):
            await bus.publish(f"decision.t.0.{n}", b"x")
        async with running(consume_batches(bus, BATCHES, commit, batch=10)):

            async def acknowledged() -> bool:
                return await pending(bus, BATCHES) == (0, 0)

            await until_answered(acknowledged, "all are acknowledged")
        assert tries == [list(range(1, 11))] * 4


async def test_batch_whose_commit_takes_longer_than_the_ack_wait_is_not_delivered_again(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        await add_consumer(bus, QUICK)
        batches: list[int] = []

        async def slow(deliveries: list[Delivery]) -> None:
            batches.extend(delivery.sequence for delivery in deliveries)
            await asyncio.sleep(QUICK.ack_wait_s * 3)

        async with running(consume_batches(bus, QUICK, slow, batch=1), consume_batches(bus, QUICK, slow, batch=1)):
            await bus.publish("approve.a.0", b"x")

            async def acknowledged() -> bool:
                return await pending(bus, QUICK) == (0, 0)

            await until_answered(acknowledged, "it is acknowledged")
        assert batches == [1]


async def test_loop_whose_handler_is_not_permitted_ends_and_leaves_no_task_behind(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        before = asyncio.all_tasks()
        await bus.publish("cancel.a", b"x")
        await bus.publish("cancel.b", b"x")
        handler = Handler(for_ever, raising(NotPermitted("executor", "publish x")))
        with pytest.raises(ExceptionGroup) as group:
            await asyncio.wait_for(consume(bus, CANCEL, handler, concurrency=2), 20)
        assert group.group_contains(NotPermitted, depth=1)
        await until(lambda: asyncio.all_tasks() <= before, "its tasks have ended")
        bus.reconnected()  # calls whoever still waits for a connection: nobody of that loop


async def test_loops_that_end_at_the_moment_a_message_arrives_do_end(nats_server: Nats) -> None:
    """A cancellation that meets an answer on its way must not get lost."""
    async with provisioned(nats_server.url) as bus:
        for n in range(60):
            loop = asyncio.create_task(consume(bus, CANCEL, Handler(done)))
            await asyncio.sleep(0.005)
            await bus.publish(f"cancel.{n}", b"x")
            for _ in range(n % 12):
                await asyncio.sleep(0)
            loop.cancel()
            ended, _ = await asyncio.wait({loop}, timeout=20)
            assert ended, f"it goes on, in round {n}"


async def test_call_whose_answer_and_cancellation_come_together_is_cancelled(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        swallowed = 0
        for n in range(200):
            task = asyncio.create_task(_asks_for_ever(bus))
            await asyncio.sleep(0.002)
            for _ in range(n % 7):
                await asyncio.sleep(0)
            task.cancel()
            ended, _ = await asyncio.wait({task}, timeout=10)
            swallowed += not ended
            task.cancel()
        assert swallowed == 0


async def _asks_for_ever(bus: Bus) -> None:
    while True:
        await bus.get("TASKS", "task.none")
