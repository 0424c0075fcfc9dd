"""A NATS server in memory that misbehaves as real ones do: streams with fences, consumers that deliver again.

It loses answers, stores a message after its sender has given up, forgets acknowledgements and counts when it crashes,
delivers out of order, refuses for a write in flight that never arrives, and answers reads from a lagging replica.
"""

import asyncio
import random
import time
from dataclasses import dataclass, field

from apex_bus.connection import Refused, Stored
from apex_schemas.consumers import SHARED_CONSUMERS, Consumer
from apex_schemas.streams import STREAMS


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


_CONSUMED = {consumer.stream for consumer in SHARED_CONSUMERS}


@dataclass
class VirtualLog:
    """All streams, with one sequence: nothing here depends on there being several."""

    rng: random.Random
    faults: Faults
    stored: list[Stored] = field(default_factory=list)
    newest: dict[str, Stored] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    expires: dict[str, float] = field(default_factory=dict)
    down_until: float = 0.0
    consumers: dict[str, "Deliveries"] = field(default_factory=dict)
    waiters: dict["asyncio.Future[None]", None] = field(default_factory=dict)

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def troubled(self) -> bool:
        return self.now < self.faults.until

    def chance(self, probability: float) -> bool:
        return self.troubled and self.rng.random() < probability

    def apply(self, subject: str, data: bytes, headers: dict[str, str]) -> int:
        """Store a message. Raises Refused as the server would."""
        known = self.ids.get(headers.get("Nats-Msg-Id", ""))
        if known is not None:
            return known
        stream = _STREAM_OF[subject.split(".")[0]]
        if (expected := headers.get("Nats-Expected-Last-Subject-Sequence")) is not None:
            fence = headers.get("Nats-Expected-Last-Subject-Sequence-Subject", subject)
            last = self.last(fence)
            if (last.sequence if last else 0) != int(expected):
                raise Refused(subject, 10071, "wrong last sequence")
        if stream.once and subject in self.newest:
            raise Refused(subject, 10077, "maximum messages per subject exceeded")
        entry = Stored(
            subject=subject, data=data, sequence=len(self.stored) + 1, timestamp_ns=time.time_ns(), headers=headers
        )
        self.stored.append(entry)
        self.newest[subject] = entry
        self.expires.pop(subject, None)
        if "Nats-TTL" in headers:
            self.expires[subject] = self.now + float(headers["Nats-TTL"].rstrip("s"))
        if "Nats-Msg-Id" in headers:
            self.ids[headers["Nats-Msg-Id"]] = entry.sequence
        if stream.name in _CONSUMED:
            self.wake()
        return entry.sequence

    def last(self, pattern: str) -> Stored | None:
        if "*" not in pattern and ">" not in pattern:
            found = [self.newest[pattern]] if pattern in self.newest else []
        else:
            found = [entry for subject, entry in self.newest.items() if matches(pattern, subject)]
        there = [each for each in found if self.expires.get(each.subject, float("inf")) > self.now]
        return max(there, key=lambda entry: entry.sequence, default=None)

    def before(self, pattern: str, newest: Stored) -> Stored | None:
        """What a replica tells that has not heard of the newest message yet."""
        older = self.stored[: newest.sequence - 1]
        return next((each for each in reversed(older) if matches(pattern, each.subject)), None)

    def crash(self, down_s: float) -> None:
        """kill -9 of the server: ids and the latest acknowledgements are forgotten, counts begin again."""
        self.down_until = self.now + down_s
        self.ids.clear()
        for consumer in self.consumers.values():
            consumer.forget()
        self.wake()

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def something(self, within_s: float) -> None:
        """Wait until something was stored, or for so long."""
        waiter = asyncio.get_running_loop().create_future()
        self.waiters[waiter] = None
        await asyncio.wait({waiter}, timeout=max(0.001, within_s))
        self.waiters.pop(waiter, None)

    def deliveries(self, consumer: Consumer) -> "Deliveries":
        return self.consumers.setdefault(consumer.name, Deliveries(self, consumer))


class Deliveries:
    """A durable consumer: what is due, to whom is not its business."""

    def __init__(self, log: VirtualLog, consumer: Consumer) -> None:
        self._log, self._consumer = log, consumer
        self._due: dict[int, float] = {}
        self._acked: dict[int, float] = {}
        self.counts: dict[int, int] = {}
        self._seen = 0

    def take(self) -> Stored | None:
        """A message that is due, for an ack wait; mostly the oldest."""
        log = self._log
        for entry in log.stored[self._seen :]:
            if any(matches(pattern, entry.subject) for pattern in self._consumer.filters):
                self._due.setdefault(entry.sequence, 0.0)
        self._seen = len(log.stored)
        if log.now < log.down_until:
            return None
        due = sorted(sequence for sequence, at in self._due.items() if at <= log.now)
        if not due:
            return None
        sequence = log.rng.choice(due) if log.chance(0.3) else due[0]
        self._due[sequence] = log.now + self._consumer.ack_wait_s
        self.counts[sequence] = self.counts.get(sequence, 0) + 1
        return log.stored[sequence - 1]

    def next_due_s(self) -> float:
        return max(min(self._due.values(), default=5.0), self._log.down_until) - self._log.now

    def again(self, sequence: int, delay_s: float) -> None:
        if sequence in self._due:
            self._due[sequence] = self._log.now + delay_s

    def ack(self, sequence: int) -> None:
        if self._due.pop(sequence, None) is not None:
            self._acked[sequence] = self._log.now

    def forget(self) -> None:
        for sequence, at in self._acked.items():
            if self._log.now - at < 20 and self._log.rng.random() < 0.5:
                self._due[sequence] = 0.0
        self._acked = {}
        self._due = dict.fromkeys(self._due, 0.0)
        self.counts.clear()
