"""A task request as it lies in REQUESTS: read, named and dated, the same way by claim, intake and watchdog."""

from typing import Final, NamedTuple

from apex_bus.consume import Delivery
from apex_schemas import edge
from apex_schemas.edge import BLANK, decode_request, digest, is_blank
from apex_schemas.errors import Undecodable
from apex_schemas.task import TaskRequest

WAIT_SECONDS: Final = 3_600.0
"""How long a request without `not_after` waits for a device."""


class Asked(NamedTuple):
    """A request with its task id, its digest, and the Unix time after which it is not begun any more."""

    request: TaskRequest
    task: str
    digest: str
    not_after: float

    def expired(self, now: float) -> bool:
        return now >= self.not_after


def task_of(delivery: Delivery) -> str:
    """The id of a request, be it malformed: whoever asked looks for its end under the id that he gave it."""
    return edge.task_of(delivery.data, timestamp_ns=delivery.timestamp_ns, sequence=delivery.sequence)


def read_request(delivery: Delivery) -> Asked:
    """Read a request. Raises WireError."""
    request = decode_request(delivery.data)
    if is_blank(request.goal):  # only here: one that an older version has begun is gone on with
        raise Undecodable("the task request", BLANK)
    not_after = request.not_after or delivery.timestamp_ns / 1e9 + WAIT_SECONDS
    return Asked(request, request.task or task_of(delivery), digest(delivery.data), not_after)
