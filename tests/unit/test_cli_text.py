"""What a screen or a model says reaches the terminal as text and as nothing else."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from apex_cli import render
from apex_cli.text import plain, quoted, shortened
from apex_schemas.devices import DeviceStatus
from apex_schemas.queries import TaskSummary, Timeline, TimelineCall, TimelineStep

ESCAPE = "\x1b[2J\x1b]0;owned\x07"


def _printed(renderable: object, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(st.text())
def test_plain_text_is_one_line_without_control_characters(text: str) -> None:
    shown = plain(text)
    assert "\x1b" not in shown
    assert len(shown.splitlines()) <= 1


def test_marks_of_direction_are_taken_out_and_letters_stay() -> None:
    assert plain("gnp.\u202egpj\u2066 Zoë 世界 שלום\u200f") == "gnp.gpj Zoë 世界 שלום"


def test_lone_surrogates_can_be_printed() -> None:
    plain("a\ud800b").encode()


def test_a_long_text_is_cut_and_says_so() -> None:
    assert shortened("abcdef", 4) == "abc…"
    assert quoted("abc") == "“abc”"


def _timeline(text: str) -> Timeline:
    step = TimelineStep(
        turn=0,
        page=text,
        action="tap",
        target=text,
        arguments={"at": {"x": 1}},
        rationale=text,
        thinking=text,
        success=False,
        done=True,
        code="STALE_SCENE",
        message=text,
        observe_ms=40,
        plan_ms=100,
        calls=(TimelineCall(call=0, outcome="ok", model=text, error=text, input_tokens=1200, output_tokens=30),),
    )
    summary = TaskSummary(
        task="a" * 32, goal=text, device=text, status="failed", reason=text, failure_reason=f"{text}!", answer=text
    )
    return Timeline(summary=summary, steps=(step,))


def test_a_timeline_of_hostile_texts_prints_no_escape_and_no_markup() -> None:
    printed = _printed(render.timeline(_timeline(f"{ESCAPE}[red]bold[/red]"), thinking=True))
    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert "[red]bold[/red]" in printed


def test_a_timeline_tells_page_reason_act_outcome_time_and_tokens() -> None:
    printed = _printed(render.timeline(_timeline("Wi-Fi")))
    for part in ("Wi-Fi", "“Wi-Fi”", "tap", "STALE_SCENE", "see 40 + plan 100 = 140 ms", "1,200→30 tokens"):
        assert part in printed


@pytest.mark.parametrize(
    ("success", "code", "shown"),
    [(True, None, "done"), (False, "OCCLUDED", "OCCLUDED"), (None, "ACT_UNKNOWN", "ACT_UNKNOWN")],
)
def test_an_outcome_is_done_refused_or_unknown(success: bool | None, code: str | None, shown: str) -> None:
    step = TimelineStep(turn=1, action="tap", success=success, code=code, done=True)
    assert shown in render.outcome(step)[0][0]


@pytest.mark.parametrize(
    ("action", "success", "seen", "told"),
    [
        ("tap", True, False, True),
        ("tap", None, False, True),
        ("tap", True, True, False),
        ("tap", True, None, False),
        ("tap", False, False, False),
        ("wait", True, False, False),
    ],
)
def test_an_act_that_says_it_was_done_and_changed_nothing_to_be_seen_is_told(
    action: str, success: bool | None, seen: bool | None, told: bool
) -> None:
    step = TimelineStep(turn=1, action=action, success=success, done=True, effect_seen=seen)
    assert ("no change on the screen" in _printed(render.turn(step))) is told


def test_an_act_names_the_text_that_is_typed_and_where() -> None:
    step = TimelineStep(turn=1, action="input_text", target="Name", arguments={"text": "Zoë", "at": None})
    assert render.act(step) == "input_text “Name” ← “Zoë”"


def test_tables_of_tasks_and_devices_print_in_a_narrow_terminal() -> None:
    hostile = _timeline(ESCAPE).summary
    device = DeviceStatus(device="sim-1", platform="android", state="ready", worker=ESCAPE, epoch=1, reason=ESCAPE)
    assert "\x1b" not in _printed(render.task_table([hostile]), width=60)
    assert "sim-1" in _printed(render.device_table([device]), width=60)


def test_a_device_is_shown_with_when_its_driver_renewed_it_and_one_that_is_stale_with_what_to_look_for() -> None:
    fresh = DeviceStatus(device="a", platform="android", state="ready", worker="w-1", epoch=1, renewed_s=2)
    stale = DeviceStatus(device="b", platform="android", state="busy", worker="w-2", epoch=1, renewed_s=65, stale=True)
    elsewhere = DeviceStatus(device="c", platform="android", state="elsewhere", worker="w-3", epoch=1)
    lines = _printed(render.device_table([fresh, stale, elsewhere]), width=200).splitlines()
    assert "w-1, 2 s ago" in lines[1]
    assert "not renewed" not in lines[1]
    assert "w-2, 1 min ago" in lines[2]
    assert "its record was not renewed for 1 min" in lines[2]
    assert "ago" not in lines[3]
