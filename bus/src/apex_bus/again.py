"""Dead letters handled again: the operator hands a letter back to the service that wrote it.

Consumes `again.<service>.<consumer>`, a DeadLetter in JSON; answers with a HandledAgain. The message is read again
from its stream and given to the handler of its consumer as when it was delivered: what it has done already stands in
slots that are written once, so nothing is done twice. Owns only what is in hand: if the process ends, ask again.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn, assert_never

import msgspec
import nats.errors
from nats.aio.msg import Msg

from apex_bus.connection import Bus, Stored
from apex_bus.copies import COPIED
from apex_bus.delivery import Delivery, Done, Later, Redelivery, counters
from apex_bus.errors import Transient
from apex_bus.fate import Dead, Failing, Fate, Skipped, Waits
from apex_bus.micro import to_an_inbox
from apex_bus.tasklog import TaskLog
from apex_schemas import subjects
from apex_schemas.consumers import Consumer, takes
from apex_schemas.devices import DeadLetter, HandledAgain
from apex_schemas.edge import task_of

log = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 10.0
"""How long the asker waits for an outcome before hearing that it is still at work."""

Once = Callable[[Delivery], Awaitable[Fate]]


class Again:
    """What a consumer's loop does for the operator beside its own work, one message at a time.

    `records` is said of a consumer that keeps a record of its messages, to which the end of a task means nothing.
    """

    def __init__(self, bus: Bus, consumer: Consumer, once: Once, *, records: bool = False) -> None:
        self._bus, self._consumer, self._once, self._records = bus, consumer, once, records
        self._tasklog = TaskLog(bus)
        self._one_at_a_time = asyncio.Lock()
        self._running: dict[int, asyncio.Task[HandledAgain]] = {}
        self._why: dict[int, str] = {}

    async def serve(self) -> NoReturn:
        """Answer until cancelled."""
        subject = subjects.again(self._consumer.identity, self._consumer.name)
        async with asyncio.TaskGroup() as group:

            async def asked(msg: Msg) -> None:
                if to_an_inbox(msg):
                    group.create_task(self._answer(msg, group))

            subscription = await self._bus.client.subscribe(  # pyright: ignore[reportUnknownMemberType]
                subject, queue=self._consumer.name, cb=asked
            )
            try:
                await asyncio.Event().wait()
            finally:
                if not self._bus.client.is_closed:
                    await subscription.unsubscribe()
        raise AssertionError("unreachable")

    async def _answer(self, msg: Msg, group: asyncio.TaskGroup) -> None:
        answer = await self._outcome(msg.data, group)
        try:
            await msg.respond(msgspec.json.encode(answer))
        except nats.errors.Error as error:
            log.warning("what came of %s could not be told: %s", msg.subject, error)

    async def _outcome(self, data: bytes, group: asyncio.TaskGroup) -> HandledAgain:
        try:
            letter = msgspec.json.decode(data, type=DeadLetter)
        except (msgspec.MsgspecError, RecursionError) as error:
            return HandledAgain(outcome="failed", reason=f"this is no dead letter: {error}")
        sequence = letter.sequence
        if sequence is None or letter.stream != self._consumer.stream or not takes(self._consumer, letter.subject):
            return HandledAgain(outcome="failed", reason=f"{letter.subject} is not {self._consumer.name}'s to handle")
        running = self._running.get(sequence)
        if running is None:
            running = self._running[sequence] = group.create_task(self._again(letter, sequence))
            running.add_done_callback(lambda _: self._forget(sequence))
        done, _ = await asyncio.wait({running}, timeout=ANSWER_SECONDS)
        return running.result() if done else HandledAgain(outcome="waiting", reason=self._why.get(sequence))

    def _forget(self, sequence: int) -> None:
        self._running.pop(sequence, None)
        self._why.pop(sequence, None)

    async def _again(self, letter: DeadLetter, sequence: int) -> HandledAgain:
        """Handle the message until it is done with, or fails."""
        counters["again"] += 1
        try:
            stored = await self._read(letter.subject, sequence)
            if stored is not None and COPIED in stored.headers:
                return HandledAgain(outcome="failed", reason="the server put it there: it is nobody's word")
            if stored is None or hashlib.sha256(stored.data).hexdigest() != letter.sha256:
                reason = f"{letter.stream} does not hold it any more"
                return HandledAgain(outcome="gone", reason=reason)
            delivery = Redelivery(self._bus, stored)
            before = await self._end_of_task(delivery)
            failed = await self._until_done(delivery, sequence)
            after = before or await self._end_of_task(delivery)
        except Transient as error:
            return HandledAgain(outcome="failed", reason=str(error))
        log.info("%s was handled again: %s", delivery.subject, failed or "done")
        if failed is not None:
            return HandledAgain(outcome="failed", reason=failed, end=after)
        ended = before is not None and not delivery.subject.endswith(".finished")
        return HandledAgain(outcome="ended" if ended else "handled", end=after)

    async def _until_done(self, delivery: Redelivery, sequence: int) -> str | None:
        """Why it failed; None when it did not."""
        while True:
            async with self._one_at_a_time:
                fate = await self._once(delivery)
            match fate:
                case Done():
                    return delivery.refused
                case Later(delay_s):
                    await asyncio.sleep(delay_s)
                case Waits(reason, delay_s):
                    self._why[sequence] = reason
                    await asyncio.sleep(delay_s)
                case Skipped(reason) | Dead(reason):
                    return reason
                case Failing():
                    return f"a fault of the program, of which the log of {self._consumer.identity} has the traceback"
                case _:
                    assert_never(fate)

    async def _read(self, subject: str, sequence: int) -> Stored | None:
        """By its subject where that holds one message for ever, else by its sequence."""
        stream = self._consumer.stream
        if stream == "REQUESTS":
            return await self._bus.get_at(stream, sequence)
        stored = await self._bus.get(stream, subject)
        return stored if stored is not None and stored.sequence == sequence else None

    async def _end_of_task(self, delivery: Delivery) -> str | None:
        """How the message's task has ended, in words; None while it has not, or where that means nothing."""
        task = None if self._records else _task_of(delivery)
        entry = None if task is None else await self._tasklog.ended(task)
        if entry is None:
            return None
        why = entry.body.failure_reason or entry.body.reason
        return f"task {task} {entry.body.status}: {why}" if why else f"task {task} {entry.body.status}"


def _task_of(delivery: Delivery) -> str | None:
    match delivery.subject.split("."):
        case ["task", _, task, *_] | ["cancel", task]:
            return task
        case ["request", *_]:
            return task_of(delivery.data, timestamp_ns=delivery.timestamp_ns, sequence=delivery.sequence)
        case _:
            return None
