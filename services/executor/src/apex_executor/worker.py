"""The driver of one device: holds its record, has it ready, lets it take tasks, and sets it aside when it fails.

Consumes its device's `planned` and `finished` (handed to `tasks`) and the operator's word; owns the device record while
its lease lasts. Losing the lease ends everything at once; a device that fails is set aside for a growing while, and
eats no queue.
"""

import asyncio
import contextlib
import logging
import time
from typing import Final

from apex_bus.connection import Bus
from apex_bus.consume import consume
from apex_bus.errors import Transient
from apex_bus.tasklog import TaskLog
from apex_executor.device import Device
from apex_executor.errors import DeviceFailed, LeaseLost, Retired
from apex_executor.lease import Lease
from apex_executor.session import PhoneSession
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_executor.tasks import Tasks
from apex_schemas.consumers import device_consumer
from apex_schemas.devices import DeviceControl, DeviceStatus, SessionHandle, SessionReply

log = logging.getLogger(__name__)

_QUARANTINE_S: Final = (2.0, 5.0, 15.0, 30.0, 60.0)
_PROBE_S: Final = 15.0


class Worker:
    """One device of this executor, for as long as the process lives."""

    def __init__(self, bus: Bus, tasklog: TaskLog, config: DeviceConfig, settings: ExecutorSettings) -> None:
        self._bus, self.config = bus, config
        self._changed = asyncio.Event()
        self._lease = Lease(bus, config, lease_s=settings.lease_seconds)
        self._device = Device(
            config, settings, lease=self._lease, session=PhoneSession(config, settings), changed=self._changed
        )
        self._tasks = Tasks(bus, tasklog, self._device, settings, changed=self._changed)
        self._retiring = False
        self._retry_at = 0.0
        self.driving = False

    async def run(self) -> None:
        """Drive the device whenever it is ours, until it is retired."""
        try:
            while not self._retiring:
                old = await self._lease.acquire()
                self.driving, self._device.leaving = True, False
                try:
                    await self._drive(old.session if old else None)
                except* LeaseLost as lost:
                    log.warning("%s", lost.exceptions[0])
                except* Retired as retired:
                    log.info("%s", retired.exceptions[0])
                finally:
                    self.driving = False
                    self._device.usable.clear()
        finally:
            await asyncio.shield(self._stop())

    async def _drive(self, old: SessionHandle | None) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lease.keep())
            group.create_task(consume(self._bus, device_consumer(self.config.alias), self._tasks.on_slot))
            group.create_task(self._serve(old))

    async def _stop(self) -> None:
        """End in order: what is in hand has its outcome written first, then the device is free for the next one."""
        await self._device.end()
        await self._lease.release()
        self._device.shut()

    async def _serve(self, old: SessionHandle | None) -> None:
        """Open, resume, take work; and set the device aside when it fails."""
        if old is not None:
            await self._device.delete(old)
        while True:
            try:
                if self._lease.claim is None:
                    await self._rest()
                await self._device.open()
                if self._lease.claim is not None:
                    await self._tasks.resume(self._lease.claim)
                while self._device.usable.is_set():
                    await self._work()
                raise DeviceFailed(self.config.alias, "its session was lost and could not be made again")
            except DeviceFailed as failed:
                await self._set_aside(failed)
            except Transient as error:
                log.warning("%s waits: %s", self.config.alias, error)
                await asyncio.sleep(error.delay_s)

    async def _work(self) -> None:
        """Take one request, or wait until something about the task in hand changes."""
        self._changed.clear()
        if self._lease.claim is None:
            await self._rest()
            await self._device.alive()
            await self._lease.update(state="ready", reason=None, failures=0)
            await self._tasks.take_next()
            return
        await self._change(_PROBE_S)
        await self._tasks.let_go_if_ended()

    async def _set_aside(self, failed: DeviceFailed) -> None:
        """Take no task for a while, longer each time in a row; `apex devices resume` ends the wait."""
        self._device.usable.clear()
        self._changed.clear()
        failures = self._lease.record.failures
        delay = _QUARANTINE_S[min(failures, len(_QUARANTINE_S) - 1)]
        self._retry_at = time.monotonic() + delay
        log.error("%s; set aside for %.0f s", failed, delay)
        try:
            await self._lease.update(state="quarantined", session=None, reason=failed.reason, failures=failures + 1)
        except Transient as error:
            log.warning("that %s is set aside cannot be shown: %s", self.config.alias, error)
        await self._change(delay)

    async def _change(self, seconds: float) -> None:
        """Wait until something has changed, or for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # `wait_for` of Python 3.11 swallows a cancellation that comes with it
                await self._changed.wait()

    async def _rest(self) -> None:
        """While the device is paused, leave the phone to others: without a session. Raises Retired."""
        while self._retiring or self._lease.record.paused is not None:
            self._changed.clear()
            if self._retiring:
                raise Retired(self.config.alias)
            await self._device.end()
            await self._lease.update(state="waiting", session=None, reason=self._lease.record.paused)
            await self._changed.wait()

    async def heal_for(self, dead: str) -> SessionReply | None:
        """Perception's request. None while the device is not ours: somebody else will answer."""
        return await self._device.heal_for(dead) if self.driving else None

    async def control(self, word: DeviceControl) -> DeviceStatus | None:
        """The operator's word. None while the device is not ours: somebody else will answer."""
        if not self.driving:
            return None
        who = f"paused by {word.by or 'the operator'}"
        paused = (f"{who}: {word.reason}" if word.reason else who) if word.action == "pause" else None
        await self._lease.update(paused=paused)
        self._changed.set()
        return self.status()

    def retire(self) -> None:
        """Give the device up, after the task that it is on."""
        self._retiring = True
        self._changed.set()

    def status(self) -> DeviceStatus:
        record = self._lease.record
        handle = record.session
        aside = record.state == "quarantined" and self.driving
        return DeviceStatus(
            device=self.config.alias,
            platform=self.config.platform,
            state=record.state if self.driving else "elsewhere",
            worker=record.worker,
            epoch=record.epoch,
            task=record.claim.task if record.claim else None,
            session=record.session.id if record.session else None,
            reason=record.reason,
            waiting_turn=record.waiting_turn,
            pools=self.config.all_pools,
            session_age_s=_age_s(handle.opened_at_ms) if handle and handle.opened_at_ms else None,
            paused=record.paused is not None,
            failures=record.failures,
            retry_s=max(0, round(self._retry_at - time.monotonic())) if aside else None,
            renewed_s=self._lease.renewed_s() if self.driving else None,
            stale=self.driving and not self._lease.held(),
        )


def _age_s(since_ms: int) -> int:
    return max(0, round(time.time() - since_ms / 1_000))
