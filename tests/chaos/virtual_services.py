"""Who sees and who decides in virtual time: perception as far as the protocol goes, a planner, and its provider.

The planner asks through the real RecordedClient and BusLedger, so that paying once is the real thing.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chaos.virtual_process import Life

from apex_bus.consume import Done, Later, Verdict
from apex_bus.tasklog import TaskLog
from apex_planner.clients.protocol import Answer
from apex_planner.ledger import BusLedger
from apex_planner.recorded import RecordedClient
from apex_schemas import envelope, subjects
from apex_schemas.actions import FinishTask, Tap
from apex_schemas.decision import DecisionRequest, ToolCallDecision
from apex_schemas.devices import DeviceRecord
from apex_schemas.geometry import Point, Size
from apex_schemas.ids import new_attempt
from apex_schemas.scene import Scene, Screen
from apex_schemas.slots import Slot, parse_slot
from apex_schemas.steps import DecisionKey, PlannedStep, WorldState


@dataclass
class Provider:
    life: Life

    async def ask(self, request: DecisionRequest) -> Answer:
        world = self.life.world
        await self.life.point()
        world.paid[request.key].append(self.life)
        await asyncio.sleep(world.log.rng.uniform(0.2, 6))
        await self.life.point()
        return Answer(reply=ToolCallDecision(tool="tap", arguments={}), raw="{}", ignored=())


@dataclass
class VirtualPlanner:
    """A Planner that asks its provider once a turn, taps, and ends the task in its last turn."""

    life: Life

    def __post_init__(self) -> None:
        ledger = BusLedger(self.life)  # type: ignore[arg-type]
        self.client = RecordedClient(Provider(self.life), ledger, concurrency=8)

    async def plan(
        self, scene: Scene, world: WorldState, screenshot: Any = None, *, task: str | None = None
    ) -> PlannedStep:
        assert task is not None
        key = DecisionKey(task=task, turn=world.turn, call=0)
        await self.client.decide(DecisionRequest(key=key, system_prompt="", user_blocks=(), tools=()))
        number, turns = self.life.world.numbers[task]
        if world.turn + 1 >= turns:
            return PlannedStep(action=FinishTask(success=True, reason="done"), page="p", decision=key)
        return PlannedStep(action=Tap(at=Point(x=number, y=world.turn)), page="p", decision=key)


def observes(life: Life) -> Callable[[Any], Any]:
    """Perception as far as the protocol goes: the next scene, if the device is still on the task."""
    tasks = TaskLog(life)  # type: ignore[arg-type]

    async def handle(delivery: Any) -> Verdict:
        slot = parse_slot(delivery.subject)
        turn = 0 if slot.kind == "started" else (slot.turn or 0) + 1
        wanted = Slot(device=slot.device, task=slot.task, kind="scene", turn=turn)
        if await tasks.read(wanted) or await tasks.read(slot.sibling("finished")):
            return Done()
        stored = await life.get("DEVICES", subjects.device(slot.device))
        record = envelope.decode(stored.data).body if stored else None
        if not isinstance(record, DeviceRecord) or record.claim is None or record.claim.task != slot.task:
            return Done()
        if record.session is None:
            return Later(1)
        scene = Scene(app="a", page="p", screen=Screen(size=Size(width=1, height=1)))
        await tasks.fill(wanted, scene, attempt=new_attempt())
        return Done()

    return handle
