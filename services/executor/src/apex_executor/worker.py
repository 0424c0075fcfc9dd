"""The driver of one device: holds its record, keeps its session, takes tasks and carries their turns through.

Consumes its pools' requests and its device's `planned` and `finished`; owns the device record while its lease lasts.
Losing the lease ends everything at once; a device that fails is set aside for a growing while, and eats no queue.
"""

import asyncio
import logging
from typing import Final

from apex_bus import metrics
from apex_bus.connection import Bus
from apex_bus.consume import Delivery, Done, Verdict, consume
from apex_bus.errors import Transient
from apex_bus.tasklog import Entry, TaskLog, entry_of
from apex_bus.tracing import export_root
from apex_executor.claims import Claims
from apex_executor.errors import DeviceFailed, LeaseLost
from apex_executor.lease import Lease
from apex_executor.outcomes import Outcome
from apex_executor.session import PhoneSession
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_executor.turns import Turns
from apex_schemas import subjects
from apex_schemas.actions import DeviceAction
from apex_schemas.devices import Claim, DeviceStatus, SessionHandle, SessionReply
from apex_schemas.steps import Target
from apex_schemas.task import TaskFinished

log = logging.getLogger(__name__)

_QUARANTINE_S: Final = (2.0, 5.0, 15.0, 30.0, 60.0)
_PROBE_S: Final = 15.0
_GRACE_S: Final = 15.0


