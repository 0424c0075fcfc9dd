"""The device record: who drives a device and which task it is on. Permanent, changed by compare-and-set, renewed.

It is taken over when it has not changed for a lease, counted on the observer's own clock and only while reads
succeed. The record outlives its driver, and with it the task: nothing expires.
"""

import asyncio
import contextlib
import logging
import time
from typing import Any, Final

import msgspec

from apex_bus.connection import Bus, Stored
from apex_bus.errors import LogUnavailable, Transient
from apex_bus.records import Record
from apex_executor.errors import LeaseLost
from apex_executor.settings import DeviceConfig
from apex_schemas import envelope, subjects
from apex_schemas.devices import Claim, DeviceRecord
from apex_schemas.errors import WireError
from apex_schemas.ids import new_attempt

log = logging.getLogger(__name__)

_MARGIN_S: Final = 2.0
_UNANSWERED_TRIES: Final = 2


class Lease:
    """Our hold on one device, between `acquire` and LeaseLost or `release`."""

    def __init__(self, bus: Bus, config: DeviceConfig, *, lease_s: float) -> None:
        self._bus, self._config, self._lease_s = bus, config, lease_s
        self._place = Record(bus, "DEVICES", subjects.device(config.alias))
        self._writing = asyncio.Lock()
        self._sequence = 0
        self._renewed_at = 0.0
        self.record = DeviceRecord(worker=bus.worker, epoch=0, platform=config.platform)

    @property
    def claim(self) -> Claim | None:
        return self.record.claim

    def held(self) -> bool:
        """Whether nobody can have taken the device yet, with a margin: it lapses with time, no answer is needed."""
        return time.monotonic() < self._renewed_at + self._lease_s - min(_MARGIN_S, self._lease_s / 4)

    def renewed_s(self) -> int | None:
        """How long ago we sent what last renewed the record, in seconds. None where it is not ours."""
        return round(time.monotonic() - self._renewed_at) if self._renewed_at else None

    async def acquire(self) -> DeviceRecord | None:
        """Wait until the device is ours. Returns the record as its last driver left it, claim and session included;
        both are kept in ours, so that a crash from here on loses neither."""
        watched: tuple[int, float] | None = None
        while True:
            try:
                stored = await self._place.read()
            except LogUnavailable:
                watched = None
                await asyncio.sleep(self._lease_s / 10)
                continue
            old = record_of(stored, self._config.alias)
            now = time.monotonic()
            if stored is not None and old is not None and not old.released:
                if watched is None or watched[0] != stored.sequence:
                    watched = (stored.sequence, now)
                if now - watched[1] < self._lease_s:
                    await asyncio.sleep(min(0.5, self._lease_s / 10))
                    continue
            if await self._take(stored, old):
                return old

    async def _take(self, stored: Stored | None, old: DeviceRecord | None) -> bool:
        old = old or (self.record if stored is not None and self.record.epoch else None)
        record = DeviceRecord(
            worker=self._bus.worker,
            epoch=(old.epoch if old else 0) + 1,
            platform=self._config.platform,
            session=old.session if old else None,
            claim=old.claim if old else None,
            paused=old.paused if old else None,
            failures=old.failures if old else 0,
        )
        sent_at = time.monotonic()
        try:
            sequence = await self._write(record, last=stored.sequence if stored else 0)
        except LogUnavailable:
            return False
        except Transient as error:
            log.warning("%s is not taken yet: %s", self._config.alias, error)
            await asyncio.sleep(error.delay_s)
            return False
        if sequence is None:
            return False
        self.record, self._sequence, self._renewed_at = record, sequence, sent_at
        log.info("%s is ours, epoch %d", self._config.alias, record.epoch)
        return True

    async def update(self, **changes: Any) -> None:
        """Change and renew the record. Raises LeaseLost when it is no longer ours, LogUnavailable after repeats,
        StoreFull."""
        async with self._writing:
            record = msgspec.structs.replace(self.record, renewals=self.record.renewals + 1, **changes)
            sequence, sent_at = await self._write_again(record)
            if sequence is None:
                self._renewed_at = 0.0
                raise LeaseLost(self._config.alias)
            self.record, self._sequence, self._renewed_at = record, sequence, sent_at

    async def _write_again(self, record: DeviceRecord) -> tuple[int | None, float]:
        """Write under one attempt until there is an answer. Returns when the write that counts was sent, too."""
        attempt = new_attempt()
        for _ in range(_UNANSWERED_TRIES):
            sent_at = time.monotonic()
            with contextlib.suppress(LogUnavailable):
                return await self._write(record, last=self._sequence, attempt=attempt), sent_at
        sent_at = time.monotonic()
        return await self._write(record, last=self._sequence, attempt=attempt), sent_at

    async def keep(self) -> None:
        """Renew until the device is lost."""
        while True:
            await asyncio.sleep(self._lease_s / 5)
            try:
                await self.update()
            except Transient as error:
                log.warning("%s was not renewed: %s", self._config.alias, error)

    async def release(self) -> None:
        """Let the next one take the device at once. The claim stays: the task goes on with it."""
        try:
            await self.update(released=True, state="waiting", reason="its executor has stopped")
        except (LeaseLost, Transient) as error:
            log.info("%s was not released: %s", self._config.alias, error)

    async def _write(self, record: DeviceRecord, *, last: int, attempt: str | None = None) -> int | None:
        return await self._place.write(record, attempt=attempt or new_attempt(), last=last, device=self._config.alias)


def record_of(stored: Stored | None, alias: str) -> DeviceRecord | None:
    """What a record says. None where there is none, or where somebody has written over it what is none: the server
    itself does that for any client that names this subject as the place for an acknowledgement."""
    if stored is None:
        return None
    try:
        message = envelope.decode(stored.data)
        envelope.check_subject(message, stored.subject, task=None, device=alias, turn=None)
    except WireError as error:
        log.error("the record of %s is not believed: %s", alias, error)
        return None
    return message.body if isinstance(message.body, DeviceRecord) else None
