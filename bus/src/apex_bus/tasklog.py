"""The task log: an immutable table (task, turn, kind) → message in which every place is written once.

The server settles every race. Acknowledgements, delivery counts and deduplication decide nothing: a writer that is
refused reads the place back, and knows by its attempt id whether it was its own earlier write.
"""

import asyncio
import logging
from collections import OrderedDict
from typing import Any, Final, NamedTuple, Protocol

from apex_bus.connection import FENCE_REFUSALS, Bus, Refused
from apex_bus.errors import LogUnavailable
from apex_bus.tracing import headers as trace_headers
from apex_schemas import envelope
from apex_schemas.errors import LogTorn, Undecodable, WireError
from apex_schemas.slots import KINDS, Slot, finished, started
from apex_schemas.steps import WorldEvent, WorldState
from apex_schemas.structs import Wire
from apex_schemas.task import TaskFinished, TaskStarted
from apex_schemas.world import fold

log = logging.getLogger(__name__)

_READS_IN_FLIGHT: Final = 50
_TASKS_CACHED: Final = 256
_REFUSED_READS: Final = 12
_REFUSED_READS_IF_COMMITTED: Final = 3
_COMMITTED: Final = 10071
_FILL_SECONDS: Final = 60.0


class Entry(NamedTuple):
    """A filled slot."""

    slot: Slot
    body: Any
    sequence: int
    timestamp_ns: int
    attempt: str


class Unreadable(NamedTuple):
    """The body of a slot that holds something else than its kind: it stays so, and its task cannot go on."""

    reason: str


class Filled(NamedTuple):
    """The slot holds our message (written now, or by an earlier try of the same attempt)."""

    sequence: int


class Taken(NamedTuple):
    """The slot was not ours to fill. `entry` is what it holds; None when it is empty but its log has moved on."""

    entry: Entry | None


