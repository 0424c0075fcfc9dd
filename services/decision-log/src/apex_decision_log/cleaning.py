"""What Postgres cannot hold, replaced: NUL and lone surrogates, which models and screens do send.

One of them in one row fails its whole batch, for ever. Pure.
"""

import re
from typing import Any, overload

import msgspec

from apex_decision_log.rows import Json

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@overload
def text(value: str) -> str: ...
@overload
def text(value: str | None) -> str | None: ...
def text(value: str | None) -> str | None:
    """The text as it can be stored; None stays None."""
    return None if value is None else _UNSTORABLE.sub(REPLACEMENT, value)


def json(value: Any) -> Json:
    """Any value of a message as jsonb. Raises RecursionError for what is nested too deep."""
    return Json(msgspec.json.encode(_clean(msgspec.to_builtins(value, str_keys=True))).decode())


def _clean(value: Any) -> Any:
    match value:
        case str():
            return text(value)
        case dict():
            return {_clean(key): _clean(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [_clean(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
