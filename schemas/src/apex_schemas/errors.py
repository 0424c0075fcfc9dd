"""What can be wrong with a message.

WireError
├── TooLarge           more bytes than a message may have
├── Undecodable        neither msgpack nor JSON of the expected shape
├── UnknownKind        a kind that this version does not know: counted and skipped, never dead-lettered
├── SubjectMismatch    the envelope contradicts the subject it came on: forged, replayed or misdirected
├── UnknownFields      JSON from a client with fields that mean nothing
└── LogTorn            a task's events are not the contiguous run that a turn needs: read again
"""


class WireError(Exception):
    """Base of all errors of the wire."""


class TooLarge(WireError):
    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} has {size:,} bytes, more than the {limit:,} allowed; send less")
        self.size, self.limit = size, limit


class Undecodable(WireError):
    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} cannot be read: {reason}")
        self.reason = reason


class UnknownKind(WireError):
    def __init__(self, kind: str) -> None:
        super().__init__(f"message kind {kind!r} is not known to this version; upgrade the reader")
        self.kind = kind


class SubjectMismatch(WireError):
    def __init__(self, subject: str, found: str) -> None:
        super().__init__(f"the message on {subject} says that it belongs to {found}; it is not believed")
        self.subject, self.found = subject, found


class UnknownFields(WireError):
    def __init__(self, names: list[str], known: list[str]) -> None:
        super().__init__(f"unknown field {', '.join(names)}; known are {', '.join(known)}")
        self.names = names


class LogTorn(WireError):
    def __init__(self, task: str, expected: int, found: int) -> None:
        super().__init__(f"task {task}: {found} of {expected} events could be read; read again before deciding")
        self.task, self.expected, self.found = task, expected, found
