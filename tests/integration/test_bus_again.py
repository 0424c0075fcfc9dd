"""A dead letter that the operator hands back is handled once more by the loop that gave it up, on a real server."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable

import msgspec
import pytest
from integration.bus_rig import end, provisioned, running, slot, until, until_answered
from integration.conftest import Nats
from integration.test_bus_consume import CANCEL, Handler, done, later, raising

from apex_bus import again
from apex_bus.connection import Bus, flushed
from apex_bus.consume import Delivery, Verdict, bury, consume, consume_batches
from apex_bus.errors import LogUnavailable, Transient
from apex_bus.tasklog import TaskLog
from apex_schemas import envelope, subjects
from apex_schemas.consumers import SHARED_CONSUMERS, Consumer
from apex_schemas.devices import DeadLetter, HandledAgain
from apex_schemas.errors import Undecodable
from apex_schemas.ids import new_task_id

BATCHES = next(each for each in SHARED_CONSUMERS if each.name == "DECISION_LOG_DECISIONS")
FAULT = "a fault of the program, of which the log of executor has the traceback"
POISON = raising(Undecodable("it", "noise"))


async def letter_about(bus: Bus, subject: str) -> DeadLetter:
    """The latest dead letter, once it is about this subject."""
    found: list[DeadLetter] = []

    async def written() -> bool:
        with contextlib.suppress(Transient):
            stored = await bus.get("DEAD", "dead.*")
            found[:] = [envelope.decode(stored.data).body] if stored else []
        return bool(found) and found[0].subject == subject

    await until_answered(written, f"a letter about {subject}", within_s=20)
    return found[0]


async def letters(bus: Bus) -> int:
    return (await bus.api("STREAM.INFO.DEAD"))["state"]["messages"]


async def hand_back(bus: Bus, letter: DeadLetter, consumer: Consumer = CANCEL, *, within_s: float = 20) -> HandledAgain:
    subject = subjects.again(consumer.identity, consumer.name)
    reply = await bus.request(subject, msgspec.json.encode(letter), timeout_s=within_s)
    return msgspec.json.decode(reply, type=HandledAgain)


@contextlib.asynccontextmanager
async def dead(
    nats_server: Nats, *then: Callable[[], Awaitable[Verdict]], subject: str = "cancel.a", **headers: str
) -> AsyncGenerator[tuple[Bus, Handler, DeadLetter]]:
    """A message whose handler has buried it, and does what is given when it comes again."""
    async with provisioned(nats_server.url) as bus:
        handler = Handler(POISON, *then)
        async with running(consume(bus, CANCEL, handler)):
            await bus.publish(subject, b"x", headers=headers or None)
            yield bus, handler, await letter_about(bus, subject)


async def test_message_whose_cause_of_failure_was_mended_is_handled(nats_server: Nats) -> None:
    async with dead(nats_server, done) as (bus, handler, letter):
        assert await hand_back(bus, letter) == HandledAgain(outcome="handled")
        assert handler.seen == ["cancel.a"] * 2


async def test_poison_fails_again_with_its_reason_and_gets_no_second_letter(nats_server: Nats) -> None:
    async with dead(nats_server, POISON) as (bus, handler, letter):
        for _ in range(2):
            answer = await hand_back(bus, letter)
            assert (answer.outcome, answer.reason) == ("failed", letter.reason)
        assert len(handler.seen) == 3
        assert await letters(bus) == 1


async def test_bug_is_told_by_its_name_without_waiting_for_it_to_be_mended(nats_server: Nats) -> None:
    async with dead(nats_server, raising(ZeroDivisionError("a secret"))) as (bus, _, letter):
        answer = await hand_back(bus, letter)
        assert (answer.outcome, answer.reason) == ("failed", FAULT)


async def test_message_that_still_waits_is_gone_on_with_and_is_in_hand_once_however_often_it_is_asked_for(
    nats_server: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again, "ANSWER_SECONDS", 0.3)
    free, at_once, most = asyncio.Event(), 0, 0

    async def until_free() -> Verdict:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        if not free.is_set():
            raise LogUnavailable("the database is away")
        return await done()

    monkeypatch.setattr(LogUnavailable, "delay_s", 0.05)
    async with dead(nats_server, later, until_free) as (bus, handler, letter):
        answers = await asyncio.gather(*(hand_back(bus, letter) for _ in range(5)))
        assert {each.outcome for each in answers} == {"waiting"}
        assert (await hand_back(bus, letter)).reason == "the database is away"
        free.set()
        seen = len(handler.seen)
        await until(lambda: len(handler.seen) > seen, "it is gone on with, though nobody asks")
        assert most == 1


async def test_one_of_several_messages_on_a_subject_is_read_by_its_place(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        given: list[bytes] = []

        async def refuse_the_second(delivery: Delivery) -> Verdict:
            given.append(delivery.data)
            return await (POISON if delivery.data == b"2" else done)()

        async with running(consume(bus, CANCEL, refuse_the_second)):
            for data in (b"1", b"2", b"3"):
                await bus.publish("cancel.a", data)
            letter = await letter_about(bus, "cancel.a")
            await until(lambda: len(given) == 3, "all are handled")
            assert (await hand_back(bus, letter)).outcome == "failed"
        assert given == [b"1", b"2", b"3", b"2"]


async def test_message_of_a_batch_is_committed_alone_and_its_refusal_told(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        given: list[list[tuple[str, bytes, int, int, dict[str, str]]]] = []
        mended = False

        async def record(deliveries: list[Delivery]) -> None:
            given.append([(d.subject, d.data, d.sequence, d.timestamp_ns, dict(d.headers)) for d in deliveries])
            for delivery in deliveries:
                if delivery.subject == "decision.t.0.1" and not mended:
                    await bury(bus, delivery, "a constraint", stream="DECISIONS")

        async with running(consume_batches(bus, BATCHES, record, batch=3)):
            for n in range(3):
                await bus.publish(f"decision.t.0.{n}", b"x", headers={"Mine": str(n)})
            letter = await letter_about(bus, "decision.t.0.1")
            answer = await hand_back(bus, letter, BATCHES)
            assert (answer.outcome, answer.reason) == ("failed", "a constraint")
            mended = True
            assert (await hand_back(bus, letter, BATCHES)).outcome == "handled"
        first = next(each for batch in given for each in batch if each[0] == "decision.t.0.1")
        assert given[-2:] == [[first], [first]]
        assert first[4] == {"Mine": "1"}


async def test_message_that_its_stream_holds_no_more_is_gone(nats_server: Nats) -> None:
    async with dead(nats_server, done) as (bus, handler, letter):
        other = msgspec.structs.replace(letter, sha256="0" * 64)
        assert (await hand_back(bus, other)).outcome == "gone", "another message is not what the letter is about"
        await bus.api("STREAM.PURGE.REQUESTS", json.dumps({}).encode())
        assert (await hand_back(bus, letter)).outcome == "gone"
        assert len(handler.seen) == 1


async def test_letter_of_another_consumer_or_none_at_all_is_refused(nats_server: Nats) -> None:
    async with dead(nats_server, done) as (bus, handler, letter):
        for other in ({"subject": "request.any"}, {"stream": "TASKS"}, {"sequence": None}):
            answer = await hand_back(bus, msgspec.structs.replace(letter, **other))
            assert (answer.outcome, "not CANCEL's to handle" in (answer.reason or "")) == ("failed", True)
        subject = subjects.again(CANCEL.identity, CANCEL.name)
        answer = msgspec.json.decode(await bus.request(subject, b"noise", timeout_s=5), type=HandledAgain)
        assert answer.outcome == "failed"
        assert len(handler.seen) == 1


async def test_message_that_the_server_was_made_to_put_there_is_not_handled(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        handler = Handler(done)
        async with running(consume(bus, CANCEL, handler)):
            await bus.publish("cancel.a", b"x", headers={"Nats-Sequence": "7"})
            letter = await letter_about(bus, "cancel.a")
            assert (await hand_back(bus, letter)).outcome == "failed"
        assert handler.seen == []


async def test_task_that_has_ended_meanwhile_is_named_with_its_end(nats_server: Nats) -> None:
    task = new_task_id()
    async with dead(nats_server, done, subject=f"cancel.{task}") as (bus, _, letter):
        assert (await hand_back(bus, letter)).outcome == "handled"
        await TaskLog(bus).fill(slot("finished", None, task=task), end("failed"), attempt="a")
        answer = await hand_back(bus, letter)
        assert (answer.outcome, answer.end) == ("ended", f"task {task} failed")


async def test_question_whose_answer_would_go_to_a_stream_is_not_answered(nats_server: Nats) -> None:
    async with dead(nats_server, done) as (bus, handler, letter):
        subject = subjects.again(CANCEL.identity, CANCEL.name)
        await bus.client.publish(subject, msgspec.json.encode(letter), reply="request.any")
        await flushed(bus.client)
        assert (await hand_back(bus, letter)).outcome == "handled"
        assert await bus.get("REQUESTS", "request.any") is None
        assert len(handler.seen) == 2


async def test_letter_is_taken_back_after_the_server_was_killed_and_started_again(nats_server: Nats) -> None:
    async with dead(nats_server, done) as (bus, _, letter):
        await nats_server.kill()
        await nats_server.start()
        answers: list[HandledAgain] = []

        async def handled() -> bool:
            with contextlib.suppress(Transient):  # a question that went into the old connection is lost
                answers.append(await hand_back(bus, letter, within_s=2))
            return bool(answers) and answers[-1].outcome == "handled"

        await until_answered(handled, "an answer", within_s=60)
