"""The demo's three tasks, how each should end, and how the phone itself is asked whether it is so."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from apex_schemas.task import TaskFinished

State = Mapping[str, Any]


class Truth(msgspec.Struct, frozen=True):
    """What was found when the phone was asked: a sentence, and whether it is as it should be."""

    holds: bool
    sentence: str


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """`truth` reads the phone's state before and after the task; `says` is what the task's end must name."""

    text: str
    ends: Literal["succeeded", "failed"]
    truth: Callable[[State, State], Truth]
    answer: str | None = None

    def unexpected(self, end: TaskFinished) -> str | None:
        """What is wrong with how the task ended; None when nothing is."""
        if end.status != self.ends:
            why = f" ({end.failure_reason or end.reason})" if end.failure_reason or end.reason else ""
            return f"it {end.status}{why}, but should have {self.ends}"
        if self.answer is not None and self.answer not in (end.answer or ""):
            return f"its answer does not name {self.answer}"
        if self.ends == "failed" and not (end.failure_reason or "").strip():
            return "it failed without a reason"
        return None


SETTINGS: Final = "com.android.settings"
CONTACTS: Final = "com.android.contacts"
_PASSING: Final = ("running", "pages")
"""What an app shows just now, which is no state of the phone."""

CONTACT: Final = "Zoë Ångström"
NUMBER: Final = "+49 30 901820"


def _wifi_is_on(_: State, after: State) -> Truth:
    settings = after["apps"][SETTINGS]
    on = settings["wifi"] is True
    return Truth(on, f"Wi-Fi is {'on, joined to ' + settings['wifi_network'] if on else 'off'}")


def _contact_is_there(_: State, after: State) -> Truth:
    found = [one for one in after["apps"][CONTACTS]["contacts"] if one["name"] == CONTACT]
    if len(found) == 1 and _digits(found[0]["phone"]) == _digits(NUMBER):
        return Truth(True, f"Contacts holds {CONTACT}, {found[0]['phone']}, once")
    return Truth(False, f"Contacts should hold {CONTACT}, {NUMBER} once, and holds {found or 'no such name'}")


def _nothing_changed(before: State, after: State) -> Truth:
    changed = [
        f"{app} {name}"
        for app in (SETTINGS, CONTACTS)
        for name, value in before["apps"][app].items()
        if name not in _PASSING and after["apps"][app][name] != value
    ]
    return Truth(not changed, f"changed: {', '.join(changed)}" if changed else "no setting and no contact has changed")


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


GOALS: Final = (
    Goal(
        text="Turn on Wi-Fi and report the network name",
        ends="succeeded",
        truth=_wifi_is_on,
        answer="Lab-5G",
    ),
    Goal(
        text=f'Create a contact named "{CONTACT}" with phone {NUMBER}',
        ends="succeeded",
        truth=_contact_is_there,
    ),
    Goal(text="Turn on NFC", ends="failed", truth=_nothing_changed),
)
