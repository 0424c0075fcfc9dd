"""Secrets at the edge to the phone: put into an act right before it, and kept out of what is told of it.

Consumes the secrets of this host and the names that a task allows; emits the act for the phone, which goes nowhere
else, and outcomes whose words hold no value.
"""

from collections.abc import Collection
from typing import Final

from msgspec import structs

from apex_bus.secrets import Secrets, Withheld
from apex_executor.errors import ActRefused
from apex_executor.outcomes import Failure, Outcome
from apex_schemas.actions import DeviceAction, InputText
from apex_schemas.secrets import types_secret
from apex_schemas.steps import PlannedStep, Target

_UNTOLD: Final = "what the field shows is not told, since a secret was typed"
_DRIVER: Final = "what the driver said is not told, since a secret was typed"
_TELLING: Final = ("the driver reported an error", "the driver said")
"""Beginnings of messages that go on with words of the driver, which may repeat what it was given."""


def revealed(
    secrets: Secrets, step: PlannedStep, action: DeviceAction, *, allowed: Collection[str]
) -> tuple[DeviceAction, Target | None]:
    """The act and its target with values in place of names. Raises ActRefused where one may not be typed.

    The target's words come from a Scene in which values were masked: on the phone they are looked for as they are.
    """
    target = step.target
    if target is not None and secrets:
        shown = {
            field: _unmasked(secrets, text, allowed, step.app)
            for field in ("text", "description", "label")
            if (text := getattr(target, field))
        }
        target = structs.replace(target, **shown)
    if not isinstance(action, InputText):
        return action, target
    match secrets.reveal(action.text, allowed=allowed, app=step.app):
        case Withheld(code=code, message=message):
            raise ActRefused(code, message)
        case text:
            return structs.replace(action, text=text), target


def _unmasked(secrets: Secrets, text: str, allowed: Collection[str], app: str | None) -> str:
    found = secrets.reveal(text, allowed=allowed, app=app)
    return text if isinstance(found, Withheld) else found


def told_of_outcome(secrets: Secrets, outcome: Outcome, action: DeviceAction) -> Outcome:
    """The outcome for the log: with no text of a field that a secret was typed into."""
    if outcome.message is None:
        return outcome
    if types_secret(action) and outcome.code == "TEXT_DIFFERS":
        return outcome._replace(message=f"the field does not hold what was typed; {_UNTOLD}")
    return outcome._replace(message=secrets.mask(outcome.message))


def told_of_failure(secrets: Secrets, failure: Failure, action: DeviceAction) -> Failure:
    """The failure for the log: an error of the driver may repeat the text that it was to type, cut anywhere."""
    if types_secret(action) and any(words in failure.message for words in _TELLING):
        return failure._replace(message=_DRIVER)
    return failure._replace(message=secrets.mask(failure.message))
