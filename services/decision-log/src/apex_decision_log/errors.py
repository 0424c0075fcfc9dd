"""What can go wrong in the decision-log.

StoreAway (a Transient)  Postgres does not answer, or is not ready for this version: wait, and lose nothing
RefusedRow               Postgres will never take this row (or query), for its content: park it
"""

import re
from typing import Any

from apex_bus.errors import Transient


class StoreAway(Transient):
    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"Postgres at {place} cannot take rows now: {reason}; nothing is acknowledged until it can")
        self.place, self.reason = place, reason


class RefusedRow(Exception):
    """`reason` names the kind of fault and where it is, never the row's content."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Postgres refuses a value for its content: {reason}")
        self.reason = reason


def refusal_of(error: Any) -> str:
    """What Postgres has against a row, without its sentence, which may quote the row: `check violation (SQLSTATE 23514)
    of constraint positive in table steps`."""
    fault = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    if fault.count(" ") > 1:
        fault = fault.removesuffix(" error")
    places = [(what, getattr(error, f"{what}_name", None)) for what in ("constraint", "column", "table")]
    where = " in ".join(f"{what} {name}" for what, name in places if name)
    return f"{fault} (SQLSTATE {error.sqlstate})" + (f" of {where}" if where else "")


def sentence_of(error: BaseException) -> str:
    """The first line of what a database says, without the names of its drivers' classes around it."""
    error = getattr(error, "orig", None) or error  # SQLAlchemy's, around its driver's, around the database's
    if type(error).__module__.startswith("sqlalchemy") and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
