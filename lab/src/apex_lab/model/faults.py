"""Answers and faults that a test orders in advance: `POST /lab/model/next` puts them in a queue, requests take them
out.

    [{"status": 529, "body": {...}, "times": 2}, {"delay_ms": 3000}, {"reset": true}, {"cut_after": 40}]

A fault without `status`, `body`, `reset` and `cut_after` lets the playbook answer, late if there is a `delay_ms`.
"""

import base64
import binascii
from collections import deque

import msgspec
from msgspec import UNSET, Struct, UnsetType

from apex_lab.model.errors import FaultInvalid


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ordered answer.

    `body` is JSON, or a string that is sent as it is; `body_base64` is raw bytes. `cut_after` bytes of the body (the
    playbook's, when none is given) the connection is closed; `reset` closes it before any byte. `path` limits the
    fault to requests whose path contains it (completions only, when absent); `times` repeats it.
    """

    status: int | None = None
    body: object | UnsetType = UNSET
    body_base64: str | None = None
    headers: dict[str, str] = {}
    delay_ms: int = 0
    reset: bool = False
    cut_after: int | None = None
    path: str | None = None
    times: int = 1

    @property
    def answers(self) -> bool:
        """Whether this fault stands in for the playbook."""
        return self.status is not None or self.body is not UNSET or self.body_base64 is not None or self.reset

    def content(self) -> tuple[bytes, str]:
        """The raw body and its content type; what the headers say goes before it."""
        if self.body_base64 is not None:
            return base64.b64decode(self.body_base64), "application/octet-stream"
        if isinstance(self.body, str):
            kind = "text/html" if self.body.lstrip().startswith("<") else "text/plain"
            return self.body.encode(), kind
        return (b"" if self.body is UNSET else msgspec.json.encode(self.body)), "application/json"


class FaultQueue:
    """What was ordered and not yet used, in order."""

    def __init__(self) -> None:
        self._waiting: deque[Fault] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def order(self, raw: bytes) -> int:
        """Add one fault or a list of them; the number now waiting.

        Raises:
            FaultInvalid: with what is wrong where.
        """
        try:
            ordered = msgspec.json.decode(raw, type=Fault | list[Fault])
            faults = ordered if isinstance(ordered, list) else [ordered]
            for fault in faults:
                base64.b64decode(fault.body_base64 or "", validate=True)
        except (msgspec.DecodeError, binascii.Error) as invalid:
            raise FaultInvalid(str(invalid)) from invalid
        for fault in faults:
            self._waiting.extend([fault] * fault.times)
        return len(self._waiting)

    def take(self, path: str, *, completion: bool) -> Fault | None:
        """The first waiting fault that is meant for this request, removed."""
        for fault in self._waiting:
            if (fault.path in path) if fault.path is not None else completion:
                self._waiting.remove(fault)
                return fault
        return None

    def clear(self) -> None:
        """Forget what is waiting."""
        self._waiting.clear()
