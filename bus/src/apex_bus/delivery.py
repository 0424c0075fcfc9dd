"""A message as a handler gets it, what the handler says of it, and the grave of those that cannot be handled.

Consumes messages of a pull, or stored ones that are handled again; emits `dead.<service>`.
"""

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from nats.aio.msg import Msg

from apex_bus.connection import Bus, Refused, Stored
from apex_schemas import envelope, subjects
from apex_schemas.devices import DeadLetter
from apex_schemas.ids import new_attempt

log = logging.getLogger(__name__)

counters: Counter[str] = Counter()
"""Messages by fate, for STATS: handled, later, skipped, dead, bugs, again."""

_ADDED: Final = ("Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Last-Sequence")
"""Headers that the server puts on what it reads for somebody."""


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


class Redelivery(Delivery):
    """A stored message that is handled again because the operator asked: its consumer has done with it, so there is
    nothing to acknowledge. `refused` is why it was to be buried again; its letter is there already."""

    def __init__(self, bus: Bus, stored: Stored) -> None:  # pyright: ignore[reportMissingSuperCall]
        self._bus = bus
        self.subject, self.data = stored.subject, stored.data
        self.headers = {name: value for name, value in stored.headers.items() if name not in _ADDED}
        self.sequence, self.timestamp_ns = stored.sequence, stored.timestamp_ns
        self.delivered = 1
        self.refused: str | None = None

    async def working(self) -> None:
        """Nobody waits for a sign."""

    async def ack(self) -> None:
        """It was acknowledged, or ended, when it was buried."""

    async def again(self, delay_s: float) -> None:
        """Whoever handles it again comes back by itself."""

    async def never(self) -> None:
        """It was ended when it was buried."""


Handler = Callable[[Delivery], Awaitable[Verdict]]
BatchHandler = Callable[[list[Delivery]], Awaitable[None]]


async def bury(bus: Bus, delivery: Delivery, reason: str, *, stream: str) -> None:
    """Record in DEAD that a message could not be handled: its reason, place, size and hash, never its content."""
    log.error("%s is dead: %s", delivery.subject, reason)
    if isinstance(delivery, Redelivery):
        delivery.refused = reason
        return
    counters["dead"] += 1
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
