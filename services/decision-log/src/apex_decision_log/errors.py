"""What can go wrong in the decision-log.

StoreAway (a Transient)  Postgres does not answer, or is not ready for this version: wait, and lose nothing
RefusedRow               Postgres will never take this row (or query), for its content: park it
"""

from apex_bus.errors import Transient


class StoreAway(Transient):
    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"Postgres at {place} cannot take rows now: {reason}; nothing is acknowledged until it can")
        self.place, self.reason = place, reason


class RefusedRow(Exception):
    """`reason` names the kind of fault, never the row's content."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Postgres refuses a value for its content: {reason}")
        self.reason = reason
