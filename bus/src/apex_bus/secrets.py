"""Secrets of the phone's host: read at start from a file or the environment, typed by name, told to nobody.

Consumes `<PREFIX>SECRETS_FILE`, a JSON object of names, and variables `<PREFIX>SECRET_<NAME>`. A value is a text, or
in the file `{"value": "…", "apps": ["com.bank.*"]}`, which binds it to the apps that it may be typed into. Owns the
values: they leave by `reveal` alone, and `mask` takes them out of any text.
"""

import fnmatch
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec

from apex_bus.errors import SettingsError
from apex_schemas.secrets import PLACEHOLDER, SecretName, malformed, placeholder

SHORTEST: Final = 4
"""A shorter value would be found in half of all texts, and masking would tell it."""
_CUT: Final = re.compile(r"""(…|\.\.\.)['"]?\s*(\(\+[\d,]+ characters\))?['"]?\Z""")
"""How a text that was cut may end; a long one is taken for cut in any case."""
_LONG: Final = 100


class _Secret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    value: str
    apps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "_Secret(…)"


class Withheld(NamedTuple):
    """Why a text is not to be typed: a code for the event, and one sentence for the model."""

    code: str
    message: str


class Secrets:
    """What is known on this host. Its text form, as any error, has names only."""

    def __init__(self, secrets: Mapping[str, _Secret] | None = None) -> None:
        self._secrets = dict(secrets or {})
        forms = [(form, name) for name, secret in self._secrets.items() for form in _forms(secret.value)]
        self._names = {form: name for form, name in reversed(forms)}
        ordered = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def __repr__(self) -> str:
        return f"Secrets({', '.join(sorted(self._secrets))})"

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def reveal(self, text: str, *, allowed: Collection[str], app: str | None) -> str | Withheld:
        """The text with the values in it, for the phone alone; Withheld when one may not be typed there."""
        if malformed(text):
            return Withheld("SECRET_UNKNOWN", "a secret is typed as {{secret:NAME}}, with a name of letters, digits, _")
        for name in PLACEHOLDER.findall(text):
            if name not in allowed:
                return Withheld("SECRET_NOT_ALLOWED", f"the task does not allow the secret {name}; nothing was typed")
            secret = self._secrets.get(name)
            if secret is None:
                return Withheld("SECRET_UNKNOWN", f"there is no secret {name} on this phone's host; nothing was typed")
            if secret.apps and not any(fnmatch.fnmatchcase(app or "", pattern) for pattern in secret.apps):
                where = f"is not for {app}" if app else "is bound to apps, and which app this is, is not known"
                return Withheld("SECRET_NOT_ALLOWED", f"the secret {name} {where}; nothing was typed")
        return PLACEHOLDER.sub(lambda found: self._secrets[found[1]].value, text)

    def mask(self, text: str) -> str:
        """The text with every value replaced by its name, and with the beginning of one where the text was cut."""
        if self._pattern is None or not text:
            return text
        text = self._pattern.sub(lambda found: placeholder(self._names[found[0]]), text)
        cut = _CUT.search(text)
        if cut is None and len(text) < _LONG:
            return text
        end = cut.start() if cut else len(text.rstrip("'\" "))
        for form, name in self._names.items():
            for length in range(min(len(form) - 1, end), SHORTEST - 1, -1):
                if text.startswith(form[:length], end - length):
                    return text[: end - length] + placeholder(name) + text[end:]
        return text


def read_secrets(environ: Mapping[str, str], *, prefix: str) -> Secrets:
    """Raises SettingsError that names the variable, never a value."""
    found: dict[str, _Secret] = {}
    variable = f"{prefix}SECRETS_FILE"
    if path := environ.get(variable, "").strip():
        found |= _of_file(variable, Path(path))
    own = f"{prefix}SECRET_"
    for name, value in environ.items():
        if name.startswith(own) and value:
            found[_checked(name, name.removeprefix(own), value)] = _Secret(value)
    return Secrets(found)


_File = dict[str, str | _Secret]


def _of_file(variable: str, path: Path) -> dict[str, _Secret]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError(variable, f"{path} cannot be read: {error.strerror}") from error
    if not data.strip():
        return {}
    try:
        read = msgspec.json.decode(data, type=_File)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # What is wrong where would be told with the text around it.
        reason = f'{path} is no JSON object such as {{"BANK_PIN": "…", "SHOP": {{"value": "…", "apps": ["com.shop"]}}}}'
        raise SettingsError(variable, reason) from None
    made = {name: _Secret(value) if isinstance(value, str) else value for name, value in read.items()}
    return {_checked(variable, name, secret.value): secret for name, secret in made.items()}


def _checked(variable: str, name: str, value: str) -> str:
    try:
        msgspec.convert(name, _NAME)
    except msgspec.ValidationError:
        raise SettingsError(variable, "names a secret with other than letters, digits and _") from None
    if len(value.strip()) < SHORTEST:
        raise SettingsError(variable, f"{name} has a value of less than {SHORTEST} characters, which cannot be masked")
    return name


_NAME: Final = Annotated[SecretName, msgspec.Meta(max_length=64)]


def _forms(value: str) -> set[str]:
    """A value as it may stand in a text: as it is, trimmed, on one line, or between quotes with escapes."""
    plain = {value, value.strip(), " ".join(value.split())}
    quoted = {repr(each)[1:-1] for each in plain} | {json.dumps(each)[1:-1] for each in plain}
    return {each for each in plain | quoted | {each.upper() for each in plain} if len(each) >= SHORTEST}
