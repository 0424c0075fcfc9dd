"""Perception's decisions, on values alone: is a Scene wanted, has the screen settled, is a picture worth its bytes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple, assert_never

from apex_schemas.actions import DescribeScreen, FinishTask, LaunchApp, Look, TerminateApp, Wait
from apex_schemas.devices import DeviceRecord
from apex_schemas.steps import WorldEvent
from apex_schemas.task import TaskStarted

ScreenshotMode = Literal["auto", "always", "never"]
"""When a picture is taken for the planner."""

EQUAL_READS: Final = 2
OLDEST_READING_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.03
_LONGEST_PAUSE_S: Final = 0.25
_WATCHING_PAUSE_S: Final = 0.08
_SLOW_START_S: Final = 1.5
_SLOW_CHANGE_S: Final = 0.3
_BARE_S: Final = 2.5


class Settled(NamedTuple):
    """`settled` is false when the cap came first."""

    settled: bool


class ReadAgain(NamedTuple):
    pause_s: float


def next_turn(cause: TaskStarted | WorldEvent, turn: int) -> int | None:
    """The turn whose Scene a message asks for; None when it asks for none."""
    match cause:
        case TaskStarted():
            return 0
        case WorldEvent(action=FinishTask()):
            return None
        case WorldEvent():
            return turn + 1
        case _:
            assert_never(cause)


def is_on_task(record: DeviceRecord | None, task: str) -> bool:
    return record is not None and record.claim is not None and record.claim.task == task


def patience_s(cause: TaskStarted | WorldEvent) -> float:
    """How long an unchanged screen is given to begin to change, after an act that should change it."""
    match cause:
        case TaskStarted() | WorldEvent(success=False):
            return 0.0
        case WorldEvent(action=Look() | Wait() | DescribeScreen() | FinishTask()):
            return 0.0
        case WorldEvent(action=LaunchApp() | TerminateApp()):
            return _SLOW_START_S
        case WorldEvent():
            return _SLOW_CHANGE_S
        case _:
            assert_never(cause)


def after_reads(
    reads: Sequence[str], *, elapsed_s: float, before: str | None, patience: float, cap_s: float, bare: bool = False
) -> Settled | ReadAgain:
    """Whether the screen stands still. `reads` are masked fingerprints, `before` that of the Scene that was acted on,
    `elapsed_s` counts from the beginning of the first reading to the end of the last.

    Settled when the last reads are equal and differ from `before`; equal to it, only after `patience` seconds, since
    what was done may not have begun to show. A `bare` screen, with nothing on it that could be used, is most often one
    that an app shows while it starts: it is given some seconds to become another.
    """
    last = reads[-EQUAL_READS:]
    equal = len(last) == EQUAL_READS and len(set(last)) == 1
    needed = max(patience if reads and reads[-1] == before else 0.0, _BARE_S if bare else 0.0)
    if equal and elapsed_s >= needed:
        return Settled(True)
    if elapsed_s >= cap_s and len(last) == EQUAL_READS:
        return Settled(equal)
    if len(reads) < EQUAL_READS:
        return ReadAgain(0.0)
    if equal:  # it is waited for a change
        return ReadAgain(min(_WATCHING_PAUSE_S, max(needed - elapsed_s, 0.0) or _WATCHING_PAUSE_S))
    changes = sum(one != other for one, other in pairwise(reads))
    return ReadAgain(min(_FIRST_PAUSE_S * 1.5 ** (changes - 1), _LONGEST_PAUSE_S))


def wants_picture(mode: ScreenshotMode, *, tree_says_little: bool) -> bool:
    """`auto` takes one when the tree says little."""
    match mode:
        case "always":
            return True
        case "never":
            return False
        case "auto":
            return tree_says_little
        case _:
            assert_never(mode)
