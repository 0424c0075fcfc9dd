"""What was done so far, as a model reads it: one line a turn, append-only, so that prompt caches hold.

A line is `page | action | rationale | success`; an action names its target by label, never by an id or a coordinate,
since those belonged to a screen that is gone. Thinking and old screens never return.
"""

import json
from collections.abc import Sequence
from typing import Final, assert_never

from apex_planner.text import cut, label, plain
from apex_schemas import actions
from apex_schemas.actions import Action
from apex_schemas.steps import Target, WorldEvent

RATIONALE_CHARACTERS: Final = 240
TYPED_CHARACTERS: Final = 40
TARGET_CHARACTERS: Final = 24
FIRST_LINES: Final = 5
"""The beginning is always kept: it holds what the task set out to do."""
_LATEST_LINES: Final = 25
_STEP: Final = 20


def history_lines(events: Sequence[WorldEvent]) -> list[str]:
    """Numbered lines, oldest first. A long history loses its middle, in steps of 20 turns: between two steps every
    prompt begins with the one before it."""
    lines = [f"{turn}. {_line(event)}" for turn, event in enumerate(events, start=1)]
    surplus = len(lines) - FIRST_LINES - _LATEST_LINES
    dropped = max(0, surplus) // _STEP * _STEP
    if not dropped:
        return lines
    gap = f"({dropped} turns left out)"
    return [*lines[:FIRST_LINES], gap, *lines[FIRST_LINES + dropped :]]


def last_step(event: WorldEvent) -> str:
    """The step before this turn: what it was for, what it should have brought, what was done and what came of it."""
    parts = [
        f"purpose {_field(event.purpose)}",
        f"expected {_field(event.expected_outcome)}",
        f"did {describe(event.action, event.target)}",
        f"outcome {_outcome(event)}",
    ]
    return "Last step: " + "; ".join(parts)


def describe(action: Action, target: Target | None) -> str:
    """An action in words, its target by label."""
    name = actions.tool_name(action)
    match action:
        case actions.Tap() | actions.LongPress():
            return f"{name} {_name(target, otherwise='a point of the picture')}"
        case actions.Swipe(start=start, end=end):
            across, down = end.x - start.x, end.y - start.y
            sideways = "right" if across > 0 else "left"
            towards = sideways if abs(across) > abs(down) else ("down" if down > 0 else "up")
            return f"{name} {towards}{_on(target)}"
        case actions.InputText(text=text):
            return f"{name} {_typed(text, target)} into {_name(target, otherwise='the focused field')}"
        case actions.LaunchApp(app=app) | actions.TerminateApp(app=app):
            return f"{name} {_quoted(app)}"
        case actions.FinishTask(success=success):
            return f"{name} success {str(success).lower()}"
        case actions.Look(code=code):
            return f"no act, looked again ({_cell(code)})"
        case actions.Scroll(direction=direction):
            return f"{name} {direction}{_on(target)}"
        case actions.PressKey(key=key):
            return f"{name} {key}"
        case actions.Wait(seconds=seconds):
            return f"{name} {seconds:g} s"
        case actions.Back() | actions.Home() | actions.DescribeScreen():
            return name
        case _:
            assert_never(action)


def _line(event: WorldEvent) -> str:
    rationale = cut(_cell(event.rationale or ""), RATIONALE_CHARACTERS) or "-"
    page = cut(_cell(event.page or ""), 80) or "-"
    return f"{page} | {describe(event.action, event.target)} | {rationale} | success: {_success(event)}"


def _success(event: WorldEvent) -> str:
    return "unknown" if event.success is None else str(event.success).lower()


def _outcome(event: WorldEvent) -> str:
    match event.success:
        case True:
            verdict = "ok"
        case False:
            verdict = f"failed {_cell(event.code or '')}".rstrip()
        case None:
            verdict = "unknown"
    message = cut(plain(event.message or ""), 200)
    return f"{verdict}: {message}" if message else verdict


def _name(target: Target | None, *, otherwise: str) -> str:
    if target is None:
        return otherwise
    return _named(target.label) if target.label.strip() else f"an unnamed {_cell(target.role)}"


def _on(target: Target | None) -> str:
    return f" on {_named(target.label)}" if target is not None and target.label.strip() else ""


def _typed(text: str, target: Target | None) -> str:
    if target is not None and "password" in f"{target.role} {target.resource_id}".lower():
        return "a secret"
    return _quoted(cut(plain(text), TYPED_CHARACTERS))


def _named(label: str) -> str:
    """A row's label has all of its text in it; its beginning is enough to know it by."""
    return _quoted(cut(plain(label), TARGET_CHARACTERS))


def _quoted(text: str) -> str:
    return json.dumps(_cell(label(text)), ensure_ascii=False)


def _cell(text: str) -> str:
    """Text that cannot be mistaken for the border of a column."""
    return plain(text).replace("|", "/")


def _field(text: str | None) -> str:
    return cut(plain(text or "").replace(";", ","), 160) or "-"
