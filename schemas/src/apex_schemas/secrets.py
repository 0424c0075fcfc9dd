"""Secrets as they travel: by name. `{{secret:NAME}}` in the text of `input_text` stands for a value that only the
phone's host knows."""

import re
from typing import Annotated, Final

from msgspec import Meta

from apex_schemas.actions import Action, InputText

_NAME: Final = "[A-Za-z][A-Za-z0-9_]{0,63}"

SecretName = Annotated[str, Meta(pattern=rf"^{_NAME}$(?!\n)")]
PLACEHOLDER: Final = re.compile(r"\{\{\s*secret:\s*(" + _NAME + r")\s*\}\}")
_MEANT: Final = re.compile(r"\{\{\s*secret\b")


def placeholder(name: str) -> str:
    return f"{{{{secret:{name}}}}}"


def names_in(text: str) -> tuple[str, ...]:
    """The secrets that a text names, in order, each once."""
    return tuple(dict.fromkeys(PLACEHOLDER.findall(text)))


def malformed(text: str) -> bool:
    """Whether a text means to name a secret in a form that nobody would replace."""
    return _MEANT.search(PLACEHOLDER.sub("", text)) is not None


def types_secret(action: Action) -> bool:
    return isinstance(action, InputText) and bool(names_in(action.text) or malformed(action.text))
