"""One task of the demo: submitted, followed live, shown as Postgres has it, and checked on the phone itself."""

import asyncio
from typing import Final

import msgspec
from rich.console import Console

from apex_cli import render
from apex_cli.client import Client, Happening
from apex_cli.live import step_of
from apex_cli.text import styled
from apex_lab.demo.goals import Goal
from apex_lab.demo.progress import Progress
from apex_lab.stack import Stack
from apex_lab.stack.errors import NotReady
from apex_lab.stack.recorded import recorded
from apex_schemas.ids import new_task_id
from apex_schemas.queries import Timeline, TimelineStep
from apex_schemas.steps import PlannedStep, WorldEvent
from apex_schemas.task import TaskFinished, TaskRequest

PHONE: Final = "sim-1"
TASK_SECONDS: Final = 180
STORED_SECONDS: Final = 15.0


class Watched(msgspec.Struct, kw_only=True):
    """`decided` is what was seen on the bus, `stored` what Postgres says; `problems` are sentences."""

    decided: list[TimelineStep]
    stored: Timeline
    problems: list[str]


async def watch(goal: Goal, stack: Stack, client: Client, console: Console, progress: Progress) -> Watched:
    before = await stack.phones.state(PHONE)
    task = new_task_id()
    progress.tell("looking at the screen for the first time")
    try:
        async with asyncio.timeout(TASK_SECONDS + 30):
            decided, end = await stack.while_running(_follow(goal, task, client, progress))
    except TimeoutError:
        raise NotReady(f"the task {goal.text!r} did not end", TASK_SECONDS + 30, stack.logs) from None
    stored = await recorded(client, task, seconds=STORED_SECONDS, whole=lambda found: _decisions(found) >= len(decided))
    console.print(render.timeline(stored))
    truth = goal.truth(before, await stack.phones.state(PHONE))
    mark = ("  ✓ ", "bold green") if truth.holds else ("  ✗ ", "bold red")
    console.print(styled(mark, f"asked past the system, the phone itself says: {truth.sentence}\n"))
    wrong = [goal.unexpected(end), None if truth.holds else f"the phone says otherwise: {truth.sentence}"]
    return Watched(decided=decided, stored=stored, problems=[problem for problem in wrong if problem])


async def _follow(goal: Goal, task: str, client: Client, progress: Progress) -> tuple[list[TimelineStep], TaskFinished]:
    """Submit the goal and see it through; what was decided, and how it ended."""
    decided: list[TimelineStep] = []
    async with client.following(task) as happenings:
        await client.submit(TaskRequest(goal=goal.text, task=task, timeout_s=TASK_SECONDS), "any")
        async for happening in happenings:
            if (step := _progress(happening, progress)) is not None:
                decided.append(step)
            if isinstance(happening.body, TaskFinished):
                return decided, happening.body
    raise AssertionError("a followed task ends")


def _progress(happening: Happening, progress: Progress) -> TimelineStep | None:
    """Say what is going on now; return the step when this is a decision."""
    body, turn = happening.body, happening.slot.turn or 0
    if isinstance(body, PlannedStep):
        step = step_of(turn, body)
        progress.tell(f"turn {turn}: {render.act(step)}")
        return step
    if isinstance(body, WorldEvent) and body.success is not True:
        progress.tell(f"turn {turn}: {body.code or 'unknown'} {body.message or ''}")
    return None


def _decisions(timeline: Timeline) -> int:
    return sum(1 for step in timeline.steps if step.calls)
