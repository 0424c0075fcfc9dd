"""The server as a deputy: it writes answers, copies and deliveries where a service's reply subject says, with its own
rights. Services share one account, so it does that for a service that was taken over; nobody acts on what comes of it.
"""

import asyncio
from collections.abc import AsyncGenerator

import components
import pytest
import pytest_asyncio

from apex_bus.connection import Bus, flushed
from apex_lab.stack import Stack
from apex_schemas import envelope
from apex_schemas.actions import Tap
from apex_schemas.geometry import Point
from apex_schemas.ids import new_task_id
from apex_schemas.steps import PlannedStep, WorldEvent
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("confused-deputy"),
]

I = Identity  # noqa: E741
GET = "$JS.API.DIRECT.GET"
CORNER = Point(x=7, y=9)
FORGED = PlannedStep(action=Tap(at=CORNER), page="Settings", ungrounded=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stack]:
    components.nats()
    components.postgres()
    async with Stack(tmp_path_factory.mktemp("stack")) as running:
        yield running


async def run(stack: Stack, task: str, meddle: "Meddle") -> TaskFinished:
    """Run a task, and have it meddled with as soon as it has started."""
    async with stack.client() as client, client.following(task) as happenings:
        await client.submit(TaskRequest(goal="look around 4 turns", task=task, timeout_s=30), "any")
        async for happening in happenings:
            if isinstance(happening.body, TaskStarted):
                await meddle.begin()
            if isinstance(happening.body, TaskFinished):
                return happening.body
    raise AssertionError("followed to no end")


class Meddle:
    def __init__(self, bus: Bus, *steps: tuple[str, bytes, str | None]) -> None:
        self._bus, self._steps = bus, steps

    async def begin(self) -> None:
        for subject, data, reply in self._steps:
            await self._bus.client.publish(subject, data, reply=reply or "")
        await flushed(self._bus.client)


async def tapped_the_corner(stack: Stack) -> bool:
    acts = await stack.phones.acts("sim-1")
    return any((act.get("x"), act.get("y")) == (CORNER.x, CORNER.y) for act in acts)


def step_of(task: str, turn: int) -> bytes:
    return envelope.encode(FORGED, task=task, device="sim-1", turn=turn, attempt="forged")


@pytest.mark.parametrize("turn", [0, 2])
async def test_a_step_that_the_server_copied_into_the_log_is_not_acted_on(stack: Stack, turn: int) -> None:
    """Perception writes a step where it may write, and has it read back to where only the planner may."""
    task, elsewhere = new_task_id(), new_task_id()
    async with stack.bus(I.PERCEPTION) as perception:
        source = f"task.sim-1.{elsewhere}.0.scene"
        await perception.publish(source, step_of(task, turn))
        planned = f"task.sim-1.{task}.{turn}.planned"
        end = await run(stack, task, Meddle(perception, (f"{GET}.TASKS.{source}", b"", planned)))
    assert not await tapped_the_corner(stack)
    assert end.status == "failed" or end.turns > turn
    async with stack.bus(I.OPERATOR) as operator:
        letter = await operator.get("DEAD", "dead.executor")
    assert letter is not None
    dead = envelope.decode(letter.data).body
    assert (dead.subject, "not believed" in dead.reason) == (planned, True)


async def test_the_server_s_acknowledgement_in_a_slot_fails_the_task_and_no_more(stack: Stack) -> None:
    task = new_task_id()
    async with stack.bus(I.PERCEPTION) as perception:
        planned = f"task.sim-1.{task}.2.planned"
        end = await run(stack, task, Meddle(perception, ("dead.perception", b"x", planned)))
    assert end.status == "failed"
    assert "planned" in (end.failure_reason or "")


async def test_a_message_of_another_turn_that_is_delivered_into_a_slot_is_not_believed(stack: Stack) -> None:
    """A consumer delivers to whatever reply subject its puller names."""
    task = new_task_id()
    async with stack.bus(I.PERCEPTION) as perception:
        later = f"task.sim-1.{task}.3.event"
        pull = "$JS.API.CONSUMER.MSG.NEXT.TASKS.PERCEPTION"
        end = await run(stack, task, Meddle(perception, *[(pull, b"1", later)] * 3))
        in_its_slot = await perception.get("TASKS", later)
    if in_its_slot is None:  # what was taken away was given to nobody: the watchdog said so, or it came again
        assert end.status == "succeeded" or end.stage == "perception", end
    else:
        assert isinstance(envelope.decode(in_its_slot.data).body, WorldEvent)
        assert end.status == "succeeded", end


async def test_services_answer_inboxes_only(stack: Stack) -> None:
    async with stack.bus(I.PLANNER) as planner, stack.bus(I.EXECUTOR) as executor:
        before = await executor.get("DEVICES", "device.sim-1")
        for subject in ("$SRV.PING.planner-decision", "planner-decision.decide"):
            await planner.client.publish(subject, b"x", reply="device.sim-1")
        await flushed(planner.client)
        assert await planner.ping("planner-decision")
        after = await executor.get("DEVICES", "device.sim-1")
    assert before is not None
    assert after is not None
    assert envelope.decode(after.data).kind == "device_record.v1"


async def test_an_event_that_was_stored_before_is_not_taken_for_another_turn_s(stack: Stack) -> None:
    """Replayed as it was: its envelope names the turn that it was of."""
    task = new_task_id()
    event = WorldEvent(action=Tap(at=CORNER), success=True)
    data = envelope.encode(event, task=task, device="sim-1", turn=0, attempt="a")
    async with stack.bus(I.EXECUTOR) as executor:
        end = await run(stack, task, Meddle(executor, (f"task.sim-1.{task}.2.event", data, None)))
    assert end.status == "failed"
    async with stack.client() as client, asyncio.timeout(20):
        while any(status.state != "ready" for status in await client.devices()):
            await asyncio.sleep(0.1)
