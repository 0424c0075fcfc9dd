"""The one consume loop, and the one table of what becomes of a message whose handler fails.

| the handler | becomes of the message |
|---|---|
| returns Done | acknowledged |
| returns Later | delivered again after its delay |
| UnknownKind | counted, acknowledged: a newer version's message is none of our business |
| LogTorn, Transient | delivered again after a delay |
| other WireError | DEAD, never again |
| any other error | traceback; delivered again; DEAD after a quarter of an hour of failing |
| is cancelled | nothing: somebody will get it again |

A task is failed by handlers, for a permanent error, or by the watchdog, for time; never here and never by a count.
"""

import asyncio
import hashlib
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import nats.errors
from nats.aio.msg import Msg

from apex_bus.connection import Bus, Refused
from apex_bus.errors import NotPermitted, Transient
from apex_bus.pull import Pull
from apex_bus.tracing import arriving
from apex_schemas import envelope, subjects
from apex_schemas.consumers import Consumer
from apex_schemas.devices import DeadLetter
from apex_schemas.errors import LogTorn, SubjectMismatch, UnknownKind, WireError
from apex_schemas.ids import new_attempt

log = logging.getLogger(__name__)

POISON_SECONDS: Final = 900.0
_BUG_DELAY_S: Final = 5.0
_WATCHED: Final = 10_000
_COPIED: Final = "Nats-Sequence"
"""A header that the server puts on what it reads for a client, whose reply subject may have been one of a stream."""

counters: Counter[str] = Counter()
"""Messages by fate, for STATS: handled, later, skipped, dead, bugs."""


class Done(NamedTuple):
    """The message has had its effect, or needs none any more."""


class Later(NamedTuple):
    """Not yet: deliver it again in `delay_s` seconds."""

    delay_s: float


Verdict = Done | Later


class Delivery:
    """A message as a handler gets it. Delivered at least once; only slots tell whether its effect took place."""

    def __init__(self, bus: Bus, msg: Msg) -> None:
        self._bus, self._msg = bus, msg
        self.subject = msg.subject
        self.data = msg.data
        self.headers = msg.headers or {}
        # $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<ns>.<pending>, or with a domain and an
        # account behind ACK: counted from the end, both forms read alike.
        tokens = msg.reply.split(".")
        shift = 2 if len(tokens) >= 11 else 0
        self.sequence = int(tokens[5 + shift])
        self.timestamp_ns = int(tokens[7 + shift])
        self.delivered = int(tokens[4 + shift])

    @property
    def age_s(self) -> float:
        """Seconds since it was stored, by the server's clock."""
        return self._bus.clock.age_s(self.timestamp_ns, time.time_ns())

    async def working(self) -> None:
        await self._msg.in_progress()

    async def ack(self) -> None:
        await self._msg.ack()

    async def again(self, delay_s: float) -> None:
        await self._msg.nak(delay=max(0.01, delay_s))

    async def never(self) -> None:
        await self._msg.term()


Handler = Callable[[Delivery], Awaitable[Verdict]]


async def consume(bus: Bus, consumer: Consumer, handle: Handler, *, concurrency: int = 1) -> None:
    """Handle messages of a consumer until cancelled, `concurrency` at a time."""
    loop = _Loop(bus, consumer, handle)
    free = asyncio.Semaphore(concurrency)
    async with Pull(bus, consumer) as pull, asyncio.TaskGroup() as group:
        while True:
            await free.acquire()
            msg = await pull.next(1 if concurrency == 1 else 1 + _free(free))
            if msg is None:
                free.release()
                continue
            task = group.create_task(loop.settle(Delivery(bus, msg)))
            task.add_done_callback(lambda _: free.release())


def _free(semaphore: asyncio.Semaphore) -> int:
    return semaphore._value  # pyright: ignore[reportPrivateUsage]


