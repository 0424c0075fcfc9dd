"""The streams: what each keeps, for how long, and what it does when it is full. Set-up makes them from here."""

from typing import Final, Literal

from apex_schemas.structs import Wire

_DAY: Final = 86_400
_MIB: Final = 1024 * 1024


class Stream(Wire, frozen=True, kw_only=True):
    """A JetStream stream, always with limits retention and file storage.

    `once`: the server itself refuses a second message on a subject. `full` says what a full stream does: refuse new
    messages or drop the oldest. Ages in seconds, 0 for none; sizes in bytes.
    """

    name: str
    subjects: tuple[str, ...]
    max_age_s: int
    max_bytes: int
    full: Literal["refuse", "drop-oldest"]
    once: bool = False
    last_only: bool = False
    message_ttl: bool = False


STREAMS: Final = (
    Stream(name="TASKS", subjects=("task.>",), max_age_s=7 * _DAY, max_bytes=4096 * _MIB, full="refuse", once=True),
    Stream(
        name="REQUESTS",
        subjects=("request.*", "cancel.*", "approve.*.*"),
        max_age_s=_DAY,
        max_bytes=256 * _MIB,
        full="refuse",
    ),
    Stream(name="DEVICES", subjects=("device.*",), max_age_s=0, max_bytes=64 * _MIB, full="refuse", last_only=True),
    Stream(
        name="CLAIMS",
        subjects=("claim.*.*",),
        max_age_s=_DAY,
        max_bytes=64 * _MIB,
        full="refuse",
        last_only=True,
        message_ttl=True,
    ),
    Stream(name="SHOTS", subjects=("shot.*.*.*",), max_age_s=3_600, max_bytes=1024 * _MIB, full="drop-oldest"),
    Stream(
        name="DECISIONS",
        subjects=("decision.*.*.*",),
        max_age_s=14 * _DAY,
        max_bytes=2048 * _MIB,
        full="refuse",
        once=True,
    ),
    Stream(name="DEAD", subjects=("dead.*",), max_age_s=14 * _DAY, max_bytes=64 * _MIB, full="drop-oldest"),
)
