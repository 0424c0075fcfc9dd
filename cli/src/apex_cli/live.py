"""A task while it runs: what was seen so far, as the same turns that a stored timeline has."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, assert_never

import msgspec
from rich.console import Console
from rich.status import Status

from apex_cli import render
from apex_cli.client import Happening
from apex_cli.text import plain, styled
from apex_schemas.actions import tool_name
from apex_schemas.devices import DeviceStatus
from apex_schemas.queries import TimelineStep, WaitingRequest
from apex_schemas.steps import PlannedStep, WorldEvent
from apex_schemas.task import TaskFinished, TaskStarted


class LiveTask:
    """Prints each turn once, when its outcome is known, and in between what stage it is at: on a terminal in one line
    that changes, else a line a stage. What an act was not seen to change is known, and said, with the next turn."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._stage = ""
        self._plan_ms: int | None = None
        self._done: TimelineStep | None = None
        self.end: TaskFinished | None = None

    def see(self, happening: Happening) -> None:
        body: TaskStarted | PlannedStep | WorldEvent | TaskFinished = happening.body
        turn = happening.slot.turn or 0
        match body:
            case TaskStarted():
                self._console.print(styled((f"  {happening.slot.device} has taken the task", "dim")))
                self.stage("turn 0: looking at the screen and deciding")
            case PlannedStep():
                self._plan_ms = body.plan_ms
                self._tell_effect(turn, body.screen_changed)
                if tool_name(body.action) == "finish_task":  # its outcome is the end of the task
                    self._console.print(render.turn(step_of(turn, body)))
                else:
                    self.stage(f"turn {turn}: {render.act(step_of(turn, body))}")
            case WorldEvent():
                self._done = msgspec.structs.replace(step_of(turn, body), plan_ms=self._plan_ms)
                self._console.print(render.turn(self._done))
                self._plan_ms = None
                self.stage(f"turn {turn + 1}: looking at the screen and deciding")
            case TaskFinished():
                self.end = body
                self.close()
                self._console.print(ending(body))
            case _:
                assert_never(body)

    def _tell_effect(self, turn: int, changed: bool | None) -> None:
        """What came of the act before, by what this turn has seen; nothing where that act was not followed."""
        if self._done is None or self._done.turn != turn - 1:
            return
        for words, style in render.effect(msgspec.structs.replace(self._done, effect_seen=changed)):
            self._console.print(styled("     ", (f"turn {turn - 1}: {words.removeprefix(', ')}", style)))

    def stage(self, text: str) -> None:
        """What is going on now; said once for as long as it does not change."""
        if text == self._stage:
            return
        self._stage = text
        if not self._console.is_terminal:
            self._console.print(styled((f"  … {text}", "dim")))
        elif self._status is None:
            self._status = self._console.status(styled((text, "dim")))
            self._status.start()
        else:
            self._status.update(styled((text, "dim")))

    def close(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def waiting(sequence: int, pool: str, queue: Sequence[WaitingRequest], devices: Sequence[DeviceStatus]) -> str:
    """Why a task has not begun, and how many are before it, as far as anybody knows."""
    pool_of = [each for each in devices if pool in ("any", each.platform, each.device, *each.pools)]
    states = Counter(each.state for each in pool_of)
    told = ", ".join(f"{count} {plain(state)}" for state, count in sorted(states.items())) or "none"
    if any(each.sequence == sequence for each in queue):
        before = sum(each.sequence < sequence and each.pool == pool for each in queue)
        return f"waiting in pool {pool}: {before} before it; devices: {told}"
    return f"waiting for a device of pool {pool}; devices: {told}"


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
