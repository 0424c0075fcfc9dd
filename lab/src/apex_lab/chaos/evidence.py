"""What each witness says, as values: the asker, the phones, the task log, the provider, Postgres, and the trouble made.

Times are Unix milliseconds of this machine, where all of it runs.
"""

from typing import Any, Literal, NamedTuple

from msgspec import Struct

from apex_schemas.slots import Slot

Trouble = Literal["kill", "pause", "nats", "postgres", "cut", "delay", "freeze"]


class Asked(Struct, frozen=True, kw_only=True):
    """A task that was asked for, and whose request was acknowledged. `contact` is the name to be made, `switch` what
    is to be on or off in the end; `expected` is how it ends when nobody interferes."""

    task: str
    goal: str
    expected: Literal["succeeded", "failed"]
    at_ms: int
    contact: str | None = None
    switch: tuple[str, bool] | None = None
    cancelled_at_ms: int | None = None


class Stored(NamedTuple):
    """A message of TASKS. `slot` and `body` are None where it could not be read."""

    subject: str
    sequence: int
    at_ms: int
    slot: Slot | None
    body: Any


class Act(NamedTuple):
    """An input that reached a phone, from its own log."""

    phone: str
    n: int
    at_ms: int
    session: str
    kind: str


class Call(NamedTuple):
    """A completion that the provider answered, and which process asked for it."""

    serial: int
    began_ms: int
    ended_ms: int
    process: str | None


class Made(NamedTuple):
    """A trouble that was made: to a process, `nats` or `postgres`, from when to when."""

    kind: Trouble
    target: str
    at_ms: int
    until_ms: int


class Decision(NamedTuple):
    """A message of DECISIONS by its subject. `serial` is that of the provider's answer, where there was one."""

    subject: str
    serial: int | None


class Tables(Struct, frozen=True, kw_only=True):
    """Postgres, one tuple a row: tasks (task, status), steps (task, turn, planned, intended, happened, success),
    scenes (task, turn), decisions (task, turn, call)."""

    tasks: tuple[tuple[str, str], ...] = ()
    steps: tuple[tuple[str, int, str | None, bool, str | None, bool | None], ...] = ()
    scenes: tuple[tuple[str, int], ...] = ()
    decisions: tuple[tuple[str, int, int], ...] = ()


class Evidence(Struct, frozen=True, kw_only=True):
    """All of it. `workers` names the process behind a worker's name, `phones` the true state by phone; `ended_ms` is
    when the trouble was over, `busy` are devices that hold a task after all have ended."""

    asked: tuple[Asked, ...]
    stored: tuple[Stored, ...]
    decisions: tuple[Decision, ...]
    acts: tuple[Act, ...]
    calls: tuple[Call, ...]
    made: tuple[Made, ...]
    tables: Tables
    phones: dict[str, dict[str, Any]]
    workers: dict[str, str]
    ended_ms: int
    busy: tuple[str, ...] = ()
    dead_letters: int = 0
    crashes: int = 0
