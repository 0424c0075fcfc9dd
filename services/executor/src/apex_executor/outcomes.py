"""What an act comes to, as values."""

from typing import NamedTuple


class Outcome(NamedTuple):
    """What was seen to come of an act. `success` False: it took place and did not have its effect."""

    success: bool
    code: str | None = None
    message: str | None = None
    verify_ms: int | None = None
    read_back_ms: int | None = None


class Failure(NamedTuple):
    """`acted` None means: it may have been done. `session_dead` asks for a new session."""

    code: str
    acted: bool | None
    session_dead: bool
    message: str
