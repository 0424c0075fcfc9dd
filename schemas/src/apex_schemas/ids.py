"""Identifiers: what a task, a device and an attempt may be called.

A task id is an OpenTelemetry trace id (32 lower-case hex digits, not all zero); a device is an alias, never a udid,
since both become tokens of NATS subjects and a udid may hold dots and colons.
"""

import hashlib
import re
import secrets
from typing import Annotated, Final

from msgspec import Meta

# `$` alone lets a line break follow, which NATS refuses in a subject.
TASK_PATTERN: Final = r"^(?!0{32}$)[0-9a-f]{32}$(?!\n)"
DEVICE_PATTERN: Final = r"^(?!(any|android|ios|none)$)[a-z0-9-]{1,32}$(?!\n)"
POOL_PATTERN: Final = r"^[a-z0-9-]{1,32}$(?!\n)"

TaskId = Annotated[str, Meta(pattern=TASK_PATTERN)]
DeviceAlias = Annotated[str, Meta(pattern=DEVICE_PATTERN)]

NO_DEVICE: Final = "none"
"""Stands for the device in the subject of a task that never started."""

_TASK = re.compile(TASK_PATTERN)
_DEVICE = re.compile(DEVICE_PATTERN)
_POOL = re.compile(POOL_PATTERN)


def is_task_id(text: str) -> bool:
    return _TASK.match(text) is not None


def is_device(text: str) -> bool:
    return _DEVICE.match(text) is not None


def is_pool(text: str) -> bool:
    """A pool is `any`, a platform, or a device alias."""
    return _POOL.match(text) is not None and text != NO_DEVICE


def new_task_id() -> str:
    return secrets.token_hex(16)


def new_attempt() -> str:
    """Names one try at filling a slot, so that a refused writer can tell its own earlier write from another's."""
    return secrets.token_hex(8)


def derived_task_id(timestamp_ns: int, sequence: int) -> str:
    """The id of a request that came without one: a hash of the stored message's timestamp (ns) and stream sequence.

    The bare sequence would repeat when the stream is made anew, and its low bits would make a poor trace id.
    """
    return hashlib.blake2b(f"{timestamp_ns}:{sequence}".encode(), digest_size=16).hexdigest()
