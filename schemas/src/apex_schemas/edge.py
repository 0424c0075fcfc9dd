"""The edge where outsiders write: a task request as JSON or msgpack, checked field by field.

Inside the system unknown fields are ignored, for evolution; here a field that means nothing is a typing error of a
person, and is refused by name.
"""

import contextlib
import hashlib
from functools import cache
from typing import Any

import msgspec

from apex_schemas.errors import TooLarge, Undecodable, UnknownFields
from apex_schemas.ids import TaskId, derived_task_id
from apex_schemas.task import TaskRequest

MAX_REQUEST_BYTES = 64 * 1024
BLANK = "its goal is blank; say what is to be done"


def decode_request(data: bytes) -> TaskRequest:
    """Read a task request. Raises TooLarge, Undecodable or UnknownFields, each with a sentence for its sender."""
    if len(data) > MAX_REQUEST_BYTES:
        raise TooLarge("the task request", len(data), MAX_REQUEST_BYTES)
    text = _json(data)
    try:
        fields: Any = msgspec.msgpack.decode(data) if text is None else msgspec.json.decode(text)
        if not isinstance(fields, dict):
            raise Undecodable("the task request", 'send an object such as {"goal": "turn on Wi-Fi"}')
        known = list(TaskRequest.__struct_fields__)
        unknown = [str(name) for name in fields if name not in known]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if unknown:
            raise UnknownFields(unknown, known)
        if fields.get("goal") == "":  # pyright: ignore[reportUnknownMemberType]
            raise Undecodable("the task request", BLANK)
        return msgspec.convert(fields, TaskRequest)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Undecodable("the task request", str(error) or type(error).__name__) from error


def _json(data: bytes) -> bytes | None:
    """The JSON that it is; None where it is to be msgpack."""
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text if text[:1] == b"{" else None


class _Named(msgspec.Struct, frozen=True):
    task: TaskId | None = None


def task_of(data: bytes, *, timestamp_ns: int, sequence: int) -> str:
    """The id of a stored request: the one that it names, where that can be read whatever else is wrong; else the one
    that is made from its place."""
    text = _json(data)
    named: _Named | None = None
    with contextlib.suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        named = msgspec.msgpack.decode(data, type=_Named) if text is None else msgspec.json.decode(text, type=_Named)
    return (named.task if named else None) or derived_task_id(timestamp_ns, sequence)


def is_blank(goal: str) -> bool:
    """Whether it says nothing: white space and invisible marks alone."""
    return not any(character.isprintable() and not character.isspace() for character in goal)


def digest(data: bytes) -> str:
    """What tells one request from another under the same task id: a hash of what was asked for, however written.

    Only fields that differ from their defaults count, so that versions which know other fields agree on it: the
    executor that took a request and the one that meets it again may be of two versions.
    """
    request = decode_request(data)
    given = [(name, value) for name, default in _defaults(TaskRequest) if (value := getattr(request, name)) != default]
    return hashlib.sha256(msgspec.msgpack.encode(given)).hexdigest()[:32]


@cache
def _defaults(type_: type[TaskRequest]) -> tuple[tuple[str, Any], ...]:
    """The fields of a request in alphabetical order, each with its default; those without one never equal it."""
    fields = sorted(msgspec.structs.fields(type_), key=lambda field: field.name)
    return tuple((field.name, _default(field)) for field in fields)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
