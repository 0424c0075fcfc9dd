"""Any other goal: look round on this screen and the launcher, touch nothing, and say that it could not be done."""

import re

from apex_lab.model.moves import Launch, Move, finish
from apex_lab.model.playbook import Playbook
from apex_lab.model.playbooks.interruption import INTERRUPTIONS
from apex_lab.model.situation import Situation, scroll_for

_HOME = "look on the launcher"


def _topic(at: Situation) -> str:
    return at.prompt.goal[:40].strip()


def _look(at: Situation) -> Move | None:
    return scroll_for(at, _topic(at), limit=3)


def _launcher(at: Situation) -> Move | None:
    if at.in_app("launcher") or at.times(_HOME) or at.prompt.screen.app.startswith("com.apple."):
        return None
    return Move(act=Launch(app="com.android.launcher3"), intent=_HOME, expect="The launcher with its icons is shown.")


def _give_up(at: Situation) -> Move:
    pages = list(dict.fromkeys(turn.page for turn in at.history if turn.page)) or [
        at.prompt.screen.page or "the screen"
    ]
    seen = ", ".join(f'"{page}"' for page in pages[-4:])
    return finish(False, f'looked round on {seen}; nothing there serves the goal "{at.prompt.goal[:80]}"')


UNKNOWN = Playbook(
    name="unknown",
    goal=re.compile(r".*", re.DOTALL),
    rules=(*INTERRUPTIONS, _look, _launcher, _give_up),
)
