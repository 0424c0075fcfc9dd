"""A task while it runs: what was seen so far, as the same turns that a stored timeline has."""

from typing import Any, assert_never

import msgspec
from rich.console import Console

from apex_cli import render
from apex_cli.client import Happening
from apex_cli.text import plain, styled
from apex_schemas.actions import tool_name
from apex_schemas.queries import TimelineStep
from apex_schemas.steps import PlannedStep, WorldEvent
from apex_schemas.task import TaskFinished, TaskStarted


class LiveTask:
    """Prints each turn once, when its outcome is known. `verbose` False leaves one line a turn."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.end: TaskFinished | None = None

    def see(self, happening: Happening) -> None:
        body: TaskStarted | PlannedStep | WorldEvent | TaskFinished = happening.body
        match body:
            case TaskStarted():
                self._console.print(styled((f"  {happening.slot.device} has taken the task", "dim")))
            case PlannedStep():
                if tool_name(body.action) == "finish_task":  # its outcome is the end of the task
                    self._console.print(render.turn(step_of(happening.slot.turn or 0, body)))
            case WorldEvent():
                self._console.print(render.turn(step_of(happening.slot.turn or 0, body)))
            case TaskFinished():
                self.end = body
                self._console.print(ending(body))
            case _:
                assert_never(body)


def step_of(turn: int, body: PlannedStep | WorldEvent) -> TimelineStep:
    """A turn of a timeline, as far as the message tells."""
    arguments: dict[str, Any] = msgspec.to_builtins(body.action)
    name = arguments.pop("type")
    planned = isinstance(body, PlannedStep)
    timings = None if planned else body.timings
    return TimelineStep(
        turn=turn,
        page=body.page,
        action=name,
        target=body.target.label if body.target else None,
        arguments=arguments,
        purpose=body.purpose,
        expected_outcome=body.expected_outcome,
        rationale=body.rationale,
        thinking=body.thinking,
        success=True if planned else body.success,
        done=True,
        code=None if planned else body.code,
        message=None if planned else body.message,
        plan_ms=body.plan_ms if planned else None,
        act_ms=timings.act_ms if timings else None,
    )


def ending(end: TaskFinished) -> object:
    colour = {"succeeded": "bold green", "failed": "bold red", "cancelled": "bold yellow"}[end.status]
    parts: list[tuple[str, str] | str] = [(f"  {end.status}", colour), f" after {end.turns} turns"]
    if end.answer:
        parts += [": ", (plain(end.answer), "bold")]
    if why := end.failure_reason or (end.reason if end.status != "succeeded" else ""):
        parts += [": ", plain(why)]
    return styled(*parts)
