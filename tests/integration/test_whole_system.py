"""All services as processes on one machine: started twice over, and killed in the middle of a task."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import components
import pytest
import pytest_asyncio

from apex_cli.errors import CommandError
from apex_lab.stack.stack import Stack
from apex_schemas.ids import new_task_id
from apex_schemas.queries import TasksQuery, Timeline
from apex_schemas.steps import WorldEvent
from apex_schemas.task import TaskFinished, TaskRequest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

CONTACT = 'Create a contact named "Zoë Ångström" with phone 12345'
TWICE = {"perception": 2, "planner": 2, "planner-decision": 2, "executor": 2, "decision-log": 2}
SERVICES = ("perception", "planner", "planner-decision", "executor", "decision-log")
QUICK_LEASE = {"executor": {"EXECUTOR_LEASE_SECONDS": "3"}}


@pytest_asyncio.fixture
async def stack(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[Stack]:
    """A stack with the phones and copies that the test asks for."""
    components.nats()
    components.postgres()
    options: dict[str, Any] = request.param
    async with Stack(tmp_path / "stack", environment=QUICK_LEASE, **options) as stack:
        yield stack


async def finish(stack: Stack, goal: str, *, pool: str = "any", within_s: float = 120) -> TaskFinished:
    """Submit a goal and wait for its end."""
    task = new_task_id()
    async with stack.client() as client:
        await client.submit(TaskRequest(goal=goal, task=task), pool)
        deadline = time.monotonic() + within_s
        while (ended := await client.ended(task)) is None:
            assert time.monotonic() < deadline, f"{goal} was not done within {within_s} s"
            await asyncio.sleep(0.1)
    assert isinstance(ended.body, TaskFinished)
    return ended.body


async def recorded(stack: Stack, task: str, *, within_s: float = 60) -> Timeline:
    """A task's timeline once Postgres has all of it: its end, and what came of each of its turns."""
    timeline: Timeline | None = None
    async with stack.client() as client:
        deadline = time.monotonic() + within_s
        while True:
            with contextlib.suppress(CommandError):  # nothing of it is there yet, or the service is away
                timeline = await client.timeline(task)
            if timeline is not None and timeline.summary.status != "running":
                known = [step for step in timeline.steps if step.done or step.action == "finish_task"]
                if len(known) == timeline.summary.turns:
                    return timeline
            assert time.monotonic() < deadline, f"{task} is not whole in Postgres: {timeline}"
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("stack", [{"phones": 5, "copies": TWICE}], indirect=True)
async def test_twenty_tasks_on_five_phones_by_services_started_twice_have_each_act_done_once(stack: Stack) -> None:
    goals = [f"look around {turns} turns" for turns in (3, 4, 5, 6)] * 5
    ends = await asyncio.gather(*(finish(stack, goal) for goal in goals))
    assert Counter(end.status for end in ends) == {"succeeded": 20}
    async with stack.client() as client:
        tasks = (await client.tasks(TasksQuery(limit=100))).tasks
    assert len(tasks) == 20
    assert len({task.device for task in tasks}) == 5, "every phone took its share"
    done = Counter[str]()
    for task in tasks:
        timeline = await recorded(stack, task.task)
        done[task.device or ""] += _touches_said(timeline)
    assert {udid: await _touches(stack, udid) for udid in done} == done


@pytest.mark.parametrize("stack", [{"phones": 1}], indirect=True)
@pytest.mark.parametrize("victim", SERVICES)
async def test_service_killed_in_the_middle_of_a_task_and_started_again_changes_nothing(
    stack: Stack, victim: str
) -> None:
    await stack.phones.reset("sim-1")
    task = new_task_id()
    acted = 0
    async with stack.client() as client, client.following(task) as happenings:
        await client.submit(TaskRequest(goal=CONTACT, task=task), "any")
        async for happening in happenings:
            match happening.body:
                case WorldEvent():
                    acted += 1
                    if acted == 2:
                        await stack.kill(victim)
                case TaskFinished() as finished:
                    assert finished.status == "succeeded", finished.failure_reason
                case _:
                    pass
    contacts = (await stack.phones.state("sim-1"))["apps"]["com.android.contacts"]["contacts"]
    assert [contact["name"] for contact in contacts].count("Zoë Ångström") == 1
    timeline = await recorded(stack, task)
    steps = [step for step in timeline.steps if step.action != "finish_task"]
    said, unknown = _touches_said(timeline), sum(step.success is None for step in steps)
    touched = await _touches(stack, "sim-1")
    assert said <= touched <= said + unknown, f"{touched} touches for {said} done and {unknown} unknown"


async def _touches(stack: Stack, udid: str) -> int:
    """Acts that reached a phone; typing is one act, though it clears the field first."""
    return sum(act["kind"] != "clear" for act in await stack.phones.acts(udid))


def _touches_said(timeline: Timeline) -> int:
    """Steps of a task that are said to have touched the phone."""
    return sum(step.success is True for step in timeline.steps if step.action != "finish_task")
