"""The end of a task by the executor's own word: late, refused, cancelled, or not to be begun.

Emits `finished`. A task that no device had has no other who gives its trace a root: it gets it here.
"""

import logging
import time

from apex_bus import metrics, telemetry
from apex_bus.connection import Bus
from apex_bus.tasklog import Entry, Filled, Taken, TaskLog
from apex_bus.tracing import export_root
from apex_executor import decide
from apex_schemas import slots
from apex_schemas.ids import NO_DEVICE, new_attempt
from apex_schemas.slots import Slot
from apex_schemas.task import TaskFinished

log = logging.getLogger(__name__)


class Endings:
    def __init__(self, bus: Bus, tasklog: TaskLog) -> None:
        self._bus, self._log = bus, tasklog

    async def refuse(self, task: str, reason: str, *, goal: str, status: str = "failed", stage: str = "intake") -> None:
        """End a task that never started; refused when it has."""
        slot = slots.finished(NO_DEVICE, task)
        await self._fill(slot, 0, status=status, reason=reason, stage=stage, goal=goal, turns=0)

    async def end(self, newest: Entry, *, status: str, reason: str, stage: str, goal: str) -> None:
        """End a running task right behind its newest slot; refused when something has happened since."""
        slot = newest.slot.sibling("finished")
        turns = decide.turns_of(newest.slot.kind, newest.slot.turn)
        await self._fill(slot, newest.sequence, status=status, reason=reason, stage=stage, goal=goal, turns=turns)

    async def _fill(
        self, slot: Slot, after: int, *, status: str, reason: str, stage: str, goal: str, turns: int
    ) -> None:
        body = TaskFinished(
            status="cancelled" if status == "cancelled" else "failed",
            turns=turns,
            finished_at_ms=time.time_ns() // 1_000_000,
            by=self._bus.worker,
            reason=reason,
            failure_reason=reason,
            stage=stage,
            goal=goal,
        )
        outcome = await self._log.fill(slot, body, attempt=new_attempt(), after=after)
        if isinstance(outcome, Taken):
            log.info("task %s went on before it could be ended", slot.task)
        if isinstance(outcome, Filled) and slot.device == NO_DEVICE:
            _tell(slot.task, body)
            await telemetry.sent()


def _tell(task: str, body: TaskFinished) -> None:
    metrics.add(metrics.TASKS, 1, {"status": body.status, "stage": body.stage or ""})
    now_ns = time.time_ns()
    export_root(
        task,
        started_ns=now_ns,
        ended_ns=now_ns,
        failure=body.failure_reason or body.status,
        origin=None,
        attributes={"apex.turns": 0, "apex.status": body.status, "apex.stage": body.stage or ""},
    )
