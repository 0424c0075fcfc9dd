"""The tasks of one device, one after the other: claimed, carried through their turns, and let go when they have ended.

Consumes the device's `planned` and `finished`, and at a start or takeover the claim on its record; `turns` and
`claims` write the log. Owns the claim's end: apps closed, the trace given its root, the record cleared.
"""

import asyncio
import logging
from typing import Final

from apex_bus import metrics, telemetry
from apex_bus.connection import Bus
from apex_bus.consume import Delivery, Done, Later, Verdict
from apex_bus.errors import Transient
from apex_bus.tasklog import Entry, TaskLog, Unreadable, entry_of
from apex_bus.tracing import export_root
from apex_executor.claims import Claims
from apex_executor.device import Device
from apex_executor.settings import ExecutorSettings
from apex_executor.turns import Turns
from apex_schemas.actions import TerminateApp
from apex_schemas.devices import Claim
from apex_schemas.errors import LogTorn, WireError
from apex_schemas.task import TaskFinished, TaskStarted

log = logging.getLogger(__name__)

_GRACE_S: Final = 15.0
_THEIRS_S: Final = 0.5


class Tasks:
    """The tasks of one device. `changed` is set when it is free of one; it also ends the wait for the next."""

    def __init__(
        self, bus: Bus, tasklog: TaskLog, device: Device, settings: ExecutorSettings, *, changed: asyncio.Event
    ) -> None:
        self._log, self._device, self._lease, self._changed = tasklog, device, device.lease, changed
        self._alias = device.config.alias
        self._claims = Claims(bus, tasklog, device.config, device.prepare)
        self._turns = Turns(bus, tasklog, device, settings)
        self._freeing = asyncio.Lock()
        self._rooted = ""

    async def take_next(self) -> None:
        """Wait a while for a request, and claim it."""
        await self._claims.take_next(self._lease, until=self._changed)

    async def resume(self, claim: Claim) -> None:
        """Go on with a claim from the last slot of its log, without waiting for redelivery."""
        if not await self._claims.start(claim, self._lease):
            return
        newest = await self._log.newest(self._alias, claim.task)
        if newest is None:
            raise Transient(f"task {claim.task} has started and cannot be read yet", delay_s=0.5)
        log.info("%s goes on with task %s from %s", self._alias, claim.task, newest.slot.kind)
        if newest.slot.kind == "finished":
            await self._free(claim.task)
        elif newest.slot.kind in ("planned", "acting"):
            planned = await self._log.read(newest.slot.sibling("planned"))
            if planned is not None and not isinstance(planned.body, Unreadable):  # that ends by the watchdog
                await self._take(planned, {})

    async def on_slot(self, delivery: Delivery) -> Verdict:
        """A `planned` or `finished` of this device."""
        try:
            entry = entry_of(delivery)
        except WireError:
            if delivery.subject.endswith(".end.finished"):  # an end all the same
                if self._may_be_another_drivers(task := delivery.subject.split(".")[2]):
                    return Later(_THEIRS_S)
                await self._free(task)
            raise
        await self._device.usable.wait()
        return await self._take(entry, delivery.headers)

    async def _take(self, entry: Entry, headers: dict[str, str]) -> Verdict:
        task = entry.slot.task
        if self._may_be_another_drivers(task):
            return Later(_THEIRS_S)
        if isinstance(entry.body, TaskFinished) or (
            self._lease.claim is not None and self._lease.claim.task == task and await self._to_its_end(entry, headers)
        ):
            await self._free(task)
        return Done()

    def _may_be_another_drivers(self, task: str) -> bool:
        """Whether somebody may have taken the device over and be on this task, whose message must then not be
        acknowledged by us: that we have another task, or none, counts only while nobody can have done so."""
        claim = self._lease.claim
        return (claim is None or claim.task != task) and not self._lease.held()

    async def _to_its_end(self, entry: Entry, headers: dict[str, str]) -> bool:
        """A turn, not cut short by the end of this process: what is in hand has its outcome written."""
        turn = asyncio.ensure_future(self._turn(entry, headers))
        try:
            return await asyncio.shield(turn)
        except asyncio.CancelledError:
            self._device.leaving = True
            if self._turns.approvals.waiting:  # nothing was begun: the next driver goes on with the wait
                turn.cancel()
            await asyncio.wait([turn], timeout=_GRACE_S)
            raise

    async def _turn(self, entry: Entry, headers: dict[str, str]) -> bool:
        async with self._device.one_at_a_time:
            return await self._turns.take(entry, cause=headers)

    async def let_go_if_ended(self) -> None:
        """The `finished` of the task in hand may have been met and acknowledged before we had it: a request that is
        delivered again, read beside a replica that lags, is claimed once more. Nobody else would let it go."""
        claim = self._lease.claim
        try:
            if claim is None or await self._log.ended(claim.task, device=self._alias) is None:
                return
            async with self._device.one_at_a_time:
                pass  # what is in hand has its outcome written first
            await self._free(claim.task)
        except Transient as error:
            log.info("%s looks again whether its task has ended: %s", self._alias, error)

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
        ended = await self._log.ended(task, device=self._alias)
        if ended is None:
            raise Transient(f"the end of task {task} cannot be read yet", delay_s=0.2)
        try:
            started = await self._log.started_entry(self._alias, task)
        except LogTorn as error:  # a replica has its end already, and not yet its beginning
            raise Transient(f"the beginning of task {task} cannot be read yet", delay_s=0.2) from error
        await self._tidy(started.body)
        finished: TaskFinished = ended.body
        await self._root(claim, started.timestamp_ns, ended.timestamp_ns, finished)
        await self._lease.update(claim=None, state="ready", waiting_turn=None)
        self._device.used = True
        self._changed.set()
        metrics.add(metrics.TASKS, 1, {"status": finished.status, "stage": finished.stage or ""})
        took_s = (ended.timestamp_ns - started.timestamp_ns) / 1e9
        metrics.record(metrics.TASK_DURATION, took_s, {"status": finished.status})

    async def _tidy(self, begun: TaskStarted) -> None:
        """Close the apps that the request wants closed at the end. The task's end is written: a failure changes
        nothing about it."""
        for app in begun.request.terminate:
            problem = await self._device.aside(TerminateApp(app=app), f"{app!r} could not be closed after the task")
            if problem is not None:
                log.warning("%s: %s", self._alias, problem)

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
                    "apex.device": self._alias,
                    "apex.turns": finished.turns,
                    "apex.status": finished.status,
                    "apex.stage": finished.stage or "",
                },
            )
            self._rooted = claim.task
        await telemetry.sent()
