"""Perception against a real NATS and simulated phones: the test plays executor and planner."""

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec
import pytest
import pytest_asyncio
from appium import webdriver
from appium.options.common.base import AppiumOptions

from apex_bus import connection
from apex_bus.connection import Bus, connect
from apex_bus.consume import Later, consume
from apex_bus.delivery import Delivery
from apex_bus.micro import Endpoint
from apex_bus.micro import serve as serve_micro
from apex_bus.provision import provision
from apex_bus.pull import Pull
from apex_bus.records import Record
from apex_bus.settings import BusSettings
from apex_bus.tasklog import Filled, TaskLog
from apex_lab.phone import Phone, serve
from apex_lab.stack.http import Handsets
from apex_perception.appium import attach
from apex_perception.compose import CONSUMER, compose
from apex_perception.service import PerceptionService
from apex_perception.settings import PerceptionSettings
from apex_schemas import envelope, slots, subjects
from apex_schemas.actions import Action, FinishTask, LaunchApp, Tap
from apex_schemas.devices import Claim, DeviceRecord, SessionHandle, SessionReply, SessionRequest
from apex_schemas.geometry import Point
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.scene import Scene
from apex_schemas.slots import Slot
from apex_schemas.steps import WorldEvent
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

DEVICE = "sim-1"
T = TypeVar("T")


async def until(check: Callable[[], Awaitable[T | None]], within_s: float = 30.0) -> T:
    deadline = time.monotonic() + within_s
    while (found := await check()) is None:
        assert time.monotonic() < deadline, f"nothing came within {within_s} s"
        await asyncio.sleep(0.02)
    return found


class Stage:
    """One phone with a session and a device record; the log; a loop of perception."""

    def __init__(self, bus: Bus, url: str, phones: Handsets) -> None:
        self.bus, self.url, self.phones = bus, url, phones
        self.log = TaskLog(bus)
        self.record = Record(bus, "DEVICES", subjects.device(DEVICE))
        self.drivers: list[Any] = []
        self.threads = ThreadPoolExecutor(8)

    async def session(self) -> SessionHandle:
        options = AppiumOptions().load_capabilities(
            {"platformName": "Android", "appium:automationName": "UiAutomator2", "appium:udid": DEVICE}
        )
        driver: Any = await asyncio.to_thread(webdriver.Remote, self.url, options=options)
        await asyncio.to_thread(driver.update_settings, {"enableMultiWindows": True, "waitForIdleTimeout": 50})
        self.drivers.append(driver)
        return SessionHandle(id=driver.session_id, url=self.url)

    async def hold(self, task: str | None, session: SessionHandle | None) -> None:
        """Write the device's record as its executor would."""
        claim = Claim(task=task, request=b"", request_sequence=1, pool="any", attempt="a") if task else None
        stored = await self.record.read()
        body = DeviceRecord(worker="w", epoch=1, state="busy", session=session, claim=claim)
        last = stored.sequence if stored else 0
        assert await self.record.write(body, attempt=new_attempt(), last=last, device=DEVICE) is not None

    async def start(self) -> str:
        task = new_task_id()
        await self.hold(task, await self.session())
        await self.begin(task)
        return task

    async def begin(self, task: str) -> None:
        body = TaskStarted(
            request=TaskRequest(goal="g"), pool="any", request_sequence=1, request_digest="d", started_at_ms=1
        )
        slot = slots.started(DEVICE, task)
        assert isinstance(await self.log.fill(slot, body, attempt=new_attempt()), Filled)

    async def event(self, task: str, turn: int, action: Action, *, success: bool | None = True) -> None:
        slot = Slot(device=DEVICE, task=task, turn=turn, kind="event")
        assert isinstance(
            await self.log.fill(slot, WorldEvent(action=action, success=success), attempt=new_attempt()), Filled
        )

    async def scene(self, task: str, turn: int, within_s: float = 30.0) -> Scene:
        slot = Slot(device=DEVICE, task=task, turn=turn, kind="scene")
        entry = await until(lambda: self.log.read(slot), within_s)
        return entry.body

    @contextlib.asynccontextmanager
    async def perception(self, **settings: Any) -> AsyncGenerator[None]:
        """Another loop of perception, until the block ends."""
        service = PerceptionService(self.bus, TaskLog(self.bus), PerceptionSettings(**settings), attach, self.threads)
        loop = asyncio.create_task(consume(self.bus, CONSUMER, service.handle, concurrency=4))
        try:
            yield
        finally:
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)

    async def nothing_more(self) -> bool:
        """Whether PERCEPTION has handled all that was sent to it."""
        info = await self.bus.api("CONSUMER.INFO.TASKS.PERCEPTION")
        return info["num_pending"] == 0 and info["num_ack_pending"] == 0


