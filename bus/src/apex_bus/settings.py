"""Settings come from the environment alone, are read once at start, and are refused by the name of the variable."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from apex_bus.errors import SettingsError

Settings = TypeVar("Settings", bound=msgspec.Struct)

_SECRET_WORDS: Final = ("key", "password", "token", "seed", "secret", "database_url")
_TRUTH: Final = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


def load(type_: type[Settings], environ: Mapping[str, str], *, prefix: str) -> Settings:
    """Read a Struct whose field `max_tokens` is the variable `<prefix>MAX_TOKENS`.

    An empty variable counts as unset. Raises SettingsError that names the variable; values of secrets are not echoed.
    """
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(type_):
        name = variable(prefix, field.name)
        text = environ.get(name, "").strip()
        if not text:
            if field.required:
                raise SettingsError(name, "must be set")
            continue
        values[field.name] = _convert(name, text, field.type)
    return msgspec.convert(values, type_)


def variable(prefix: str, field: str) -> str:
    return f"{prefix}{field.upper()}"


def _convert(name: str, text: str, type_: Any) -> Any:
    secret = any(word in name.lower() for word in _SECRET_WORDS)
    shown = "the value" if secret else repr(text)
    candidate: Any = text
    if _allows_bool(type_):
        if text.lower() not in _TRUTH:
            raise SettingsError(name, f"{shown} is neither true nor false")
        candidate = _TRUTH[text.lower()]
    try:
        return msgspec.convert(candidate, type_, strict=False)
    except msgspec.ValidationError as error:
        reason = "not of its kind" if secret and text in str(error) else str(error)
        raise SettingsError(name, f"{shown} is not allowed: {reason}{_choices(type_)}") from None


def _allows_bool(type_: Any) -> bool:
    return isinstance(msgspec.inspect.type_info(type_), msgspec.inspect.BoolType)


def _choices(type_: Any) -> str:
    info = msgspec.inspect.type_info(type_)
    literal = info if isinstance(info, msgspec.inspect.LiteralType) else None
    if isinstance(info, msgspec.inspect.UnionType):
        literal = next((each for each in info.types if isinstance(each, msgspec.inspect.LiteralType)), None)
    return f"; choose one of {', '.join(map(str, literal.values))}" if literal else ""


class BusSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where NATS is and who we are there. Without a seed file we are the guest."""

    url: str = "nats://127.0.0.1:4222"
    seed_file: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None


def bus_settings(environ: Mapping[str, str]) -> BusSettings:
    return load(BusSettings, environ, prefix="APEX_NATS_")