class _Loop:
    def __init__(self, bus: Bus, consumer: Consumer, handle: Handler) -> None:
        self._bus, self._consumer, self._handle = bus, consumer, handle
        self._failing: OrderedDict[int, float] = OrderedDict()

    async def settle(self, delivery: Delivery) -> None:
        """Run the handler with a heartbeat, and do to the message what the table says."""
        heartbeat = asyncio.create_task(_beat(self._consumer, [delivery]))
        try:
            with arriving(delivery.subject, delivery.headers):
                await self._settle(delivery)
        except (nats.errors.Error, TimeoutError) as error:
            # The verdict could not be sent: the message will come again, and its slot will tell.
            log.warning("verdict on %s was not sent: %s", delivery.subject, error)
        finally:
            heartbeat.cancel()

    async def _settle(self, delivery: Delivery) -> None:
        try:
            if _COPIED in delivery.headers:
                raise SubjectMismatch(delivery.subject, "another place: the server read it there for somebody")
            verdict = await self._handle(delivery)
        except UnknownKind as error:
            counters["skipped"] += 1
            log.warning("%s skipped: %s", delivery.subject, error)
            await delivery.ack()
        except (LogTorn, Transient) as error:
            counters["later"] += 1
            log.info("%s later: %s", delivery.subject, error)
            await delivery.again(error.delay_s if isinstance(error, Transient) else 0.2)
        except NotPermitted:
            raise
        except WireError as error:
            await self._bury(delivery, str(error))
        except Exception as error:  # noqa: BLE001  (logged with its traceback, counted, tried again)
            await self._failed(delivery, error)
        else:
            self._failing.pop(delivery.sequence, None)
            match verdict:
                case Done():
                    counters["handled"] += 1
                    await delivery.ack()
                case Later(delay_s):
                    counters["later"] += 1
                    await delivery.again(delay_s)

    async def _failed(self, delivery: Delivery, error: Exception) -> None:
        counters["bugs"] += 1
        log.exception("handler of %s failed on %s", self._consumer.name, delivery.subject)
        now = asyncio.get_running_loop().time()
        first = self._failing.setdefault(delivery.sequence, now)
        while len(self._failing) > _WATCHED:
            self._failing.popitem(last=False)
        if now - first > POISON_SECONDS:
            await self._bury(delivery, f"failing for {now - first:.0f} s: {type(error).__name__}")
        else:
            await delivery.again(_BUG_DELAY_S)

    async def _bury(self, delivery: Delivery, reason: str) -> None:
        try:
            await bury(self._bus, delivery, reason, stream=self._consumer.stream)
        except Transient as error:
            log.warning("%s is not buried yet: %s", delivery.subject, error)
            await delivery.again(error.delay_s)
        else:
            await delivery.never()


async def _beat(consumer: Consumer, deliveries: list[Delivery]) -> None:
    while True:
        await asyncio.sleep(consumer.ack_wait_s / 3)
        for delivery in deliveries:
            try:
                await delivery.working()
            except nats.errors.Error as error:
                log.info("heartbeat of %s was not sent: %s", delivery.subject, error)


async def bury(bus: Bus, delivery: Delivery, reason: str, *, stream: str) -> None:
    """Record in DEAD that a message could not be handled: its reason, place, size and hash, never its content."""
    counters["dead"] += 1
    log.error("%s is dead: %s", delivery.subject, reason)
    letter = DeadLetter(
        service=bus.identity,
        reason=reason[:1_000],
        subject=delivery.subject,
        bytes=len(delivery.data),
        sha256=hashlib.sha256(delivery.data).hexdigest(),
        stream=stream,
        sequence=delivery.sequence,
    )
    headers = {"Nats-Msg-Id": f"dead:{bus.identity}:{stream}:{delivery.sequence}"}
    try:
        await bus.publish(subjects.dead(bus.identity), envelope.encode(letter, attempt=new_attempt()), headers=headers)
    except Refused as error:
        log.error("the dead letter of %s was refused: %s", delivery.subject, error)


BatchHandler = Callable[[list[Delivery]], Awaitable[None]]


async def consume_batches(
    bus: Bus, consumer: Consumer, handle: BatchHandler, *, batch: int = 100, wait_s: float = 0.1
) -> None:
    """Handle messages by the batch until cancelled: `handle` commits, then all of them are acknowledged.

    A Transient error keeps the batch and pauses pulling, with growing delay, until it goes through; meanwhile the
    messages are kept alive. Any other error is for `handle` to sort out by message; here it is a bug like any other.
    When cancelled, it gives back what it has in hand: the next one need not wait for the ack wait of a batch.
    """
    async with Pull(bus, consumer) as pull:
        while True:
            msg = await pull.next(batch)
            if msg is None:
                continue
            deliveries = [Delivery(bus, msg)]
            heartbeat = asyncio.create_task(_beat(consumer, deliveries))
            try:
                while len(deliveries) < batch and (msg := await pull.next(batch - len(deliveries), wait_s=wait_s)):
                    deliveries.append(Delivery(bus, msg))
                await _commit(consumer, handle, deliveries)
                await _each(deliveries, Delivery.ack)
            except asyncio.CancelledError:
                await _each(deliveries, lambda delivery: delivery.again(0.05))
                raise
            finally:
                heartbeat.cancel()
            counters["handled"] += len(deliveries)


async def _each(deliveries: list[Delivery], verdict: Callable[[Delivery], Awaitable[None]]) -> None:
    try:
        for delivery in deliveries:
            await verdict(delivery)
    except nats.errors.Error as error:
        log.warning("verdicts from %s on were not sent: %s", deliveries[0].subject, error)


async def _commit(consumer: Consumer, handle: BatchHandler, deliveries: list[Delivery]) -> None:
    delay_s = 0.25
    while True:
        try:
            await handle(deliveries)
            return
        except Transient as error:
            log.warning("%s waits %.1f s: %s", consumer.name, delay_s, error)
        except NotPermitted:
            raise
        except Exception:
            counters["bugs"] += 1
            log.exception("batch of %s failed", consumer.name)
        await asyncio.sleep(delay_s)
        delay_s = min(delay_s * 2, 15.0)
