"""The requests that this server saw, for tests to read: everything but keys and pictures.

Owns the list behind `GET /lab/model/calls`; the newest thousand are kept.
"""

import time
from collections import deque
from collections.abc import Mapping
from typing import cast

import msgspec

from apex_lab.model.tools import Json, is_json

_KEPT = 1000
_SECRET = ("authorization", "key", "cookie", "token", "secret")
_LONG = 4096


class CallLog:
    """What was asked and how it was answered."""

    def __init__(self) -> None:
        self._calls: deque[Json] = deque(maxlen=_KEPT)
        self._started = time.monotonic()

    def begin(self, *, serial: int, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> Json:
        """Note a request; the caller fills in `status`, `source` and `ms` when it is answered."""
        call: Json = {
            "serial": serial,
            "at_ms": round((time.monotonic() - self._started) * 1000, 3),
            "method": method,
            "path": path,
            "headers": {name: text for name, text in headers.items() if not _secret(name)},
            "body": _readable(raw),
            "status": None,
            "source": None,
            "ms": None,
        }
        self._calls.append(call)
        return call

    def listed(self) -> list[Json]:
        """The calls, oldest first."""
        return list(self._calls)

    def clear(self) -> None:
        """Forget them."""
        self._calls.clear()


def _secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET)


def _readable(raw: bytes) -> object:
    try:
        return _without_pictures(msgspec.json.decode(raw)) if raw else None
    except msgspec.DecodeError:
        return raw.decode(errors="replace")


def _without_pictures(value: object) -> object:
    if is_json(value):
        return {key: _short(key, part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_pictures(part) for part in cast(list[object], value)]
    return value


def _short(key: str, part: object) -> object:
    picture = key in ("data", "url", "image_url") and isinstance(part, str) and len(part) > _LONG
    return f"({len(cast(str, part))} characters left out)" if picture else _without_pictures(part)
