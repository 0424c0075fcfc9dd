"""The planner's handler and its loops on a real NATS: the slot decides, whoever plans."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from integration.conftest import Nats, RunNats
from planner_lab import background, bus_of, model_server
from planner_world import TASK, call, element, event, network, scene, world

from apex_bus.connection import Bus
from apex_bus.consume import consume
from apex_bus.credentials import write_credentials
from apex_bus.provision import provision
from apex_bus.tasklog import Entry, Filled, TaskLog
from apex_planner import endpoint
from apex_planner.ai_planner import AIPlanner
from apex_planner.compose import compose, stand_ready
from apex_planner.decide import Outcome, PlanFailure
from apex_planner.pictures import BusPictures
from apex_planner.service import PlannerService
from apex_planner.stub import StubPlanner
from apex_schemas import subjects
from apex_schemas.actions import DescribeScreen, Look, Tap
from apex_schemas.consumers import SHARED_CONSUMERS
from apex_schemas.decision import Picture
from apex_schemas.geometry import Size
from apex_schemas.scene import Scene, ScreenshotRef
from apex_schemas.slots import Slot
from apex_schemas.steps import PlannedStep
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished

DEVICE = "pixel"
PLANNER = next(each for each in SHARED_CONSUMERS if each.name == "PLANNER")


@pytest.fixture
async def bus(nats_server: Nats) -> AsyncGenerator[Bus]:
    async with bus_of(Identity.PLANNER, nats_server.url) as made:
        await provision(made, (DEVICE,), store_mib=512)
        yield made


def slot(kind: Any, turn: int | None = 0) -> Slot:
    return Slot(device=DEVICE, task=TASK, kind=kind, turn=turn)


async def begin(
    log: TaskLog, *, max_turns: int = 30, scene: Scene | None = None, turns: int = 0, before: str = ""
) -> int:
    """Write a task as far as the Scene of turn `turns`; its sequence."""
    await log.fill(slot("started"), world(max_turns=max_turns).started, attempt="s")
    for turn in range(turns):
        await log.fill(slot("event", turn), event(fingerprint=before), attempt="e")
    filled = await log.fill(slot("scene", turns), scene or network(), attempt="p")
    assert isinstance(filled, Filled)
    return filled.sequence


async def plan(log: TaskLog) -> None:
    """Fill the plan of turn 0, as another planner does."""
    newest = await log.newest(DEVICE, TASK)
    assert newest is not None
    filled = await log.fill(slot("planned"), STEP, attempt="another", after=newest.sequence)
    assert isinstance(filled, Filled)


async def pending(bus: Bus) -> int:
    info = await bus.api("CONSUMER.INFO.TASKS.PLANNER")
    return info["num_pending"] + info["num_ack_pending"]


async def until(read: Callable[[], Awaitable[Entry | None]]) -> Entry:
    async with asyncio.timeout(15):
        while (entry := await read()) is None:
            await asyncio.sleep(0.02)
    return entry


class Fixed:
    """A planner that gives one outcome and counts how often it was asked."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome, self.asked, self.pictures = outcome, 0, list[Picture | None]()

    async def plan(self, scene: Scene, world: Any, screenshot: Picture | None = None, *, task: Any = None) -> Outcome:
        self.asked += 1
        self.pictures.append(screenshot)
        return self.outcome


class ByModel:
    async def decide(self, request: Any) -> Any:
        return call("tap", element="e2")


STEP = PlannedStep(action=DescribeScreen(), page="x")


async def test_a_scene_becomes_the_turns_planned_step(bus: Bus) -> None:
    log = TaskLog(bus)
    service = PlannerService(log, AIPlanner(ByModel()), None)
    async with background(consume(bus, PLANNER, service.handle)):
        await begin(log, turns=2)
        planned = await until(lambda: log.read(slot("planned", 2)))
    assert isinstance(planned.body, PlannedStep)
    assert isinstance(planned.body.action, Tap)
    assert (planned.body.page, planned.body.purpose) == ("Settings > Network", "to get on")
    assert planned.body.planned_at_ms > 0
    assert planned.body.decision is not None
    assert (planned.body.decision.task, planned.body.decision.turn) == (TASK, 2)


