"""How a playbook is written and played.

A playbook is a goal pattern with named groups and an ordered list of rules; a rule looks at the situation and returns
the move it wants, or None to leave the turn to the next rule. A new playbook is one small file in `playbooks/`.
"""

import re
from collections.abc import Callable

from msgspec import Struct

from apex_lab.model.moves import Finish, Move, Swipe, finish
from apex_lab.model.prompt import Prompt
from apex_lab.model.situation import Situation

Rule = Callable[[Situation], Move | None]
"""A condition on the situation together with the move that answers it."""

TRIES = 3
"""The same intent is not tried more often than this."""


class Playbook(Struct, frozen=True, kw_only=True):
    """A named way to reach goals of one form. `goal` must match the whole goal."""

    name: str
    goal: re.Pattern[str]
    rules: tuple[Rule, ...]
    applies: Callable[[Situation], bool] = lambda _: True


def choose(prompt: Prompt, books: tuple[Playbook, ...]) -> tuple[Playbook, Situation]:
    """The first playbook whose pattern fits the goal, with the goal's slots.

    Raises:
        LookupError: none fits; the last book is expected to fit every goal.
    """
    goal = " ".join(prompt.goal.split()).strip(" .!")
    for book in books:
        if match := book.goal.fullmatch(goal):
            slots = {name: (text or "").strip() for name, text in match.groupdict().items()}
            situation = Situation(prompt=prompt, slots=slots)
            if book.applies(situation):
                return book, situation
    raise LookupError(f"no playbook fits the goal {goal!r}")


def _stuck(situation: Situation) -> bool:
    """Whether the last acts were one and the same, failed, and came without a rationale to tell them by."""
    last = situation.history[-TRIES:]
    failed = [turn.action for turn in last if turn.success is False and not turn.rationale]
    return len(failed) == TRIES and len(set(failed)) == 1


def play(book: Playbook, situation: Situation) -> Move:
    """The move of this turn: that of the first rule which wants one, unless it was tried too often already."""
    for rule in book.rules:
        move = rule(situation)
        if move is None:
            continue
        if isinstance(move.act, Finish | Swipe):
            return move
        if situation.times(move.intent) < TRIES and not _stuck(situation):
            return move
        return finish(False, f"tried {TRIES} times without success to {move.intent}")
    return finish(False, f"nothing on the screen leads on to the goal ({book.name})")
