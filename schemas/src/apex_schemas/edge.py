"""The edge where outsiders write: a task request as JSON or msgpack, checked field by field.

Inside the system unknown fields are ignored, for evolution; here a field that means nothing is a typing error of a
person, and is refused by name.
"""

import hashlib
from functools import cache
from typing import Any

import msgspec

from apex_schemas.errors import TooLarge, Undecodable, UnknownFields
from apex_schemas.task import TaskRequest

MAX_REQUEST_BYTES = 64 * 1024
BLANK = "its goal is blank; say what is to be done"


def decode_request(data: bytes) -> TaskRequest:
    """Read a task request. Raises TooLarge, Undecodable or UnknownFields, each with a sentence for its sender."""
    if len(data) > MAX_REQUEST_BYTES:
        raise TooLarge("the task request", len(data), MAX_REQUEST_BYTES)
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    decode = msgspec.json.decode if text[:1] == b"{" else msgspec.msgpack.decode
    try:
        fields: Any = decode(text if text[:1] == b"{" else data)
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
