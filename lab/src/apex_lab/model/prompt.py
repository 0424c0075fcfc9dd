"""What a model reads in the last user message: goal, history, last step and screen.

Consumes the message's text; emits a `Prompt`. Only what stands outside the fence can be goal or history, so nothing
that a screen shows is taken for an order.
"""

import re

from msgspec import Struct

from apex_lab.model.errors import PromptUnreadable
from apex_lab.model.screen import Screen, parse_screen

_HEADER = re.compile(
    r"^(Goal|History|Last step|Screen|Note|Notes|Turn|Device|Correction)\b[^:\n]{0,30}:", re.IGNORECASE
)
_TURN = re.compile(r"^\s*(\d+)[.)]\s+(.*)$")
_SUCCESS = re.compile(r"^success:\s*(true|false|unknown|none|null)", re.IGNORECASE)
_VERDICT = {"true": True, "false": False}


class Turn(Struct, frozen=True, kw_only=True):
    """One line of the history. `success` is None when unknown; `rationale` is empty when there was none."""

    number: int
    page: str
    action: str
    rationale: str
    success: bool | None

    @property
    def tool(self) -> str:
        """The first word of the action, as far as it names a tool: `tap`, `input_text`, ..."""
        match = re.match(r"\W*([A-Za-z_]+)", self.action)
        return match.group(1).lower() if match else ""


class Prompt(Struct, frozen=True, kw_only=True):
    """Goal, turns so far (oldest first), the text about the last step, and the screen if one was shown."""

    goal: str
    history: tuple[Turn, ...] = ()
    last_step: str = ""
    screen: Screen = Screen()


def parse_prompt(text: str) -> Prompt:
    """Read the text of a user message (its text blocks joined by newlines).

    Raises:
        PromptUnreadable: no line outside the screen starts with `Goal:`.
    """
    outside, screen = _split_screen(text.splitlines())
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in outside:
        if match := _HEADER.match(line):
            current = sections.setdefault(match.group(1).lower(), [])
            line = line[match.end() :]
        current.append(line)
    goal = " ".join(part.strip() for part in sections.get("goal", []) if part.strip())
    if not goal:
        raise PromptUnreadable(length=len(text))
    turns = tuple(
        _turn(int(match.group(1)), match.group(2))
        for line in sections.get("history", [])
        if (match := _TURN.match(line))
    )
    last = " ".join(part.strip() for part in sections.get("last step", []) if part.strip())
    return Prompt(goal=goal, history=turns, last_step=last, screen=screen)


def _split_screen(lines: list[str]) -> tuple[list[str], Screen]:
    opening = next((at for at, line in enumerate(lines) if line.lstrip().startswith("<screen")), None)
    if opening is None:
        return lines, Screen()
    closing = next(
        (at for at in range(len(lines) - 1, opening, -1) if lines[at].lstrip().startswith("</screen")), len(lines)
    )
    return lines[:opening] + lines[closing + 1 :], parse_screen(lines[opening], lines[opening + 1 : closing])


def _turn(number: int, body: str) -> Turn:
    parts = [part.strip() for part in body.split(" | ")]
    success: bool | None = None
    if match := _SUCCESS.match(parts[-1]):
        success = _VERDICT.get(match.group(1).lower())
        parts.pop()
    page, action, *rest = [*parts, "", ""]
    rationale = " | ".join(part for part in rest if part not in ("", "-"))
    return Turn(number=number, page=page, action=action, rationale=rationale, success=success)
