"""Taking a task: one request from the device's pools, recorded on the device before the log says that it has started.

Order: record the claim on the device → fill `started` → acknowledge the request. A crash anywhere in between is
resumed from the record; the slot `started`, fenced over the whole task, lets exactly one device have it.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final, NamedTuple

import msgspec
from nats.aio.msg import Msg

from apex_bus.connection import Bus
from apex_bus.consume import Delivery, bury
from apex_bus.pull import Pull
from apex_bus.tasklog import Filled, TaskLog
from apex_bus.tracing import TRACEPARENT
from apex_executor.endings import Endings
from apex_executor.lease import Lease
from apex_executor.requests import Asked, read_request
from apex_executor.settings import DeviceConfig
from apex_schemas import slots
from apex_schemas.consumers import pool_consumer
from apex_schemas.devices import Claim
from apex_schemas.edge import decode_request, digest
from apex_schemas.errors import WireError
from apex_schemas.ids import new_attempt
from apex_schemas.task import TaskStarted

log = logging.getLogger(__name__)

_ROUND_S: Final = 10.0
_UNREADY_S: Final = 1.0
_NEEDED: Final = ("perception", "planner")


class _Request(NamedTuple):
    delivery: Delivery
    pool: str


Prepare = Callable[[str], Awaitable[str | None]]
"""Opens an app before a task begins; says why that cannot be done."""


class Claims:
    """Claims for one device."""

    def __init__(self, bus: Bus, tasklog: TaskLog, config: DeviceConfig, prepare: Prepare) -> None:
        self._bus, self._log, self._config, self._prepare = bus, tasklog, config, prepare
        self._endings = Endings(bus, tasklog)

    async def take_next(self, lease: Lease, *, until: asyncio.Event) -> None:
        """Wait for a request, for some seconds or until the event, and claim it. Nothing is pulled while nobody could
        see or plan."""
        for service in _NEEDED:
            if not await self._bus.ping(service):
                await lease.update(state="waiting", reason=f"no {service} answers")
                await asyncio.sleep(_UNREADY_S)
                return
        request = await self._next(until)
        if request is None:
            return
        if until.is_set():  # the device may be wanted for something else: whoever is ready has the request
            await request.delivery.again(0.05)
            return
        await self._claim(request, lease)

    async def _next(self, until: asyncio.Event) -> _Request | None:
        """The next request: by the order of the device's pools, own pool first; then whichever comes first."""
        pools = self._config.all_pools
        async with AsyncExitStack() as stack:
            pulls = {pool: await stack.enter_async_context(self._pull(pool)) for pool in pools}
            for pool, pull in pulls.items():
                if (msg := await pull.take()) is not None:
                    return _Request(Delivery(self._bus, msg), pool)
            waiting = {asyncio.create_task(pull.next(1, wait_s=_ROUND_S)): pool for pool, pull in pulls.items()}
            await _first(set(waiting), until)
            arrived = [(task.result(), pool) for task, pool in waiting.items() if not task.cancelled()]
            first, *surplus = [_Request(Delivery(self._bus, msg), pool) for msg, pool in arrived if msg] or [None]
            for request in surplus:
                if request is not None:
                    await request.delivery.again(0.05)
            return first

    def _pull(self, pool: str) -> Pull:
        return Pull(self._bus, pool_consumer(pool), check=False)

    async def _claim(self, request: _Request, lease: Lease) -> None:
        delivery = request.delivery
        try:
            asked = read_request(delivery)
        except WireError as error:
            log.info("%s is left to the intake: %s", delivery.subject, error)
            await delivery.ack()
            return
        if asked.expired(time.time()) or await self._log.ended(asked.task) is not None:
            await delivery.ack()
            return
        claim = Claim(
            task=asked.task,
            request=delivery.data,
            request_sequence=delivery.sequence,
            pool=request.pool,
            attempt=new_attempt(),
            traceparent=delivery.headers.get(TRACEPARENT),
        )
        await lease.update(state="busy", claim=claim, reason=None)
        if not await self.start(claim, lease):
            await self._report_conflict(asked, delivery)
        await delivery.ack()

    async def start(self, claim: Claim, lease: Lease) -> bool:
        """Fill `started`, or find that it is ours already. False, and the record is cleared, when the task is not
        this device's to do."""
        body = TaskStarted(
            request=msgspec.structs.replace(decode_request(claim.request), task=claim.task),
            pool=claim.pool,
            request_sequence=claim.request_sequence,
            request_digest=digest(claim.request),
            started_at_ms=time.time_ns() // 1_000_000,
            traceparent=claim.traceparent,
        )
        slot = slots.started(self._config.alias, claim.task)
        if body.request.launch is not None and await self._log.newest(None, claim.task) is None:
            problem = await self._prepare(body.request.launch)
            if problem is not None:
                log.warning("task %s is not begun: %s", claim.task, problem)
                await self._endings.refuse(claim.task, problem, goal=body.request.goal, stage="executor")
                await lease.update(state="ready", claim=None)
                return False
        outcome = await self._log.fill(slot, body, attempt=claim.attempt)
        if isinstance(outcome, Filled):
            log.info("%s takes task %s", self._config.alias, claim.task)
            return True
        there = outcome.entry.body if outcome.entry is not None else None
        same = isinstance(there, TaskStarted) and there.request_digest == body.request_digest
        if same and await self._log.ended(claim.task, device=self._config.alias) is None:
            return True
        await lease.update(state="ready", claim=None)
        return False

    async def _report_conflict(self, asked: Asked, delivery: Delivery) -> None:
        """Another request under the same task id is no repetition: it is said, not dropped."""
        newest = await self._log.newest(None, asked.task)
        if newest is None:
            return
        first = await self._log.read(slots.started(newest.slot.device, asked.task))
        if first is not None and getattr(first.body, "request_digest", asked.digest) != asked.digest:
            reason = f"task {asked.task} was already asked for with other content; use another id"
            await bury(self._bus, delivery, reason, stream="REQUESTS")


async def _first(tasks: set["asyncio.Task[Msg | None]"], until: asyncio.Event) -> None:
    """Wait until one is done or the event has come, and end the others."""
    came = asyncio.create_task(until.wait())
    try:
        await asyncio.wait({*tasks, came}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        came.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