@pytest_asyncio.fixture
async def stage(nats_server: Any) -> AsyncGenerator[Stage]:
    bus = await connect(Identity.PERCEPTION, BusSettings(url=nats_server.url))
    await provision(bus, devices=(DEVICE,), store_mib=512)
    async with serve([Phone(DEVICE, permission_popup=False)]) as url, Handsets(url) as phones:
        stage = Stage(bus, url, phones)
        yield stage
        for driver in stage.drivers:
            with contextlib.suppress(Exception):
                await asyncio.to_thread(driver.quit)
    stage.threads.shutdown()
    await bus.close()


async def test_a_started_task_gets_a_scene_of_the_phone_and_an_act_the_next_one(stage: Stage) -> None:
    async with stage.perception():
        task = await stage.start()
        first = await stage.scene(task, 0)
        icon = next(element for element in first.elements if element.label == "Settings")
        assert first.settled
        assert icon.tap_point is not None
        await asyncio.to_thread(stage.drivers[0].tap, [(icon.tap_point.x, icon.tap_point.y)])
        await stage.event(task, 0, Tap(at=icon.tap_point))
        second = await stage.scene(task, 1)
    assert second.page == "Settings"
    assert any(element.label.startswith("Network & internet") for element in second.elements)
    assert second.screenshot is None


async def test_the_picture_is_stored_before_the_scene_that_names_it(stage: Stage) -> None:
    async with stage.perception(screenshot="always"):
        task = await stage.start()
        reference = (await stage.scene(task, 0)).screenshot
    assert reference is not None
    stored = await stage.bus.get("SHOTS", reference.subject)
    assert stored is not None
    assert stored.data.startswith(b"\x89PNG")
    assert hashlib.sha256(stored.data).hexdigest() == reference.sha256
    assert (reference.size.width, reference.size.height) == (540, 1200)


