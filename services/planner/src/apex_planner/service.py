"""The planner's handler: a Scene comes, and the turn's one `planned` slot, or the task's end, is filled.

Consumes `scene`; reads `started`, `event`, `planned`, `finished` and the turn's picture; emits `planned` and
`finished`. It keeps nothing: any planner can take any turn, and the slot settles who was first.
"""

import asyncio
import logging
import time
from typing import Final, Protocol

from msgspec import structs

from apex_bus import metrics
from apex_bus.consume import Delivery, Done, Verdict
from apex_bus.tasklog import Entry, TaskLog
from apex_bus.tracing import mark_failed, span
from apex_planner.decide import Outcome, PlanFailure
from apex_planner.errors import PictureMissing
from apex_schemas import envelope
from apex_schemas.actions import Look, tool_name
from apex_schemas.decision import Picture
from apex_schemas.errors import SubjectMismatch
from apex_schemas.ids import new_attempt
from apex_schemas.scene import Scene, ScreenshotRef
from apex_schemas.slots import Slot, parse_slot
from apex_schemas.steps import PlannedStep, WorldState
from apex_schemas.task import TaskFinished

log = logging.getLogger(__name__)

OLDEST_SCENE_S: Final = 30.0
STAGE: Final = "planner"


class Planner(Protocol):
    async def plan(
        self, scene: Scene, world: WorldState, screenshot: Picture | None = None, *, task: str | None = None
    ) -> Outcome: ...


class Pictures(Protocol):
    async def get(self, reference: ScreenshotRef) -> Picture: ...


class PlannerService:
    """Handles deliveries of the consumer PLANNER. `pictures` None sends none to the model."""

    def __init__(
        self, tasks: TaskLog, planner: Planner, pictures: Pictures | None, *, oldest_s: float = OLDEST_SCENE_S
    ):
        self._tasks, self._planner, self._pictures, self._oldest_s = tasks, planner, pictures, oldest_s

    async def handle(self, delivery: Delivery) -> Verdict:
        slot, scene = _decode(delivery)
        assert slot.turn is not None
        planned, ended, world = await asyncio.gather(
            self._tasks.read(slot.sibling("planned")),
            self._tasks.read(slot.sibling("finished")),
            self._tasks.world(slot.device, slot.task, slot.turn),
            return_exceptions=True,
        )
        if any(isinstance(entry, Entry) for entry in (planned, ended)):
            return Done()
        for failed in (planned, ended, world):
            if isinstance(failed, BaseException):
                raise failed
        assert isinstance(world, WorldState)
        about = {"apex.turn": slot.turn, "apex.device": slot.device, "apex.page": scene.page}
        with span("plan", task=slot.task, cause=delivery.headers, attributes=about) as current:
            outcome = await self._decide(delivery, slot, scene, world)
            match outcome:
                case PlannedStep():
                    current.set_attribute("apex.action", tool_name(outcome.action))
                    await self._tasks.fill(
                        slot.sibling("planned"), outcome, attempt=new_attempt(), after=delivery.sequence
                    )
                case PlanFailure():
                    mark_failed(current, outcome.code, outcome.reason)
                    metrics.add(metrics.REFUSALS, 1, {"stage": "plan", "code": outcome.code})
                    log.warning("task %s fails in turn %d: %s", slot.task, slot.turn, outcome.reason)
                    await self._end(slot, world, outcome, after=delivery.sequence)
        return Done()

    async def _decide(self, delivery: Delivery, slot: Slot, scene: Scene, world: WorldState) -> Outcome:
        request = world.started.request
        if world.turn >= request.max_turns:
            return PlanFailure(code="max_turns", reason=f"{request.max_turns} turns did not reach the goal")
        if delivery.age_s > self._oldest_s:
            reason = f"the screen was read {delivery.age_s:.0f} s ago"
            return _stamped(_look(scene, "SCENE_TOO_OLD", reason), scene, world, begun=time.monotonic())
        begun = time.monotonic()
        outcome = await self._planner.plan(scene, world, await self._picture(scene), task=slot.task)
        return _stamped(outcome, scene, world, begun=begun) if isinstance(outcome, PlannedStep) else outcome

    async def _picture(self, scene: Scene) -> Picture | None:
        if self._pictures is None or scene.screenshot is None:
            return None
        try:
            return await self._pictures.get(scene.screenshot)
        except PictureMissing as missing:
            log.warning("deciding without a picture: %s", missing)
            return None

    async def _end(self, slot: Slot, world: WorldState, failure: PlanFailure, *, after: int) -> None:
        """End the task, unless something happened since the Scene: then that, or a cancel, was first."""
        end = TaskFinished(
            status="failed",
            turns=world.turn,
            finished_at_ms=_now_ms(),
            by=STAGE,
            reason=failure.reason,
            failure_reason=f"{failure.code}: {failure.reason}",
            stage=STAGE,
            goal=world.started.request.goal,
        )
        await self._tasks.fill(slot.sibling("finished"), end, attempt=new_attempt(), after=after)


def _decode(delivery: Delivery) -> tuple[Slot, Scene]:
    slot = parse_slot(delivery.subject)
    message = envelope.decode(delivery.data)
    envelope.check_subject(message, delivery.subject, task=slot.task, device=slot.device, turn=slot.turn)
    if slot.kind != "scene" or not isinstance(message.body, Scene):
        raise SubjectMismatch(delivery.subject, f"a {message.kind}")
    return slot, message.body


def _look(scene: Scene, code: str, reason: str) -> PlannedStep:
    return PlannedStep(action=Look(code=code, reason=reason), page=scene.page, fingerprint=scene.fingerprint)


def _stamped(step: PlannedStep, scene: Scene, world: WorldState, *, begun: float) -> PlannedStep:
    took = round((time.monotonic() - begun) * 1_000)
    changed = scene.differs_from(world.history[-1].fingerprint) if world.history else None
    return structs.replace(step, planned_at_ms=_now_ms(), plan_ms=took, screen_changed=changed)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
