"""A NATS server in memory that misbehaves as real ones do: streams with fences, consumers that deliver again.

It loses answers, stores a message after its sender has given up, forgets acknowledgements and counts when it crashes,
delivers out of order, refuses for a write in flight that never arrives, and answers reads from a lagging replica.
"""

import asyncio
import random
from dataclasses import dataclass, field

from chaos.virtual_clock import Call, VirtualLoop

from apex_bus.connection import Refused, Stored
from apex_schemas.consumers import Consumer
from apex_schemas.streams import STREAMS

NEVER = 1e12
"""Seconds between troubles that there are none of."""


@dataclass(kw_only=True)
class Faults:
    """Probabilities a call. `until` is the virtual time at which all of them end."""

    until: float = 120.0
    longest_pause_s: float = 40.0
    lost_request: float = 0.01
    lost_answer: float = 0.02
    late_write: float = 0.01
    in_flight: float = 0.02
    lagging_read: float = 0.05
    longest_lag_s: float = 3.0
    lost_ack: float = 0.05
    crash: float = 0.004
    pause: float = 0.004
    crash_every_s: float = 45.0
    """How often a process dies at whatever time, beside the gaps between its calls; and is paused."""
    pause_every_s: float = 40.0
    pause_in_act: float = 0.05
    cut_in_act: float = 0.0
    longest_act_s: float = 2.0
    fence_fails: float = 0.3
    server_crash_every_s: float = 40.0


def matches(pattern: str, subject: str) -> bool:
    wanted, got = pattern.split("."), subject.split(".")
    for n, token in enumerate(wanted):
        if token == ">":
            return len(got) > n
        if n >= len(got) or token not in ("*", got[n]):
            return False
    return len(wanted) == len(got)


_STREAM_OF = {pattern.split(".")[0]: stream for stream in STREAMS for pattern in stream.subjects}


@dataclass
class VirtualLog:
    """All streams, with one sequence: nothing here depends on there being several."""

    rng: random.Random
    faults: Faults
    clock: VirtualLoop = field(default_factory=VirtualLoop)
    stored: list[Stored] = field(default_factory=list)
    newest: dict[str, Stored] = field(default_factory=dict)
    slots: dict[str, list[Stored]] = field(default_factory=dict)
    """The slots of each task: written once, so that its newest is its last."""
    ended: set[str] = field(default_factory=set)
    ids: dict[str, int] = field(default_factory=dict)
    expires: dict[str, float] = field(default_factory=dict)
    down_until: float = 0.0
    consumers: dict[str, "Deliveries"] = field(default_factory=dict)

    @property
    def now(self) -> float:
        return self.clock.now

    @property
    def troubled(self) -> bool:
        return self.clock.now < self.faults.until

    def chance(self, probability: float) -> bool:
        return self.clock.now < self.faults.until and self.rng.random() < probability

    def apply(self, subject: str, data: bytes, headers: dict[str, str]) -> int:
        """Store a message. Raises Refused as the server would."""
        known = self.ids.get(headers.get("Nats-Msg-Id", ""))
        if known is not None:
            return known
        stream = _STREAM_OF[subject.partition(".")[0]]
        if (expected := headers.get("Nats-Expected-Last-Subject-Sequence")) is not None:
            fence = headers.get("Nats-Expected-Last-Subject-Sequence-Subject", subject)
            last = self.last(fence)
            if (last.sequence if last else 0) != int(expected):
                raise Refused(subject, 10071, "wrong last sequence")
        if stream.once and subject in self.newest:
            raise Refused(subject, 10077, "maximum messages per subject exceeded")
        entry = Stored(
            subject=subject,
            data=data,
            sequence=len(self.stored) + 1,
            timestamp_ns=self.clock.wall_ns(),
            headers=headers,
        )
        self.stored.append(entry)
        self.newest[subject] = entry
        if subject.startswith("task."):
            task = subject.split(".")[2]
            self.slots.setdefault(task, []).append(entry)
            if subject.endswith(".finished"):
                self.ended.add(task)
        self.expires.pop(subject, None)
        if "Nats-TTL" in headers:
            self.expires[subject] = self.now + float(headers["Nats-TTL"].rstrip("s"))
        if "Nats-Msg-Id" in headers:
            self.ids[headers["Nats-Msg-Id"]] = entry.sequence
        for consumer in self.consumers.values():
            if consumer.stream == stream.name:
                consumer.offer(entry)
        return entry.sequence

    def last(self, pattern: str) -> Stored | None:
        """The newest message of a subject, or of a pattern that names a task."""
        if "*" in pattern or ">" in pattern:
            return self._newest_slot(pattern, len(self.stored))
        found = self.newest.get(pattern)
        return found if found is None or self.expires.get(pattern, float("inf")) > self.now else None

    def _newest_slot(self, pattern: str, until: int) -> Stored | None:
        _, device, task, tail = pattern.split(".", 3)
        assert task not in ("*", ">"), pattern
        for entry in reversed(self.slots.get(task, ())):
            if entry.sequence <= until and ((device == "*" and tail == ">") or matches(pattern, entry.subject)):
                return entry
        return None

    def before(self, pattern: str, newest: Stored) -> Stored | None:
        """What a replica tells that has not heard of the newest message yet."""
        if pattern.startswith("task."):
            return self._newest_slot(pattern, newest.sequence - 1)
        older = self.stored[: newest.sequence - 1]
        return next((each for each in reversed(older) if each.subject == pattern), None)

    def crash(self, down_s: float) -> None:
        """kill -9 of the server: ids and the latest acknowledgements are forgotten, counts begin again."""
        self.down_until = self.now + down_s
        self.ids.clear()
        for consumer in self.consumers.values():
            consumer.forget()

    def deliveries(self, consumer: Consumer) -> "Deliveries":
        known = self.consumers.get(consumer.name)
        if known is None:
            known = self.consumers[consumer.name] = Deliveries(self, consumer)
        return known


