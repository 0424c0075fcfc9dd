"""What a server may refuse to be asked for, and how to do without: each feature is dropped once and for good.

A server that does not know a parameter answers 400 or 422 and names it. The one feature is then left out of every later
request of this process to this endpoint, and that is logged once.
"""

import logging
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from apex_planner.clients.reading import Json

log = logging.getLogger(__name__)

MORE_ROOM: Final = 4
"""By how much the allowance for the answer grows after an answer that was cut off."""


class Feature(NamedTuple):
    """`named` finds it in an error body; `used` tells whether a request has it. Order is the order of dropping."""

    name: str
    named: re.Pattern[str]
    used: Callable[[Json], bool]


def feature(name: str, pattern: str, used: Callable[[Json], bool]) -> Feature:
    return Feature(name, re.compile(pattern, re.IGNORECASE), used)


class Features:
    """What is left out, for one endpoint and model."""

    def __init__(self, known: Sequence[Feature], *, endpoint: str) -> None:
        self._known, self._endpoint = known, endpoint
        self.dropped: set[str] = set()

    def __contains__(self, name: str) -> bool:
        """Whether the feature may still be used."""
        return name not in self.dropped

    def drop(self, status: int, error_body: str, request: Json) -> bool:
        """Drop the feature that an error names. False when it names none that the request used."""
        if status not in (400, 422):
            return False
        for known in self._known:
            if known.name not in self.dropped and known.named.search(error_body) and known.used(request):
                self.dropped.add(known.name)
                log.warning("%s refuses %s; going on without it", self._endpoint, known.name)
                return True
        return False