class _Message(Protocol):
    """A stored or delivered message: anything with a place in the stream."""

    @property
    def subject(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def sequence(self) -> int: ...
    @property
    def timestamp_ns(self) -> int: ...


def entry_of(message: _Message) -> Entry:
    """Decode a slot and hold it against its subject. Raises WireError."""
    decoded = envelope.decode(message.data)
    slot = envelope.check_slot(decoded, message.subject)
    return Entry(slot, decoded.body, message.sequence, message.timestamp_ns, decoded.attempt)


def _whatever(message: _Message) -> Entry:
    """A slot with what it holds, be it Unreadable."""
    try:
        return entry_of(message)
    except WireError as error:
        _, device, task, turn, kind = (*message.subject.split("."), "", "", "", "")[:5]
        named = KINDS[KINDS.index(kind)] if kind in KINDS else "event"
        slot = Slot(device=device, task=task, kind=named, turn=int(turn) if turn.isdecimal() else None)
        return Entry(slot, Unreadable(str(error)), message.sequence, message.timestamp_ns, "")


class TaskLog:
    """Slots of the stream TASKS. Decoded `started` and `event` slots are cached, since they never change."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._cache: OrderedDict[str, dict[Slot, Entry]] = OrderedDict()
        self._reads = asyncio.Semaphore(_READS_IN_FLIGHT)

    async def fill(
        self, slot: Slot, body: Wire, *, attempt: str, after: int = 0, cause: str | None = None
    ) -> Filled | Taken:
        """Write a slot unless it, or the log that its kind is fenced by, has moved past sequence `after`.

        Safe to repeat with the same `attempt`. Raises LogUnavailable when for a minute nothing could be known, and
        StoreFull when the stream refuses messages.
        """
        data = envelope.encode(body, task=slot.task, device=slot.device, turn=slot.turn, attempt=attempt)
        headers = {
            "Nats-Msg-Id": f"{slot.subject}:{attempt}",
            "Nats-Expected-Last-Subject-Sequence": str(after),
            "Nats-Expected-Last-Subject-Sequence-Subject": slot.fence(),
            **trace_headers(slot.task, cause),
        }
        deadline = asyncio.get_running_loop().time() + _FILL_SECONDS
        refusals, tries = 0, 0
        while True:
            try:
                try:
                    return Filled(await self._bus.publish(slot.subject, data, headers=headers))
                except Refused as refused:
                    if refused.code not in FENCE_REFUSALS:
                        raise
                    entry, code = await self.read(slot), refused.code
                refusals += 1
                if (settled := _settle(slot, entry, attempt, code, refusals)) is not None:
                    return settled
            except LogUnavailable:
                if asyncio.get_running_loop().time() > deadline:
                    raise
            tries += 1
            await asyncio.sleep(min(0.01 * 2**tries, 0.25))

    async def read(self, slot: Slot) -> Entry | None:
        """What a slot holds, be it Unreadable. None is no proof of absence on a replicated stream."""
        stored = await self._bus.get("TASKS", slot.subject)
        return None if stored is None else _whatever(stored)

    async def newest(self, device: str | None, task: str) -> Entry | None:
        """The newest slot of a task, be it Unreadable; without the device of whichever device has it."""
        stored = await self._bus.get("TASKS", f"task.{device or '*'}.{task}.>")
        return None if stored is None else _whatever(stored)

    async def ended(self, task: str, *, device: str | None = None) -> Entry | None:
        """The `finished` of a task, wherever it ended. One that cannot be read is an end all the same: a failure."""
        if device is not None:
            entry = await self.read(finished(device, task))
        else:
            stored = await self._bus.get("TASKS", f"task.*.{task}.end.finished")
            entry = None if stored is None else _whatever(stored)
        if entry is None or not isinstance(entry.body, Unreadable):
            return entry
        reason = f"the end of the task cannot be read: {entry.body.reason}"
        at_ms = entry.timestamp_ns // 1_000_000
        end = TaskFinished(status="failed", turns=0, finished_at_ms=at_ms, by="", reason=reason, failure_reason=reason)
        return entry._replace(body=end)

    async def started_entry(self, device: str, task: str) -> Entry:
        """The first slot of a task. Raises LogTorn when it cannot be read."""
        entry = await self._cached(started(device, task))
        if entry is None:
            raise LogTorn(task, 1, 0)
        if not isinstance(entry.body, TaskStarted):
            raise Undecodable(entry.slot.subject, "it does not say how the task began")
        return entry

    async def started(self, device: str, task: str) -> TaskStarted:
        """How a task began. Raises LogTorn when that cannot be read."""
        body = (await self.started_entry(device, task)).body
        assert isinstance(body, TaskStarted)
        return body

    async def world(self, device: str, task: str, turn: int) -> WorldState:
        """The World before turn `turn`: the start and every event before it. Raises LogTorn when one cannot be read."""
        begin = await self.started(device, task)
        slots = [Slot(device=device, task=task, kind="event", turn=n) for n in range(turn)]
        entries = await asyncio.gather(*map(self._cached, slots))
        events: dict[int, WorldEvent] = {}
        for n, entry in enumerate(entries):
            if entry is not None:
                if not isinstance(entry.body, WorldEvent):
                    raise Undecodable(entry.slot.subject, "it does not say what came of its turn")
                events[n] = entry.body
        return fold(task, begin, events, turn=turn)

    async def _cached(self, slot: Slot) -> Entry | None:
        entries = self._cache.setdefault(slot.task, {})
        self._cache.move_to_end(slot.task)
        while len(self._cache) > _TASKS_CACHED:
            self._cache.popitem(last=False)
        if slot not in entries:
            async with self._reads:
                entry = await self.read(slot)
            if entry is None:
                return None
            entries[slot] = entry
        return entries[slot]


def _settle(slot: Slot, entry: Entry | None, attempt: str, code: int, refusals: int) -> Filled | Taken | None:
    """What a refusal means; None when that cannot be known yet, and the same write has to be tried again."""
    if entry is not None:
        return Filled(entry.sequence) if entry.attempt == attempt else Taken(entry)
    # 10071 speaks of what is committed; the other codes may mean a write in flight that never arrives.
    if refusals < (_REFUSED_READS_IF_COMMITTED if code == _COMMITTED else _REFUSED_READS):
        return None
    if slot.fence() != slot.subject:
        return Taken(None)
    raise LogUnavailable(f"{slot.subject} is refused but reads as empty")