class Deliveries:
    """A durable consumer: what is due, to whom is not its business. Whoever waits for it is woken when something is."""

    def __init__(self, log: VirtualLog, consumer: Consumer) -> None:
        self._log, self._consumer, self.stream = log, consumer, consumer.stream
        self._due: dict[int, float] = {}
        self._acked: dict[int, float] = {}
        self.counts: dict[int, int] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._alarm: tuple[float, Call] | None = None
        for entry in log.stored:
            self.offer(entry)

    def offer(self, entry: Stored) -> None:
        """A message was stored."""
        if any(matches(pattern, entry.subject) for pattern in self._consumer.filters):
            self._is_due(entry.sequence, 0.0)

    def take(self) -> Stored | None:
        """A message that is due, for an ack wait; mostly the oldest."""
        log = self._log
        now = log.now
        if now < log.down_until:
            return None
        due = [sequence for sequence, at in self._due.items() if at <= now]
        if not due:
            return None
        sequence = log.rng.choice(due) if len(due) > 1 and log.chance(0.3) else min(due)
        self._due[sequence] = now + self._consumer.ack_wait_s
        self.counts[sequence] = self.counts.get(sequence, 0) + 1
        return log.stored[sequence - 1]

    async def something(self) -> None:
        """Wait until there may be something to take."""
        waiter = self._log.clock.create_future()
        self._waiters.append(waiter)
        if self._due:
            self._wake_at(min(self._due.values()))
        await waiter

    def _is_due(self, sequence: int, at: float) -> None:
        self._due[sequence] = at
        if self._waiters:
            self._wake_at(at)

    def _wake_at(self, at: float) -> None:
        at = max(at, self._log.down_until, self._log.now)
        if self._alarm is not None:
            if self._alarm[0] <= at:
                return
            self._alarm[1].cancel()
        self._alarm = (at, self._log.clock.call_at(at, self._wake))

    def _wake(self) -> None:
        self._alarm = None
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def again(self, sequence: int, delay_s: float) -> None:
        if sequence in self._due:
            self._is_due(sequence, self._log.now + delay_s)

    def ack(self, sequence: int) -> None:
        if self._due.pop(sequence, None) is not None:
            self._acked[sequence] = self._log.now

    def forget(self) -> None:
        for sequence, at in self._acked.items():
            if self._log.now - at < 20 and self._log.rng.random() < 0.5:
                self._due[sequence] = 0.0
        self._acked = {}
        self.counts.clear()
        for sequence in self._due:
            self._is_due(sequence, 0.0)
