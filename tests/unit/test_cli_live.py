"""A followed task says what stage it is at, and one that waits says how many are before it."""

import io

import click
import pytest
from report_world import LONG, timeline
from rich.console import Console

from apex_cli import render
from apex_cli.client import Happening
from apex_cli.commands.tasks import moment_ms
from apex_cli.live import LiveTask, waiting
from apex_schemas.actions import FinishTask, Tap
from apex_schemas.devices import DeviceStatus
from apex_schemas.geometry import Point
from apex_schemas.queries import WaitingRequest
from apex_schemas.slots import Slot, finished, started
from apex_schemas.steps import PlannedStep, WorldEvent
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

TASK = "0123456789abcdef0123456789abcdef"
TAP = Tap(at=Point(x=1, y=2))


def _slot(kind: str, turn: int) -> Slot:
    return Slot(device="sim-1", task=TASK, kind=kind, turn=turn)  # type: ignore[arg-type]


def _happenings() -> list[Happening]:
    begun = TaskStarted(
        request=TaskRequest(goal="g"), pool="any", request_sequence=1, request_digest="d", started_at_ms=1
    )
    done = FinishTask(success=True, reason="on")
    end = TaskFinished(status="succeeded", turns=2, finished_at_ms=2, by="w", answer="on")
    return [
        Happening(started("sim-1", TASK), begun),
        Happening(_slot("planned", 0), PlannedStep(action=TAP, page="Settings")),
        Happening(_slot("event", 0), WorldEvent(action=TAP, success=True, page="Settings")),
        Happening(_slot("planned", 1), PlannedStep(action=done, page="Settings")),
        Happening(finished("sim-1", TASK), end),
    ]


def _followed(*, terminal: bool) -> str:
    out = io.StringIO()
    live = LiveTask(Console(file=out, width=100, highlight=False, force_terminal=terminal))
    for happening in _happenings():
        live.see(happening)
    assert live.end is not None
    return out.getvalue()


def test_every_stage_has_a_line_where_the_output_is_no_terminal() -> None:
    lines = [line.strip() for line in _followed(terminal=False).splitlines() if line.strip()]
    stages = [line for line in lines if line.startswith("…")]
    assert stages == [
        "… turn 0: looking at the screen and deciding",
        "… turn 0: tap at={'x': 1, 'y': 2}",
        "… turn 1: looking at the screen and deciding",
    ]
    assert lines[0] == "sim-1 has taken the task"
    assert lines[-1] == "succeeded after 2 turns: on"


def _told_of(*seen: tuple[int, bool | None, bool]) -> list[str]:
    """The lines about effects, of a task whose turns are (number, screen changed since the one before, act done)."""
    out = io.StringIO()
    live = LiveTask(Console(file=out, width=100, highlight=False))
    for turn, changed, done in seen:
        live.see(Happening(_slot("planned", turn), PlannedStep(action=TAP, page="Settings", screen_changed=changed)))
        live.see(Happening(_slot("event", turn), WorldEvent(action=TAP, success=done, page="Settings")))
    return [line.strip() for line in out.getvalue().splitlines() if "no change" in line]


def test_an_act_after_which_the_screen_is_the_same_is_told_so_with_the_next_turn() -> None:
    assert _told_of((0, None, True), (1, True, True), (2, False, True), (3, False, True), (4, None, True)) == [
        "turn 1: no change on the screen",
        "turn 2: no change on the screen",
    ]


def test_an_act_that_failed_or_was_not_followed_is_not_told_to_have_changed_nothing() -> None:
    assert _told_of((0, None, False), (1, False, True)) == []
    assert _told_of((0, None, True), (2, False, True)) == []
    assert _told_of((1, False, True)) == []


def test_the_effect_of_the_last_act_is_told_before_the_task_is_finished() -> None:
    out = io.StringIO()
    live = LiveTask(Console(file=out, width=100, highlight=False))
    *before, last, _ = _happenings()
    for happening in before:
        live.see(happening)
    live.see(Happening(last.slot, PlannedStep(action=last.body.action, page="Settings", screen_changed=False)))
    written = out.getvalue()
    assert 0 < written.index("turn 0: no change on the screen") < written.index("finish_task")


def test_a_stage_is_said_once_for_as_long_as_it_does_not_change() -> None:
    out = io.StringIO()
    live = LiveTask(Console(file=out, width=100))
    for _ in range(3):
        live.stage("waiting")
    assert out.getvalue().count("waiting") == 1


def test_on_a_terminal_the_line_is_gone_at_the_end() -> None:
    written = _followed(terminal=True)
    assert "\x1b[?25h" in written  # the cursor is shown again


def _device(state: str, **fields: object) -> DeviceStatus:
    return DeviceStatus(device="sim-1", platform="android", state=state, worker="w", epoch=1, **fields)  # type: ignore[arg-type]


def test_a_task_that_waits_is_told_how_many_are_before_it_in_its_pool() -> None:
    queue = [
        WaitingRequest(task=TASK, pool=pool, sequence=sequence)
        for pool, sequence in (("any", 3), ("ios", 4), ("any", 5), ("any", 9), ("any", 12))
    ]
    assert waiting(9, "any", queue, [_device("busy")]) == "waiting in pool any: 2 before it; devices: 1 busy"
    assert waiting(3, "any", queue, []) == "waiting in pool any: 0 before it; devices: none"


def test_a_task_that_nobody_knows_of_yet_is_told_of_the_devices_of_its_pool() -> None:
    devices = [_device("quarantined"), _device("ready", pools=("tablets",))]
    assert waiting(9, "ios", [], devices) == "waiting for a device of pool ios; devices: none"
    assert waiting(9, "tablets", [], devices) == "waiting for a device of pool tablets; devices: 1 ready"


@pytest.mark.parametrize(
    ("text", "expected"), [("30m", 8_200), ("1h", 6_400), ("7d", -594_800), ("1970-01-01T00:00:05+00:00", 5)]
)
def test_a_time_is_an_age_or_a_date(text: str, expected: int) -> None:
    assert moment_ms(text, 10_000) == expected * 1_000


@pytest.mark.parametrize("text", ["soon", "12", "-1h", "2026-13-01", ""])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        moment_ms(text, 0)


@pytest.mark.slow
def test_a_timeline_of_two_hundred_turns_in_any_script_is_printed_whole() -> None:
    out = io.StringIO()
    told = timeline(200, rationale=LONG, label="شبكة الواي فاي 🙂", goal="شغّل الواي فاي")
    Console(file=out, width=80, highlight=False).print(render.timeline(told, thinking=True))
    written = out.getvalue()
    assert all(f"\n{turn:>3}  Settings" in written for turn in range(200))
    assert "شغّل الواي فاي" in written
    assert "200 model calls to m" in written