class Worker:
    """One device of this executor, for as long as the process lives."""

    def __init__(self, bus: Bus, tasklog: TaskLog, config: DeviceConfig, settings: ExecutorSettings) -> None:
        self._bus, self._log, self.config, self._settings = bus, tasklog, config, settings
        self._lease = Lease(bus, config, lease_s=settings.lease_seconds)
        self._session = PhoneSession(config, settings)
        self._claims = Claims(bus, tasklog, config)
        self._turns = Turns(bus, tasklog, self, settings)
        self._one_at_a_time = asyncio.Lock()
        self._usable = asyncio.Event()
        self._changed = asyncio.Event()
        self._gone: set[str] = set()
        self.driving = False

    @property
    def handle(self) -> SessionHandle | None:
        return self._session.handle

    async def run(self) -> None:
        """Drive the device whenever it is ours."""
        try:
            while True:
                old = await self._lease.acquire()
                self.driving = True
                try:
                    await self._drive(old.session if old else None)
                except* LeaseLost as lost:
                    log.warning("%s", lost.exceptions[0])
                finally:
                    self.driving = False
                    self._usable.clear()
        finally:
            await asyncio.shield(self._stop())

    async def _drive(self, old: SessionHandle | None) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lease.keep())
            group.create_task(consume(self._bus, subjects.device_consumer(self.config.alias), self._on_slot))
            group.create_task(self._serve(old))

    async def _stop(self) -> None:
        """End in order: what is in hand has its outcome written first, then the device is free for the next one."""
        async with self._one_at_a_time:
            await self._session.end()
        await self._lease.release()
        self._session.shut()

    async def _serve(self, old: SessionHandle | None) -> None:
        """Open, resume, take work; and set the device aside when it fails."""
        failures = 0
        if old is not None and await self._session.fence(old):
            self._gone.add(old.id)
        while True:
            try:
                await self._open()
                if self._lease.claim is not None:
                    await self._resume(self._lease.claim)
                failures = 0
                while self._usable.is_set():
                    await self._work()
                raise DeviceFailed(self.config.alias, "its session was lost and could not be made again")
            except DeviceFailed as failed:
                self._usable.clear()
                delay = _QUARANTINE_S[min(failures, len(_QUARANTINE_S) - 1)]
                failures += 1
                log.error("%s; set aside for %.0f s", failed, delay)
                await self._lease.update(state="quarantined", session=None, reason=failed.reason)
                await asyncio.sleep(delay)
            except Transient as error:
                log.warning("%s waits: %s", self.config.alias, error)
                await asyncio.sleep(error.delay_s)

    async def _work(self) -> None:
        """Take one request, or wait until something about the task in hand changes."""
        self._changed.clear()
        if self._lease.claim is None:
            await self._lease.update(state="ready", reason=None)
            await self._alive()
            await self._claims.take_next(self._lease)
            return
        try:
            await asyncio.wait_for(self._changed.wait(), _PROBE_S)
        except TimeoutError:
            return

    async def _alive(self) -> None:
        """Have a session that answers. Raises DeviceFailed when none can be had."""
        async with self._one_at_a_time:
            if not await self._session.alive():
                await self._reopen()

    async def _open(self) -> None:
        async with self._one_at_a_time:
            if self._session.handle is None or not await self._session.alive():
                await self._reopen()
            self._usable.set()

    async def _reopen(self) -> None:
        """A new session in place of the old one, which is gone afterwards; the record names the new one."""
        old = self._session.handle
        if old is not None:
            await self._session.end()
            if await self._session.fence(old):
                self._gone.add(old.id)
        handle = await self._session.open()
        await self._lease.update(session=handle)

    async def heal(self) -> None:
        try:
            await self._reopen()
        except DeviceFailed as failed:
            log.error("%s", failed)
            self._usable.clear()
            self._changed.set()

    async def fence(self, session: str) -> bool:
        if session in self._gone:
            return True
        if self._session.handle is not None and self._session.handle.id == session:
            await self.heal()
        return session in self._gone

    async def heal_for(self, dead: str) -> SessionReply | None:
        """Perception's request. None while the device is not ours: somebody else will answer."""
        if not self.driving:
            return None
        async with self._one_at_a_time:
            handle = self._session.handle
            if handle is not None and (handle.id != dead or await self._session.alive()):
                return SessionReply(session=handle)
            await self.heal()
            if self._session.handle is None:
                return SessionReply(reason=f"{self.config.alias} has no session; see `apex devices`")
            return SessionReply(session=self._session.handle)

    async def act(self, action: DeviceAction, target: Target | None) -> Outcome:
        return await self._session.perform(action, target, held=self._lease.held)

    async def waits(self, turn: int | None, reason: str | None) -> None:
        """Show on the device record that an act waits for approval; the watchdog takes that for no lateness."""
        try:
            await self._lease.update(state="busy" if turn is None else "waiting", waiting_turn=turn, reason=reason)
        except LeaseLost as lost:
            raise Transient(str(lost)) from lost

    async def _resume(self, claim: Claim) -> None:
        """Go on with a claim from the last slot of its log, without waiting for redelivery."""
        if not await self._claims.start(claim, self._lease):
            return
        newest = await self._log.newest(self.config.alias, claim.task)
        if newest is None:
            raise Transient(f"task {claim.task} has started and cannot be read yet", delay_s=0.5)
        log.info("%s goes on with task %s from %s", self.config.alias, claim.task, newest.slot.kind)
        if newest.slot.kind == "finished":
            await self._free(claim.task)
        elif newest.slot.kind in ("planned", "acting"):
            planned = await self._log.read(newest.slot.sibling("planned"))
            if planned is not None:
                await self._take(planned, {})

    async def _on_slot(self, delivery: Delivery) -> Verdict:
        """A `planned` or `finished` of this device."""
        entry = entry_of(delivery)
        await self._usable.wait()
        return await self._take(entry, delivery.headers)

    async def _take(self, entry: Entry, headers: dict[str, str]) -> Verdict:
        task = entry.slot.task
        if isinstance(entry.body, TaskFinished) or (
            self._lease.claim is not None and self._lease.claim.task == task and await self._to_its_end(entry, headers)
        ):
            await self._free(task)
        return Done()

    async def _to_its_end(self, entry: Entry, headers: dict[str, str]) -> bool:
        """A turn, not cut short by the end of this process: what is in hand has its outcome written."""
        turn = asyncio.ensure_future(self._turn(entry, headers))
        try:
            return await asyncio.shield(turn)
        except asyncio.CancelledError:
            if self._turns.approvals.waiting:  # nothing was begun: the next driver goes on with the wait
                turn.cancel()
            await asyncio.wait([turn], timeout=_GRACE_S)
            raise

    async def _turn(self, entry: Entry, headers: dict[str, str]) -> bool:
        async with self._one_at_a_time:
            return await self._turns.take(entry, cause=headers)

    async def _free(self, task: str) -> None:
        """The device is done with a task; its trace gets its root."""
        if self._lease.claim is None or self._lease.claim.task != task:
            return
        ended = await self._log.ended(task, device=self.config.alias)
        if ended is None:
            raise Transient(f"the end of task {task} cannot be read yet", delay_s=0.2)
        origin = self._lease.claim.traceparent
        await self._lease.update(claim=None, state="ready", waiting_turn=None)
        self._changed.set()
        started = await self._log.started_entry(self.config.alias, task)
        finished: TaskFinished = ended.body
        export_root(
            task,
            started_ns=started.timestamp_ns,
            ended_ns=ended.timestamp_ns,
            failure=None if finished.status == "succeeded" else finished.failure_reason or finished.status,
            origin=origin,
            attributes={
                "apex.device": self.config.alias,
                "apex.turns": finished.turns,
                "apex.status": finished.status,
                "apex.stage": finished.stage or "",
            },
        )
        metrics.add(metrics.TASKS, 1, {"status": finished.status, "stage": finished.stage or ""})
        took_s = (ended.timestamp_ns - started.timestamp_ns) / 1e9
        metrics.record(metrics.TASK_DURATION, took_s, {"status": finished.status})

    def status(self) -> DeviceStatus:
        record = self._lease.record
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
        )
