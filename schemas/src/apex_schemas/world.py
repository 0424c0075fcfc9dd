"""The World of turn n, folded from the log: `started` and the events 0 to n-1, all of them."""

from collections.abc import Mapping

from apex_schemas.errors import LogTorn
from apex_schemas.steps import WorldEvent, WorldState
from apex_schemas.task import TaskStarted


def fold(task: str, started: TaskStarted, events: Mapping[int, WorldEvent], *, turn: int) -> WorldState:
    """The state before turn `turn`. Raises LogTorn when an event before it is missing: a planner that does not know
    what it did last would do it again."""
    missing = [n for n in range(turn) if n not in events]
    if missing:
        raise LogTorn(task, expected=turn, found=turn - len(missing))
    return WorldState(started=started, history=tuple(events[n] for n in range(turn)))
