"""Goals `look around N turns`: N harmless acts, then done. For benches and soak runs.

What could change anything on a phone (switches, fields, buttons that delete, call, send, save) is never touched.
"""

import re

from apex_lab.model.labels import words
from apex_lab.model.moves import Move, finish
from apex_lab.model.playbook import Playbook
from apex_lab.model.screen import Element
from apex_lab.model.situation import Situation, swipe, tap

_HARMFUL = frozenset(
    [
        "delete",
        "remove",
        "erase",
        "reset",
        "uninstall",
        "call",
        "dial",
        "send",
        "share",
        "save",
        "done",
        "create",
        "add",
        "new",
        "allow",
        "deny",
        "grant",
        "ok",
        "yes",
        "buy",
        "pay",
        "install",
        "format",
        "restart",
        "shutdown",
        "power",
        "forget",
        "block",
        "clear",
        "disable",
        "enable",
        "turn",
        "logout",
        "signout",
    ]
)


def _harmless(element: Element) -> bool:
    if not element.usable or element.is_field or element.checked is not None or not element.label:
        return False
    return not _HARMFUL & set(words(element.label))


def _count(at: Situation) -> int:
    return int(at.slots["count"] or 5)


def _enough(at: Situation) -> Move | None:
    done = at.turns
    page = at.prompt.screen.page or None
    return finish(True, f"looked around for {done} turns", evidence=page) if done >= _count(at) else None


def _look(at: Situation) -> Move | None:
    turn = at.turns
    label = f"look around, turn {turn + 1} of {_count(at)}"
    harmless = [element for element in at.elements if _harmless(element)]
    if harmless and turn % 2 == 0:
        element = harmless[(turn // 2) % len(harmless)]
        return tap(element, f'{label}: tap "{element.label[:60]}"', "Some screen is shown.")
    way = "down" if turn % 4 == 1 else "up"
    return Move(
        act=swipe(at, way),
        intent=f"{label}: scroll {way}",
        expect="The list has moved, or not.",
    )


LOOK_AROUND = Playbook(
    name="look-around",
    goal=re.compile(r"look (?:a)?round(?: for)?(?: (?P<count>\d+) (?:turns?|times|steps?))?", re.IGNORECASE),
    rules=(_enough, _look),
)
