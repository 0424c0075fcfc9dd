"""The driver of one device: holds its record, keeps its session, takes tasks and carries their turns through.

Consumes its pools' requests and its device's `planned` and `finished`; owns the device record while its lease lasts.
Losing the lease ends everything at once; a device that fails is set aside for a growing while, and eats no queue.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from typing import Final

from apex_bus import metrics, telemetry
from apex_bus.connection import Bus
from apex_bus.consume import Delivery, Done, Verdict, consume
from apex_bus.errors import Transient
from apex_bus.tasklog import Entry, TaskLog, Unreadable, entry_of
from apex_bus.tracing import export_root
from apex_executor.apps import candidates
from apex_executor.claims import Claims
from apex_executor.errors import ActRefused, DeviceFailed, LeaseLost, Retired
from apex_executor.failures import classify
from apex_executor.lease import Lease
from apex_executor.outcomes import Outcome
from apex_executor.session import PhoneSession, server_of
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_executor.turns import Turns
from apex_schemas.actions import DeviceAction, LaunchApp, TerminateApp
from apex_schemas.consumers import device_consumer
from apex_schemas.devices import Claim, DeviceControl, DeviceStatus, SessionHandle, SessionReply
from apex_schemas.errors import WireError
from apex_schemas.steps import Target
from apex_schemas.task import TaskFinished, TaskStarted

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
        self._claims = Claims(bus, tasklog, config, self._prepare)
        self._turns = Turns(bus, tasklog, self, settings)
        self._one_at_a_time = asyncio.Lock()
        self._freeing = asyncio.Lock()
        self._usable = asyncio.Event()
        self._changed = asyncio.Event()
        self._gone: set[str] = set()
        self._rooted = ""
        self._retiring = self._used = self._leaving = False
        self._retry_at = 0.0
        self.driving = False

    @property
    def handle(self) -> SessionHandle | None:
        return self._session.handle

    async def run(self) -> None:
        """Drive the device whenever it is ours, until it is retired."""
        try:
            while not self._retiring:
                old = await self._lease.acquire()
                self.driving, self._leaving = True, False
                try:
                    await self._drive(old.session if old else None)
                except* LeaseLost as lost:
                    log.warning("%s", lost.exceptions[0])
                except* Retired as retired:
                    log.info("%s", retired.exceptions[0])
                finally:
                    self.driving = False
                    self._usable.clear()
        finally:
            await asyncio.shield(self._stop())

    async def _drive(self, old: SessionHandle | None) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lease.keep())
            group.create_task(consume(self._bus, device_consumer(self.config.alias), self._on_slot))
            group.create_task(self._serve(old))

    async def _stop(self) -> None:
        """End in order: what is in hand has its outcome written first, then the device is free for the next one."""
        async with self._one_at_a_time:
            await self._session.end()
        await self._lease.release()
        self._session.shut()

    async def _serve(self, old: SessionHandle | None) -> None:
        """Open, resume, take work; and set the device aside when it fails."""
        if old is not None and await self._session.fence(old):
            self._gone.add(old.id)
        while True:
            try:
                if self._lease.claim is None:
                    await self._rest()
                await self._open()
                if self._lease.claim is not None:
                    await self._resume(self._lease.claim)
                while self._usable.is_set():
                    await self._work()
                raise DeviceFailed(self.config.alias, "its session was lost and could not be made again")
            except DeviceFailed as failed:
                await self._set_aside(failed)
            except Transient as error:
                log.warning("%s waits: %s", self.config.alias, error)
                await asyncio.sleep(error.delay_s)

    async def _set_aside(self, failed: DeviceFailed) -> None:
        """Take no task for a while, longer each time in a row; `apex devices resume` ends the wait."""
        self._usable.clear()
        self._changed.clear()
        failures = self._lease.record.failures
        delay = _QUARANTINE_S[min(failures, len(_QUARANTINE_S) - 1)]
        self._retry_at = time.monotonic() + delay
        log.error("%s; set aside for %.0f s", failed, delay)
        await self._lease.update(state="quarantined", session=None, reason=failed.reason, failures=failures + 1)
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
            async with self._one_at_a_time:
                await self._session.end()
            await self._lease.update(state="waiting", session=None, reason=self._lease.record.paused)
            await self._changed.wait()

    async def _work(self) -> None:
        """Take one request, or wait until something about the task in hand changes."""
        self._changed.clear()
        if self._lease.claim is None:
            await self._rest()
            await self._alive()
            await self._lease.update(state="ready", reason=None, failures=0)
            await self._claims.take_next(self._lease, until=self._changed)
            return
        await self._change(_PROBE_S)

    async def _alive(self) -> None:
        """Have a session that answers, a new one after a task where that is wanted. Raises DeviceFailed when none can
        be had."""
        async with self._one_at_a_time:
            stale = self._used and not self._settings.reuse_session
            if stale or not await self._session.alive():
                await self._reopen()
            self._used = False

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
        await self._session.clear(None)
        handle = await self._session.open()
        await self._lease.update(session=handle)

    async def heal(self) -> None:
        try:
            await self._reopen()
        except DeviceFailed as failed:
            log.error("%s", failed)
            self._usable.clear()
            self._changed.set()

    async def fence(self, session: str, server: str = "") -> bool:
        """The session of an act that somebody began may be neither ours nor the one that the last driver had: a driver
        in between may have ended it, and died. It is ended again where it is known to live on our own server."""
        if session in self._gone:
            return True
        if self._session.handle is not None and self._session.handle.id == session:
            await self.heal()
        elif server and server == server_of(self.config.url):
            old = SessionHandle(id=session, url=self.config.url, platform=self.config.platform)
            if await self._session.fence(old):
                self._gone.add(session)
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

    def held(self) -> bool:
        return self._lease.held() and not self._leaving

    def packages(self, app: str, /) -> Sequence[str]:
        return candidates(app, self.config.platform, self.config.apps)

    async def _prepare(self, app: str) -> str | None:
        """Open the app that a task is to begin in. Why that cannot be done; None when it is in front."""
        return await self._aside(LaunchApp(app=app), f"{app!r} could not be opened before the task")

    async def _aside(self, action: DeviceAction, otherwise: str) -> str | None:
        """An act that belongs to no turn, and does no harm when it is done again. What came of it, if not what was
        wanted."""
        async with self._one_at_a_time:
            try:
                outcome = await self.act(action, None)
            except ActRefused as refused:
                return f"{otherwise}: {refused}"
            except Exception as error:  # noqa: BLE001  (every failure of an act is classified and told)
                failure = classify(error)
                return f"{otherwise}: {failure.code}: {failure.message}"
        return None if outcome.success else f"{otherwise}: {outcome.code}: {outcome.message}"

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
            if planned is not None and not isinstance(planned.body, Unreadable):  # that ends by the watchdog
                await self._take(planned, {})

    async def _on_slot(self, delivery: Delivery) -> Verdict:
        """A `planned` or `finished` of this device."""
        try:
            entry = entry_of(delivery)
        except WireError:
            if delivery.subject.endswith(".end.finished"):  # an end all the same
                await self._free(delivery.subject.split(".")[2])
            raise
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
            self._leaving = True
            if self._turns.approvals.waiting:  # nothing was begun: the next driver goes on with the wait
                turn.cancel()
            await asyncio.wait([turn], timeout=_GRACE_S)
            raise

    async def _turn(self, entry: Entry, headers: dict[str, str]) -> bool:
        async with self._one_at_a_time:
            return await self._turns.take(entry, cause=headers)

    async def _free(self, task: str) -> None:
        """The device is done with a task; its trace gets its root.

        Whoever resumes and whoever is told of the end may come here at once: the second must not clear the claim that
        the first has made room for.
        """
        async with self._freeing:
            claim = self._lease.claim
            if claim is not None and claim.task == task:
                await self._free_of(claim)

    async def _free_of(self, claim: Claim) -> None:
        task = claim.task
        ended = await self._log.ended(task, device=self.config.alias)
        if ended is None:
            raise Transient(f"the end of task {task} cannot be read yet", delay_s=0.2)
        started = await self._log.started_entry(self.config.alias, task)
        await self._tidy(started.body)
        finished: TaskFinished = ended.body
        await self._root(claim, started.timestamp_ns, ended.timestamp_ns, finished)
        await self._lease.update(claim=None, state="ready", waiting_turn=None)
        self._used = True
        self._changed.set()
        metrics.add(metrics.TASKS, 1, {"status": finished.status, "stage": finished.stage or ""})
        took_s = (ended.timestamp_ns - started.timestamp_ns) / 1e9
        metrics.record(metrics.TASK_DURATION, took_s, {"status": finished.status})

    async def _root(self, claim: Claim, started_ns: int, ended_ns: int, finished: TaskFinished) -> None:
        """Give the trace its root, and have it sent: while the claim stands, whoever takes over does it again."""
        if claim.task != self._rooted:
            export_root(
                claim.task,
                started_ns=started_ns,
                ended_ns=ended_ns,
                failure=None if finished.status == "succeeded" else finished.failure_reason or finished.status,
                origin=claim.traceparent,
                attributes={
                    "apex.device": self.config.alias,
                    "apex.turns": finished.turns,
                    "apex.status": finished.status,
                    "apex.stage": finished.stage or "",
                },
            )
            self._rooted = claim.task
        await telemetry.sent()

    async def _tidy(self, begun: TaskStarted) -> None:
        """Close the apps that the request wants closed at the end. The task's end is written: a failure changes
        nothing about it."""
        for app in begun.request.terminate:
            problem = await self._aside(TerminateApp(app=app), f"{app!r} could not be closed after the task")
            if problem is not None:
                log.warning("%s: %s", self.config.alias, problem)

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
        )


def _age_s(since_ms: int) -> int:
    return max(0, round(time.time() - since_ms / 1_000))
