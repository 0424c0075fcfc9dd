"""The ledger of provider calls on NATS: records in DECISIONS, written once, and expiring claims in CLAIMS."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from msgspec import structs

from apex_bus.connection import FENCE_REFUSALS, Bus, Refused, Stored
from apex_bus.errors import LogUnavailable, Transient
from apex_bus.records import Record
from apex_bus.tracing import headers as trace_headers
from apex_schemas import envelope, subjects
from apex_schemas.decision import DecisionFault, DecisionRecord, PlannerClaim
from apex_schemas.errors import TooLarge, Undecodable, WireError
from apex_schemas.ids import new_attempt
from apex_schemas.steps import DecisionKey

log = logging.getLogger(__name__)

CLAIM_SECONDS: Final = 15.0
_REMEMBERED: Final = 32
_RENEW_AGAIN_S: Final = 0.5
_RENEW_TRY_S: Final = 1.0
_RECORD_AGAIN_S: Final = 0.25
_TRIES_BEFORE_SAID: Final = 100


class BusLedger:
    """A Ledger (see `recorded`)."""

    def __init__(self, bus: Bus, *, claim_s: float = CLAIM_SECONDS) -> None:
        self._bus, self._claim_s = bus, claim_s
        self._held: set[str] = set()
        self._ours: OrderedDict[DecisionKey, DecisionRecord] = OrderedDict()

    @property
    def worker(self) -> str:
        return self._bus.worker

    async def recorded(self, key: DecisionKey) -> DecisionRecord | None:
        if (ours := self._ours.get(key)) is not None:
            return ours  # a replica may not have it yet, and its claim is free for our next handler
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
        return await self._take_over(record, body, stored)

    async def _take_over(self, record: Record, body: PlannerClaim, stored: Stored) -> int | None:
        """A claim of our own, of an earlier call, or of nobody."""
        holder = _holder(stored)
        if holder is not None and holder.call >= body.call and holder.worker != body.worker:
            return None
        return await record.write(body, attempt=new_attempt(), last=stored.sequence, ttl_s=self._claim_s)

    async def _renew(self, record: Record, body: PlannerClaim, sequence: int) -> None:
        """Until cancelled; soon again when nothing could be known. A claim that another has taken is not fought for:
        the record, written once, settles who paid."""
        loop = asyncio.get_running_loop()
        known: int | None = sequence  # None: a try had no answer, and may have been stored
        pause_s = self._claim_s / 3
        runs_out = loop.time() + self._claim_s
        while True:
            await asyncio.sleep(pause_s)
            sent_at = loop.time()
            try:
                async with asyncio.timeout(max(_RENEW_TRY_S, (runs_out - sent_at) / 2)):  # else one may outlast it
                    if known is not None:
                        known = await record.write(body, attempt=new_attempt(), last=known, ttl_s=self._claim_s)
                    if known is None:
                        known = await self._take_again(record, body)
            except (Transient, TimeoutError) as error:
                log.warning("%s was not renewed: %s", record.subject, str(error) or type(error).__name__)
                known, pause_s = None, min(_RENEW_AGAIN_S, self._claim_s / 3)
                continue
            if known is None:
                log.warning("%s is another's now", record.subject)
                return
            pause_s, runs_out = self._claim_s / 3, sent_at + self._claim_s

    async def _take_again(self, record: Record, body: PlannerClaim) -> int | None:
        """In two round trips where it is still ours. Raises Transient when that cannot be told yet."""
        stored = await record.read()
        if stored is None:
            return await self._take(record, body)
        taken = await self._take_over(record, body, stored)
        if taken is None and (holder := _holder(stored)) is not None and holder.worker == body.worker:
            raise Transient("it reads as ours, and is not as it reads: a replica lags", delay_s=_RENEW_AGAIN_S)
        return taken

    async def record(self, record: DecisionRecord) -> DecisionRecord:
        """Until it is stored, however long nothing can be: an answer that was given up would be paid for again."""
        key = record.key
        subject = subjects.decision(key.task, key.turn, key.call)
        attempt = new_attempt()
        try:
            data = envelope.encode(record, task=key.task, turn=key.turn, attempt=attempt)
        except TooLarge as error:
            record = _without_answer(record, error)
            data = envelope.encode(record, task=key.task, turn=key.turn, attempt=attempt)
        headers = {
            "Nats-Msg-Id": f"{subject}:{attempt}",
            "Nats-Expected-Last-Subject-Sequence": "0",
            **trace_headers(key.task),
        }
        tries = 0
        while True:
            try:
                stored = await self._stored(record, subject, data, headers)
            except Transient as error:
                if tries % _TRIES_BEFORE_SAID == 0:
                    log.warning("the answer of turn %d waits for its record: %s", key.turn, error)
                tries += 1
                await asyncio.sleep(_RECORD_AGAIN_S)
            else:
                self._ours[key] = stored
                while len(self._ours) > _REMEMBERED:
                    self._ours.popitem(last=False)
                return stored

    async def _stored(
        self, record: DecisionRecord, subject: str, data: bytes, headers: dict[str, str]
    ) -> DecisionRecord:
        try:
            await self._bus.publish(subject, data, headers=headers)
        except Refused as refused:
            if refused.code not in FENCE_REFUSALS:
                raise
            if (stored := await self.recorded(record.key)) is None:
                raise LogUnavailable(f"{subject} is refused but reads as empty") from refused
            return stored  # ours by an earlier try, or another's: either way it is the one record
        return record


def _holder(stored: Stored) -> PlannerClaim | None:
    """Who holds a claim. None where what is stored is none: the server stores its acknowledgement there for any client
    that names this subject as the place for it."""
    try:
        holder = envelope.decode(stored.data).body
    except WireError:
        return None
    return holder if isinstance(holder, PlannerClaim) else None


def _without_answer(record: DecisionRecord, error: TooLarge) -> DecisionRecord:
    """An answer that no message can hold is on record as what it was: paid for, and of no use."""
    reply = record.reply
    fault = DecisionFault(
        code="too_long", message=f"the model's answer cannot be kept: {error}", correctable=False, usage=reply.usage,
        model=reply.model, provider=reply.provider, latency_ms=reply.latency_ms,
    )  # fmt: skip
    return structs.replace(record, reply=fault, raw_answer=None)