@pytest.mark.parametrize(
    ("turns", "before", "changed"), [(0, "", None), (1, "f0", True), (2, "f1", False), (1, "", None)]
)
async def test_a_step_says_whether_the_screen_is_another_than_that_of_the_turn_before(
    bus: Bus, turns: int, before: str, changed: bool | None
) -> None:
    log = TaskLog(bus)
    async with background(consume(bus, PLANNER, PlannerService(log, StubPlanner(), None).handle)):
        await begin(log, turns=turns, before=before, scene=scene(element(1)))
        planned = await until(lambda: log.read(slot("planned", turns)))
    assert isinstance(planned.body, PlannedStep)
    assert planned.body.screen_changed is changed


async def test_a_turn_that_is_planned_or_a_task_that_ended_is_not_planned_again(bus: Bus) -> None:
    log, planner = TaskLog(bus), Fixed(STEP)
    await begin(log)
    await plan(log)
    await log.fill(slot("event"), event(), attempt="e")
    await log.fill(slot("scene", 1), network(), attempt="p")
    newest = await log.newest(DEVICE, TASK)
    assert newest is not None
    end = TaskFinished(status="cancelled", turns=1, finished_at_ms=1, by="client")
    await log.fill(slot("finished", None), end, attempt="c", after=newest.sequence)
    async with background(consume(bus, PLANNER, PlannerService(log, planner, None).handle)):
        async with asyncio.timeout(30):
            while await pending(bus):
                await asyncio.sleep(0.02)
    assert planner.asked == 0
    assert await log.read(slot("planned", 1)) is None


async def test_a_plan_that_comes_after_the_end_of_its_task_is_not_stored(bus: Bus) -> None:
    """Else its act would be fenced by the plan alone, and carried out after the end."""
    log = TaskLog(bus)
    scene = await begin(log)

    class Slow(Fixed):
        async def plan(self, *args: Any, **more: Any) -> Outcome:
            end = TaskFinished(status="cancelled", turns=1, finished_at_ms=1, by="client")
            assert isinstance(await log.fill(slot("finished", None), end, attempt="c", after=scene), Filled)
            return self.outcome

    await handle(bus, Slow(STEP))
    assert await log.read(slot("planned")) is None


async def test_two_planners_on_one_scene_leave_one_step(bus: Bus, nats_server: Nats) -> None:
    log = TaskLog(bus)
    async with bus_of(Identity.PLANNER, nats_server.url) as second:
        await begin(log)
        stored = await bus.get("TASKS", slot("scene").subject)
        assert stored is not None
        for other in (bus, second):
            service = PlannerService(TaskLog(other), StubPlanner(), None)
            await service.handle(FakeDelivery(stored.subject, stored.data, stored.sequence))  # type: ignore[arg-type]
    info = await bus.api("STREAM.INFO.TASKS", b'{"subjects_filter":"task.*.*.*.planned"}')
    assert info["state"]["subjects"] == {slot("planned").subject: 1}


class FakeDelivery:
    """A delivery made by hand, to say how old it is."""

    def __init__(self, subject: str, data: bytes, sequence: int, age_s: float = 0.0) -> None:
        self.subject, self.data, self.sequence, self.age_s, self.headers = subject, data, sequence, age_s, {}


async def handle(bus: Bus, planner: Any, *, age_s: float = 0.0, pictures: Any = None, turn: int = 0) -> None:
    stored = await bus.get("TASKS", slot("scene", turn).subject)
    assert stored is not None
    delivery = FakeDelivery(stored.subject, stored.data, stored.sequence, age_s)
    await PlannerService(TaskLog(bus), planner, pictures).handle(delivery)  # type: ignore[arg-type]


async def test_a_scene_that_is_too_old_is_looked_at_again_and_nobody_is_asked(bus: Bus) -> None:
    log, planner = TaskLog(bus), Fixed(STEP)
    await begin(log)
    await handle(bus, planner, age_s=31)
    planned = await log.read(slot("planned"))
    assert planned is not None
    assert isinstance(planned.body.action, Look)
    assert (planned.body.action.code, planner.asked) == ("SCENE_TOO_OLD", 0)


async def test_a_failure_ends_the_task_with_its_reason_and_stage(bus: Bus) -> None:
    log = TaskLog(bus)
    await begin(log, turns=1)
    await handle(bus, Fixed(PlanFailure(code="denied", reason="anthropic answered 401")), turn=1)
    ended = await log.ended(TASK, device=DEVICE)
    assert ended is not None
    assert isinstance(ended.body, TaskFinished)
    assert (ended.body.status, ended.body.stage, ended.body.turns) == ("failed", "planner", 1)
    assert ended.body.failure_reason == "denied: anthropic answered 401"
    assert await log.read(slot("planned", 1)) is None


