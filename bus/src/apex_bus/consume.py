"""The one consume loop, and what becomes of a message by the fate that its handler gives it (`fate`).

Done is acknowledged, and so is what is skipped; what comes later is delivered again after its delay; what is dead goes
to DEAD and is never delivered again, as is what has been failing for a quarter of an hour. A message that is buried is
handled once more when the operator asks (`again`).

A task is failed by handlers, for a permanent error, or by the watchdog, for time; never here and never by a count.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, assert_never

import nats.errors

from apex_bus.again import Again
from apex_bus.connection import Bus
from apex_bus.delivery import BatchHandler, Delivery, Done, Handler, Later, Verdict, bury, counters
from apex_bus.errors import NotPermitted, Transient
from apex_bus.fate import Dead, Failing, Fate, Skipped, Waits, fate_of
from apex_bus.pull import Pull
from apex_bus.tracing import arriving
from apex_schemas.consumers import Consumer

__all__ = ("BatchHandler", "Delivery", "Done", "Later", "Verdict", "bury", "consume", "consume_batches", "counters")

log = logging.getLogger(__name__)

POISON_SECONDS: Final = 900.0
_BUG_DELAY_S: Final = 5.0
_WATCHED: Final = 10_000


async def consume(bus: Bus, consumer: Consumer, handle: Handler, *, concurrency: int = 1) -> None:
    """Handle messages of a consumer until cancelled, `concurrency` at a time."""
    loop = _Loop(bus, consumer, handle)
    free = asyncio.Semaphore(concurrency)
    async with Pull(bus, consumer) as pull, asyncio.TaskGroup() as group:
        group.create_task(Again(bus, consumer, loop.once).serve())
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

    async def once(self, delivery: Delivery) -> Fate:
        """Run the handler once, beside the loop."""
        with arriving(delivery.subject, delivery.headers):
            return await fate_of(self._handle, delivery)

    async def _settle(self, delivery: Delivery) -> None:
        fate = await fate_of(self._handle, delivery)
        if not isinstance(fate, Failing):
            self._failing.pop(delivery.sequence, None)
        match fate:
            case Done():
                counters["handled"] += 1
                await delivery.ack()
            case Skipped(reason):
                counters["skipped"] += 1
                log.warning("%s skipped: %s", delivery.subject, reason)
                await delivery.ack()
            case Later(delay_s):
                counters["later"] += 1
                await delivery.again(delay_s)
            case Waits(reason, delay_s, level):
                counters["later"] += 1
                log.log(level, "%s later: %s", delivery.subject, reason)
                await delivery.again(delay_s)
            case Dead(reason):
                await self._bury(delivery, reason)
            case Failing():
                await self._failed(delivery)
            case _:
                assert_never(fate)

    async def _failed(self, delivery: Delivery) -> None:
        counters["bugs"] += 1
        now = asyncio.get_running_loop().time()
        first = self._failing.setdefault(delivery.sequence, now)
        while len(self._failing) > _WATCHED:
            self._failing.popitem(last=False)
        if now - first > POISON_SECONDS:
            reason = f"a fault of the program for {now - first:.0f} s, of which the log of {self._consumer.identity} "
            await self._bury(delivery, f"{reason}has the traceback")
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


async def consume_batches(
    bus: Bus, consumer: Consumer, handle: BatchHandler, *, batch: int = 100, wait_s: float = 0.1
) -> None:
    """Handle messages by the batch until cancelled: `handle` commits, then all of them are acknowledged.

    A Transient error keeps the batch and pauses pulling, with growing delay, until it goes through; meanwhile the
    messages are kept alive. Any other error is for `handle` to sort out by message; here it is a bug like any other.
    When cancelled, it gives back what it has in hand: the next one need not wait for the ack wait of a batch.
    """

    async def alone(delivery: Delivery) -> Verdict:
        await handle([delivery])
        return Done()

    async def once(delivery: Delivery) -> Fate:
        return await fate_of(alone, delivery)

    async with Pull(bus, consumer) as pull, asyncio.TaskGroup() as group:
        group.create_task(Again(bus, consumer, once, records=True).serve())
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
