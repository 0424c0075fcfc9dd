"""What each decision to act may do to a phone, and when: the account's own reading of the task log."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, assert_never

from msgspec import Struct

from apex_lab.chaos.evidence import Stored
from apex_schemas.actions import (
    Back,
    DeviceAction,
    Home,
    InputText,
    LaunchApp,
    LongPress,
    PressKey,
    Scroll,
    Swipe,
    Tap,
    TerminateApp,
    Wait,
)
from apex_schemas.steps import ActIntent, WorldEvent


class Deed(Struct, frozen=True, kw_only=True):
    """A decision that was begun: its `acting`, its `event` where there is one, and the end of its task."""

    name: str
    device: str
    action: DeviceAction
    session: str
    worker: str
    acting_ms: int
    event_ms: int | None
    event: WorldEvent | None
    finished_ms: int | None


def deeds_of(stored: Sequence[Stored]) -> list[Deed]:
    """All that was begun, in order."""
    places: dict[tuple[str, str, int | None], Stored] = {}
    for each in stored:
        if each.slot is not None and each.slot.kind in ("event", "finished"):
            places.setdefault((each.slot.task, each.slot.kind, each.slot.turn), each)
    deeds: list[Deed] = []
    for each in stored:
        intent: Any = each.body
        if each.slot is not None and isinstance(intent, ActIntent):
            event = places.get((each.slot.task, "event", each.slot.turn))
            finished = places.get((each.slot.task, "finished", None))
            deeds.append(
                Deed(
                    name=each.subject.removesuffix(".acting"),
                    device=each.slot.device,
                    action=intent.action,
                    session=intent.session,
                    worker=intent.worker,
                    acting_ms=each.at_ms,
                    event_ms=event.at_ms if event else None,
                    event=event.body if event else None,
                    finished_ms=finished.at_ms if finished else None,
                )
            )
    return deeds


def touches_allowed(action: DeviceAction) -> Counter[str]:
    """The most inputs of each kind that an act consists of. Typing may have to tap its field, and clears it."""
    match action:
        case Tap():
            return Counter(tap=1)
        case LongPress():
            return Counter(long_press=1)
        case Swipe() | Scroll():
            return Counter(swipe=1)
        case InputText():
            return Counter(tap=1, clear=1, text=1)
        case LaunchApp():
            return Counter(launch=1)
        case TerminateApp():
            return Counter(terminate=1)
        case Back() | Home() | PressKey():
            return Counter(key=1)
        case Wait():
            return Counter()
        case _:
            assert_never(action)


def touches_needed(action: DeviceAction) -> Counter[str]:
    """The inputs without which an act cannot have succeeded."""
    if isinstance(action, InputText):
        return Counter(text=1) if action.text else Counter(clear=1)
    return touches_allowed(action)
