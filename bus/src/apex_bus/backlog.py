"""How much waits behind a consumer: the queue of a pool, the lag of the log.

Consumes CONSUMER.INFO of the identity's own consumers; emits the gauge `apex.consumer.pending`.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from apex_bus import metrics
from apex_bus.connection import Bus
from apex_bus.errors import Transient
from apex_schemas.consumers import Consumer

log = logging.getLogger(__name__)

EVERY_SECONDS: Final = 15.0


class Backlog(NamedTuple):
    """`pending` have not been delivered yet, `unsettled` were delivered and wait for their acknowledgement.

    `delivered_sequence` is the stream's sequence of the newest delivered message, `deliveries` counts all of them.
    """

    pending: int
    unsettled: int
    delivered_sequence: int
    deliveries: int


async def backlog(bus: Bus, consumer: Consumer, *, timeout_s: float = 2.0) -> Backlog | None:
    """None where the server does not answer or knows no such consumer."""
    try:
        info = await bus.api(f"CONSUMER.INFO.{consumer.stream}.{consumer.name}", timeout_s=timeout_s)
    except Transient as error:
        log.debug("%s was not told of: %s", consumer.name, error)
        return None
    if "error" in info:
        return None
    delivered = info["delivered"]
    return Backlog(info["num_pending"], info["num_ack_pending"], delivered["stream_seq"], delivered["consumer_seq"])


async def watch(bus: Bus, consumers: Sequence[Consumer]) -> None:
    """Measure until cancelled."""
    while True:
        for consumer in consumers:
            found = await backlog(bus, consumer)
            if found is not None:
                metrics.set_to(metrics.PENDING, found.pending, {"consumer": consumer.name})
        await asyncio.sleep(EVERY_SECONDS)
