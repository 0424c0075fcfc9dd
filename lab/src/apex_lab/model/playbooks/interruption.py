"""Rules for what comes up unasked: permission questions, an app that does not answer, notices.

Used by the other playbooks before their own rules.
"""

from apex_lab.model.labels import fit
from apex_lab.model.moves import Move
from apex_lab.model.situation import Situation, tap

_SURE = 0.9
_FEW = 4


def allow_permission(at: Situation) -> Move | None:
    """A question with yes and no: yes."""
    allow, deny = at.find("Allow", least=_SURE), at.find("Deny", least=_SURE)
    if allow is None or deny is None:
        return None
    return tap(allow, f'answer the permission question with "{allow.label}"', "The question is gone.")


def dismiss_notice(at: Situation) -> Move | None:
    """A small dialog that stands in the way: the button that changes least."""
    usable = [element for element in at.elements if element.usable and element.label]
    named = any(word in line.role for line in at.elements for word in ("dialog", "alert", "popup"))
    only_buttons = len(usable) > 1 and all("button" in element.role for element in usable)
    if at.fields() or not (named or only_buttons or at.prompt.screen.app == "android") or len(usable) > _FEW:
        return None
    buttons = [element for element in usable if fit("Not now", element.label) >= _SURE]
    return tap(buttons[0], f'close the notice with "{buttons[0].label}"', "The notice is gone.") if buttons else None


INTERRUPTIONS = (allow_permission, dismiss_notice)
