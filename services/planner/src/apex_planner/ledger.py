"""The ledger of provider calls on NATS: records in DECISIONS, written once, and expiring claims in CLAIMS."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from apex_bus.connection import FENCE_REFUSALS, Bus, Refused
from apex_bus.errors import LogUnavailable, Transient
from apex_bus.records import Record
from apex_bus.tracing import headers as trace_headers
from apex_schemas import envelope, subjects
from apex_schemas.decision import DecisionRecord, PlannerClaim
from apex_schemas.errors import Undecodable
from apex_schemas.ids import new_attempt
from apex_schemas.steps import DecisionKey

log = logging.getLogger(__name__)

CLAIM_SECONDS: Final = 15.0
_RECORD_SECONDS: Final = 60.0


class BusLedger:
    """A Ledger (see `recorded`)."""

    def __init__(self, bus: Bus, *, claim_s: float = CLAIM_SECONDS) -> None:
        self._bus, self._claim_s = bus, claim_s
        self._held: set[str] = set()

    @property
    def worker(self) -> str:
        return self._bus.worker

    async def recorded(self, key: DecisionKey) -> DecisionRecord | None:
        subject = subjects.decision(key.task, key.turn, key.call)
        stored = await self._bus.get("DECISIONS", subject)
        if stored is None:
            return None
        message = envelope.decode(stored.data)
        envelope.check_subject(message, subject, task=key.task, device=None, turn=key.turn)
        if not isinstance(message.body, DecisionRecord) or message.body.key != key:
            raise Undecodable(subject, "not the record of this call")
        return message.body

    @asynccontextmanager
    async def claim(self, key: DecisionKey) -> AsyncGenerator[bool]:
        """Hold `claim.<task>.<turn>`. It expires by itself: the next call of the turn may be anybody's, and takes the
        claim of an earlier call over, whose record is there already."""
        subject = subjects.claim(key.task, key.turn)
        if subject in self._held:
            yield False
            return
        self._held.add(subject)
        try:
            record = Record(self._bus, "CLAIMS", subject)
            body = PlannerClaim(worker=self.worker, call=key.call)
            sequence = await self._take(record, body)
            if sequence is None:
                yield False
                return
            renewal = asyncio.create_task(self._renew(record, body, sequence))
            try:
                yield True
            finally:
                renewal.cancel()
        finally:
            self._held.discard(subject)

    async def _take(self, record: Record, body: PlannerClaim) -> int | None:
        taken = await record.write(body, attempt=new_attempt(), last=0, ttl_s=self._claim_s)
        if taken is not None:
            return taken
        stored = await record.read()
        if stored is None:
            return None  # it has just expired: asked for again soon
        holder = envelope.decode(stored.data).body
        if isinstance(holder, PlannerClaim) and holder.call >= body.call and holder.worker != body.worker:
            return None
        return await record.write(body, attempt=new_attempt(), last=stored.sequence, ttl_s=self._claim_s)

    async def _renew(self, record: Record, body: PlannerClaim, sequence: int) -> None:
        """Until cancelled. A claim that is lost is not fought for: the record, written once, settles who paid."""
        while True:
            await asyncio.sleep(self._claim_s / 3)
            try:
                renewed = await record.write(body, attempt=new_attempt(), last=sequence, ttl_s=self._claim_s)
            except Transient as error:
                log.warning("%s was not renewed: %s", record.subject, error)
                continue
            if renewed is None:
                log.warning("%s is another's now", record.subject)
                return
            sequence = renewed

    async def record(self, record: DecisionRecord) -> DecisionRecord:
        key = record.key
        subject = subjects.decision(key.task, key.turn, key.call)
        attempt = new_attempt()
        data = envelope.encode(record, task=key.task, turn=key.turn, attempt=attempt)
        headers = {
            "Nats-Msg-Id": f"{subject}:{attempt}",
            "Nats-Expected-Last-Subject-Sequence": "0",
            **trace_headers(key.task),
        }
        deadline = asyncio.get_running_loop().time() + _RECORD_SECONDS
        while True:
            try:
                await self._bus.publish(subject, data, headers=headers)
                return record
            except Refused as refused:
                if refused.code not in FENCE_REFUSALS:
                    raise
                if (stored := await self.recorded(key)) is not None:
                    return stored  # ours by an earlier try, or another's: either way it is the one record
                error: Exception = LogUnavailable(f"{subject} is refused but reads as empty")
            except Transient as transient:
                error = transient
            if asyncio.get_running_loop().time() > deadline:
                raise error
            await asyncio.sleep(0.25)