async def test_picture_too_large_for_a_message_is_left_out_and_the_scene_names_none(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_PUBLISH_BYTES", 9_000)
    async with stage.perception(screenshot="always"):
        task = await stage.start()
        seen = await stage.scene(task, 0)
    assert seen.elements
    assert seen.screenshot is None


async def test_scene_too_large_for_a_message_fails_its_task_with_that_reason_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await stage.start()
    monkeypatch.setattr(envelope, "MAX_MESSAGE_BYTES", 1_500)
    async with stage.perception():
        ended = await until(lambda: stage.log.ended(task, device=DEVICE))
    assert (ended.body.status, ended.body.stage) == ("failed", "perception")
    assert "more than the 1,500 allowed" in ended.body.failure_reason


async def test_two_perceptions_fill_each_scene_once(stage: Stage) -> None:
    async with stage.perception(), stage.perception():
        task = await stage.start()
        for turn in range(4):
            await stage.scene(task, turn)
            await stage.event(task, turn, LaunchApp(app="com.android.settings"), success=False)
        await stage.scene(task, 4)
        await until(lambda: _true(stage.nothing_more()))


async def test_a_record_that_a_lagging_replica_tells_is_read_again_and_then_the_phone_is_seen(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the claim of the task, which is older than its first message, had not come to whoever is read from."""
    monkeypatch.setattr("apex_perception.service._LAG_S", 60.0)
    task = new_task_id()
    session = await stage.session()
    await stage.hold(None, session)
    async with stage.perception():
        await stage.begin(task)

        async def came_again() -> bool | None:
            info = await stage.bus.api("CONSUMER.INFO.TASKS.PERCEPTION")
            return True if info["num_redelivered"] else None

        await until(came_again)
        await stage.hold(task, session)
        assert await stage.scene(task, 0)


async def test_nothing_is_seen_after_the_end_or_once_the_device_is_on_another_task(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apex_perception.service._LAG_S", 1.0)
    ended, moved = new_task_id(), new_task_id()
    await stage.hold(moved, await stage.session())
    await stage.begin(ended)
    await stage.begin(moved)
    await stage.hold(new_task_id(), None)
    finish = FinishTask(success=True, reason="r")
    await stage.event(moved, 0, finish)
    async with stage.perception():
        await until(lambda: _true(stage.nothing_more()))
    for task in (ended, moved):
        assert await stage.log.read(Slot(device=DEVICE, task=task, turn=0, kind="scene")) is None
        assert await stage.log.read(Slot(device=DEVICE, task=task, turn=1, kind="scene")) is None


async def test_a_dead_session_is_healed_by_its_executor_and_seen_through(stage: Stage) -> None:
    asked: list[str] = []
    task = new_task_id()

    async def heal(data: bytes, _: object) -> bytes:
        asked.append(msgspec.msgpack.decode(data, type=SessionRequest).dead_session)
        fresh = await stage.session()
        await stage.hold(task, fresh)
        return msgspec.msgpack.encode(SessionReply(session=fresh))

    healer = asyncio.create_task(
        serve_micro(stage.bus, "executor", Endpoint("session", subjects.session(DEVICE), heal))
    )
    dead = await stage.session()
    await asyncio.to_thread(stage.drivers[0].quit)
    await stage.hold(task, dead)
    try:
        async with stage.perception():
            await stage.begin(task)
            scene = await stage.scene(task, 0)
    finally:
        healer.cancel()
        await asyncio.gather(healer, return_exceptions=True)
    assert asked == [dead.id]
    assert scene.elements


async def test_a_session_that_the_device_got_meanwhile_is_taken_though_nobody_answers(stage: Stage) -> None:
    """As when the executor that was asked has died, and the next one has opened a session of its own."""
    task = new_task_id()
    await stage.hold(task, SessionHandle(id="gone", url=stage.url))
    asked = asyncio.Event()

    async def silent(_: bytes, __: object) -> None:
        asked.set()

    healer = asyncio.create_task(
        serve_micro(stage.bus, "executor", Endpoint("session", subjects.session(DEVICE), silent))
    )
    try:
        await until(lambda: _true(stage.bus.ping("executor")))
        async with stage.perception(heal_seconds=500.0):
            await stage.begin(task)
            await asyncio.wait_for(asked.wait(), 30)
            await stage.hold(task, await stage.session())
            assert await stage.scene(task, 0)
    finally:
        healer.cancel()
        await asyncio.gather(healer, return_exceptions=True)


async def test_a_phone_without_a_tree_is_seen_by_its_picture(stage: Stage) -> None:
    error = {"error": "unknown error", "message": "Illegal character (d83d)", "stacktrace": ""}
    await stage.phones.set_faults(DEVICE, {"source_error": {"status": 500, "body": json.dumps({"value": error})}})
    async with stage.perception():
        task = await stage.start()
        scene = await stage.scene(task, 0)
        assert scene.source == "screenshot-only"
        assert scene.screenshot is not None
        assert "Illegal character" in scene.recovery[0]
        await stage.phones.set_faults(DEVICE, {"source_error": None})
        await stage.event(task, 0, Tap(at=Point(x=1, y=1)))
        assert (await stage.scene(task, 1)).source == "tree"


async def test_a_screen_that_never_stands_still_is_published_as_unsettled(stage: Stage) -> None:
    async with stage.perception(settle_seconds=0.5):
        session = await stage.session()
        await asyncio.to_thread(stage.drivers[0].activate_app, "com.android.settings")
        await stage.phones.set_faults(DEVICE, {"animate": True})
        task = new_task_id()
        await stage.hold(task, session)
        await stage.begin(task)
        scene = await stage.scene(task, 0)
    assert not scene.settled
    assert scene.elements


async def test_a_task_whose_phone_cannot_be_seen_for_too_long_fails_with_its_stage(stage: Stage) -> None:
    task = new_task_id()
    await stage.hold(task, SessionHandle(id="gone", url="http://127.0.0.1:9"))
    async with stage.perception(give_up_seconds=1.5, request_seconds=1.0, heal_seconds=1.0):
        await stage.begin(task)
        entry = await until(lambda: stage.log.ended(task))
    end = entry.body
    assert isinstance(end, TaskFinished)
    assert (end.status, end.stage, end.turns, end.goal) == ("failed", "perception", 0, "g")
    assert "did not answer" in (end.failure_reason or "")


async def test_time_in_which_nobody_looked_does_not_count_against_the_phone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after nats-server was away, or the process asleep, for longer than a phone may be unseen."""
    task = new_task_id()
    await stage.hold(task, SessionHandle(id="gone", url="http://127.0.0.1:9"))
    settings = PerceptionSettings(give_up_seconds=60.0, request_seconds=1.0, heal_seconds=0.5)
    service = PerceptionService(stage.bus, TaskLog(stage.bus), settings, attach, stage.threads)
    await stage.begin(task)
    async with Pull(stage.bus, CONSUMER) as pull:
        message = await pull.next(10)
    assert message is not None
    delivery, monotonic = Delivery(stage.bus, message), time.monotonic
    assert isinstance(await service.handle(delivery), Later)
    for away_s in (1_000, 2_000):
        monkeypatch.setattr(time, "monotonic", lambda away_s=away_s: monotonic() + away_s)
        assert isinstance(await service.handle(delivery), Later)
    assert await stage.log.ended(task) is None


async def test_the_composed_service_answers_pings_and_takes_the_planners_screenshot_mode(stage: Stage) -> None:
    loops = await compose(stage.bus, {"AI_PLANNER_SCREENSHOT": "always", "PERCEPTION_CONCURRENCY": "2"})
    tasks = [asyncio.ensure_future(loop) for loop in loops]
    try:
        await until(lambda: _true(stage.bus.ping("perception")))
        task = await stage.start()
        assert (await stage.scene(task, 0)).screenshot is not None
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _true(answer: Awaitable[bool]) -> bool | None:
    return True if await answer else None