async def test_a_failure_after_something_else_happened_ends_nothing(bus: Bus) -> None:
    log = TaskLog(bus)
    await begin(log)

    class Slow(Fixed):
        async def plan(self, *args: Any, **more: Any) -> Outcome:
            await plan(log)
            return self.outcome

    await handle(bus, Slow(PlanFailure(code="denied", reason="r")))
    assert await log.ended(TASK, device=DEVICE) is None


async def test_when_all_turns_are_used_the_task_fails(bus: Bus) -> None:
    log, planner = TaskLog(bus), Fixed(STEP)
    await begin(log, max_turns=2, turns=2)
    await handle(bus, planner, turn=2)
    ended = await log.ended(TASK, device=DEVICE)
    assert ended is not None
    assert ended.body.failure_reason.startswith("max_turns: 2 turns")
    assert planner.asked == 0


async def test_the_turns_picture_reaches_the_planner_and_one_that_is_gone_or_another_does_not(bus: Bus) -> None:
    data = b"\x89PNG"
    for turn, (stored, hashed) in enumerate([(data, data), (b"other", data), (None, data)]):
        subject = subjects.shot(TASK, turn, "a")
        if stored is not None:
            await bus.publish(subject, stored)
        reference = ScreenshotRef(
            subject=subject, sha256=hashlib.sha256(hashed).hexdigest(), bytes=4, size=Size(width=1, height=1)
        )
        await begin(TaskLog(bus), scene=Scene(**{**_fields(network()), "screenshot": reference}), turns=turn)
        planner = Fixed(STEP)
        await handle(bus, planner, pictures=BusPictures(bus), turn=turn)
        assert [picture and picture.data for picture in planner.pictures] == [data if turn == 0 else None]


def _fields(scene: Scene) -> dict[str, Any]:
    return {name: getattr(scene, name) for name in scene.__struct_fields__}


async def test_the_service_is_ready_only_while_decisions_can_be_had() -> None:
    can, answering = True, asyncio.Event()

    async def answer_pings() -> None:
        answering.set()
        try:
            await asyncio.Event().wait()
        finally:
            answering.clear()

    async def can_decide() -> bool:
        return can

    async def becomes(wanted: bool) -> None:
        async with asyncio.timeout(20):
            while answering.is_set() != wanted:
                await asyncio.sleep(0.005)

    async with background(stand_ready(answer_pings, can_decide, every_s=0.01)):
        await becomes(True)
        can = False
        await becomes(False)
        can = True
        await becomes(True)


async def test_both_processes_as_they_are_composed_plan_a_turn_with_the_rights_of_their_identities(
    run_nats: RunNats, tmp_path: Path
) -> None:
    """The planner has neither key nor SDK, the endpoint has the key; each may do what the subjects table says."""
    credentials = write_credentials(tmp_path / "credentials", (DEVICE,))
    server = await run_nats(config=credentials.authorization)

    async def connected(identity: Identity) -> Bus:
        seed = str(credentials.seeds[identity])
        return await stack.enter_async_context(bus_of(identity, server.url, seed))

    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(model_server())
        await provision(await connected(Identity.PROVISIONER), (DEVICE,), store_mib=512)
        ours, theirs = await connected(Identity.PLANNER), await connected(Identity.ENDPOINT)
        perception, executor = await connected(Identity.PERCEPTION), await connected(Identity.EXECUTOR)
        loops = [
            *await endpoint.compose(theirs, model.environ("anthropic")),
            *await compose(ours, {"AI_PLANNER_ENABLED": "true"}),
        ]
        async with background(asyncio.gather(*loops)):
            async with asyncio.timeout(30):
                while not await executor.ping("planner", timeout_s=0.5):
                    await asyncio.sleep(0.05)
            await TaskLog(executor).fill(slot("started"), world().started, attempt="s")
            await TaskLog(perception).fill(slot("scene"), network(), attempt="p")
            planned = await until(lambda: TaskLog(executor).read(slot("planned")))
            record = await theirs.get("DECISIONS", subjects.decision(TASK, 0, 0))
        assert not any(bus.fatal.done() for bus in (ours, theirs))
    assert isinstance(planned.body, PlannedStep)
    assert planned.body.rationale is not None
    assert planned.body.rationale.startswith("[scripted]")
    assert planned.body.target is not None
    assert planned.body.target.label == "Wi-Fi"
    assert record is not None
