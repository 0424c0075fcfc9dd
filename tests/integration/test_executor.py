"""The executor on a real NATS and a simulated phone: each decision once, whatever dies; nothing without an outcome."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest_asyncio
from integration.conftest import Nats
from integration.executor_rig import DEVICE, Rig, executor_rig, until

from apex_bus.tasklog import Filled
from apex_executor.outcomes import Outcome
from apex_executor.session import server_of
from apex_executor.settings import ExecutorSettings
from apex_executor.turns import Turns
from apex_schemas import slots, subjects
from apex_schemas.actions import (
    DescribeScreen,
    DeviceAction,
    FinishTask,
    InputText,
    LaunchApp,
    Look,
    Swipe,
    Tap,
    TerminateApp,
)
from apex_schemas.geometry import Bounds, Point
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.steps import ActIntent, Target
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

AT = Point(x=270, y=600)
SETTINGS = "com.android.settings"


@pytest_asyncio.fixture
async def rig(nats_server: Nats, tmp_path: Path) -> AsyncGenerator[Rig]:
    async with executor_rig(nats_server.url, tmp_path) as rig:
        yield rig


async def test_planned_tap_is_done_once_and_its_event_tells_why(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask()
    await rig.plan(task, 0, Tap(at=AT))
    event = await rig.event(task, 0)
    assert (event.success, event.code, event.page, event.rationale) == (True, None, "A > B", "r")
    assert event.timings is not None
    assert len(await rig.acts()) == 1


async def test_model_ends_the_task_and_the_device_takes_the_next_one(rig: Rig) -> None:
    await rig.start()
    first, second = await rig.ask(), await rig.ask()
    await rig.plan(first, 0, FinishTask(success=True, reason="done", answer="ApexLab"))
    finished = await rig.finished(first)
    assert (finished.status, finished.claimed, finished.answer) == ("succeeded", True, "ApexLab")
    await rig.plan(second, 0, FinishTask(success=False, reason="cannot"))
    finished = await rig.finished(second)
    assert (finished.status, finished.claimed, finished.failure_reason) == ("failed", False, "cannot")


async def test_app_is_launched_typed_into_and_ended_with_what_was_observed(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask()
    await rig.plan(task, 0, LaunchApp(app="Settings"))
    assert (await rig.event(task, 0)).success is True
    await rig.plan(task, 1, LaunchApp(app="com.example.absent"))
    event = await rig.event(task, 1)
    assert (event.success, event.code) == (False, "APP_NOT_INSTALLED")
    await rig.plan(task, 2, Swipe(start=Point(x=270, y=900), end=Point(x=270, y=300)))
    assert (await rig.event(task, 2)).success is True
    await rig.plan(task, 3, TerminateApp(app=SETTINGS))
    assert (await rig.event(task, 3)).success is True
    await rig.plan(task, 4, InputText(text="Zoë"))
    event = await rig.event(task, 4)
    assert (event.success, event.code) == (False, "NO_FOCUS")


async def test_target_that_is_gone_is_refused_and_nothing_is_touched(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask()
    gone = Target(
        element="e1", role="button", label="Gone", resource_id="com.example:id/gone",
        bounds=Bounds(left=0, top=0, right=100, bottom=100),
    )  # fmt: skip
    await rig.plan(task, 0, Tap(at=Point(x=50, y=50)), target=gone)
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (False, "STALE_SCENE")
    assert await rig.acts() == []


async def test_turn_without_an_act_touches_nothing_and_has_an_event(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask()
    await rig.plan(task, 0, Look(code="SCENE_TOO_OLD", reason="31 s"))
    event = await rig.event(task, 0)
    assert (event.success, event.code, event.message) == (False, "SCENE_TOO_OLD", "31 s")
    await rig.plan(task, 1, DescribeScreen())
    event = await rig.event(task, 1)
    assert event.success is True
    assert event.scene_summary is not None
    assert await rig.acts() == []


async def test_executor_killed_between_acting_and_event_leaves_an_unknown_and_no_second_touch(rig: Rig) -> None:
    process = await rig.start()
    task = await rig.ask()
    await rig.started(task)
    await rig.phones.set_faults(DEVICE, {"latency_ms": {"actions": 3_000}})
    await rig.plan(task, 0, Tap(at=AT))
    await rig.newest(task, "acting", 0)
    process.kill()
    await process.wait()
    await rig.phones.set_faults(DEVICE, {"latency_ms": 0})
    await rig.start()
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (None, "UNKNOWN_OUTCOME")
    assert len(await rig.acts()) <= 1
    await rig.plan(task, 1, FinishTask(success=True, reason="done"))
    assert (await rig.finished(task)).status == "succeeded"


async def test_executor_killed_before_acting_does_the_act_once_after_its_restart(rig: Rig) -> None:
    process = await rig.start()
    task = await rig.ask()
    await rig.started(task)
    process.kill()
    await process.wait()
    await rig.plan(task, 0, Tap(at=AT))
    await rig.start()
    assert (await rig.event(task, 0)).success is True
    assert len(await rig.acts()) == 1


class Untouchable:
    """A device that says so when somebody acts on it."""

    handle = None
    acted = False

    async def act(self, action: DeviceAction, target: Target | None) -> Outcome:
        self.acted = True
        return Outcome(success=True)

    def held(self) -> bool:
        return True

    async def fence(self, session: str, server: str = "") -> bool:
        return True

    async def heal(self) -> None: ...

    async def waits(self, turn: int | None, reason: str | None) -> None: ...

    def packages(self, app: str, /) -> Sequence[str]:
        return ()


async def test_plan_on_a_scene_that_crossed_with_the_end_of_its_task_is_not_carried_out(rig: Rig) -> None:
    """The fence of `acting` sees what came behind `planned`; this end came before the Scene that was decided on."""
    task, actor = new_task_id(), Untouchable()
    start = TaskStarted(
        request=TaskRequest(goal="x", task=task), pool="any", request_sequence=1, request_digest="", started_at_ms=0
    )
    started = await rig.log.fill(slots.started(DEVICE, task), start, attempt=new_attempt())
    assert isinstance(started, Filled)
    end = TaskFinished(status="cancelled", turns=0, finished_at_ms=0, by="test", reason="cancelled by the client")
    await rig.log.fill(slots.finished(DEVICE, task), end, attempt=new_attempt(), after=started.sequence)
    planned = await rig.plan(task, 0, Tap(at=AT))
    assert await Turns(rig.bus, rig.log, actor, ExecutorSettings()).take(planned)
    assert not actor.acted
    assert await rig.log.read(planned.slot.sibling("acting")) is None


async def test_acting_of_a_lost_driver_is_never_repeated(rig: Rig) -> None:
    """Crash between `acting` and the touch: nobody can know, so nobody touches."""
    task, attempt = new_task_id(), new_attempt()
    process = await rig.start()
    await rig.ask(task=task)
    slot = await rig.started(task)
    process.kill()
    await process.wait()
    planned = await rig.plan(task, 0, Tap(at=AT))
    intent = ActIntent(action=Tap(at=AT), session="somebody-else", deadline_ms=500, worker="gone")
    assert isinstance(
        await rig.log.fill(slot.sibling("acting"), intent, attempt=attempt, after=planned.sequence), Filled
    )
    await rig.start()
    assert (await rig.event(task, 0)).success is None
    assert await rig.acts() == []


async def test_session_of_a_lost_act_that_its_next_driver_ended_is_not_waited_for(rig: Rig) -> None:
    """The driver that took over deleted the session, and died before it could say so."""
    task = new_task_id()
    first = await rig.start(ACT_SECONDS="60")
    await rig.ask(task=task)
    slot = await rig.started(task)
    first.kill()
    await first.wait()
    planned = await rig.plan(task, 0, Tap(at=AT))
    intent = ActIntent(
        action=Tap(at=AT), session="ended-before", deadline_ms=60_000, worker="gone", server=server_of(rig.phones_url)
    )
    filled = await rig.log.fill(slot.sibling("acting"), intent, attempt=new_attempt(), after=planned.sequence)
    assert isinstance(filled, Filled)
    await rig.start()
    assert (await rig.event(task, 0)).success is None  # within half a minute, not after the minute of the deadline
    assert await rig.acts() == []


async def test_second_executor_takes_over_when_the_first_is_gone(rig: Rig) -> None:
    first = await rig.start()
    task = await rig.ask()
    await rig.started(task)
    await rig.start()
    first.kill()
    await first.wait()
    await rig.plan(task, 0, Tap(at=AT))
    assert (await rig.event(task, 0)).success is True
    assert len(await rig.acts()) == 1


async def test_session_that_dies_before_an_act_is_made_again_and_the_act_is_not_repeated(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask()
    await rig.started(task)
    await rig.phones.set_faults(DEVICE, {"session_death": "before_act"})
    await rig.plan(task, 0, Tap(at=AT))
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (False, "SESSION_LOST")
    await rig.plan(task, 1, Tap(at=AT))
    assert (await rig.event(task, 1)).success is True
    assert len(await rig.acts()) == 1


async def test_lost_answer_is_unknown_and_the_old_session_is_gone(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask()
    await rig.started(task)
    await rig.phones.set_faults(DEVICE, {"answer_lost": True})
    await rig.plan(task, 0, Tap(at=AT))
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (None, "UNKNOWN_OUTCOME")
    assert len(await rig.acts()) == 1
    await rig.plan(task, 1, Tap(at=AT))
    following = await rig.event(task, 1)
    assert following.success is True
    assert following.session != event.session


async def test_nothing_is_pulled_while_perception_or_planner_is_away(rig: Rig) -> None:
    await rig.services(up=False)
    await rig.start()

    async def waiting() -> bool:
        return any(status.state == "waiting" for status in await rig.statuses())

    await until(waiting, what="a device that waits")
    task = await rig.ask()
    assert await rig.bus.get("TASKS", f"task.*.{task}.>") is None
    await rig.services(up=True)
    assert (await rig.started(task)).device == DEVICE


async def test_executor_ended_by_a_signal_frees_its_device_at_once(rig: Rig) -> None:
    process = await rig.start(LEASE_SECONDS="60")
    task = await rig.ask()
    await rig.started(task)
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 20) == 0
    await rig.start(LEASE_SECONDS="60")
    await rig.plan(task, 0, Tap(at=AT))
    assert (await rig.event(task, 0)).success is True
    record = await rig.bus.get("DEVICES", subjects.device(DEVICE))
    assert record is not None
    assert json.dumps(task).encode()[1:-1] in record.data


async def test_record_that_is_overwritten_from_outside_does_not_cost_the_task(rig: Rig) -> None:
    """Any client can have the server store an acknowledgement there, by naming it as its reply subject."""
    await rig.start()
    task = await rig.ask()
    await rig.started(task)
    await rig.bus.client.publish("request.any", b'{"goal": "x", "not_after": 1}', reply=subjects.device(DEVICE))
    await rig.plan(task, 0, Tap(at=AT))
    assert (await rig.event(task, 0)).success is not False
    await rig.plan(task, 1, FinishTask(success=True, reason="done"))
    assert (await rig.finished(task)).status == "succeeded"
