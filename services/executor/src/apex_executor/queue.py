"""The requests that wait for a device, as this executor has seen them: for whoever asks how many are before his.

Consumes what the intake looks at; each request is looked at again and again, by one executor or another, so that all
executors together know the whole queue. Nothing is believed without asking the log whether the task has begun since.
"""

import asyncio
import time
from collections import OrderedDict
from typing import Final

import msgspec

from apex_bus.tasklog import TaskLog
from apex_executor.requests import Asked
from apex_schemas.queries import WaitingRequest, WaitingRequests

_REMEMBERED: Final = 20_000
_TOLD: Final = 500
_AT_ONCE: Final = 50
_GOAL: Final = 120
_LOOK_S: Final = 15.0
_LOOKS_A_SECOND: Final = 250
"""What all looks at the queue may come to: a long queue is looked at less often. The server delivers again before it
delivers what is new; looks without a bound would leave the end of the queue unseen."""
_ROUND: Final = 1.33
"""Each request that waits is looked at again within so many pauses, so that by then all have been seen."""
_OLD: Final = 20
"""So many pauses that a request which still waits has been looked at here, with however many executors."""
_LOOKING_S: Final = 0.7
"""Whoever asks waits for about twice as long."""


class Queue:
    def __init__(self, tasklog: TaskLog) -> None:
        self._log, self._since = tasklog, time.monotonic()
        self._seen: OrderedDict[str, tuple[WaitingRequest, float]] = OrderedDict()

    def see(self, asked: Asked, *, pool: str, sequence: int, age_s: float) -> None:
        """A request that waits."""
        request = WaitingRequest(
            task=asked.task,
            pool=pool,
            sequence=sequence,
            goal=asked.request.goal[:_GOAL],
            waits_s=round(age_s),
            left_s=max(0, round(asked.not_after - time.time())),
        )
        self._seen[asked.task] = request, time.monotonic()
        self._seen.move_to_end(asked.task)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    @property
    def pause_s(self) -> float:
        """How long until a request that waits is looked at again."""
        return max(_LOOK_S, len(self._seen) / _LOOKS_A_SECOND)

    def goal(self, task: str) -> str:
        """What a request that waits asks for, shortened; nothing where this executor has not seen it."""
        return self._seen[task][0].goal if task in self._seen else ""

    def forget(self, task: str) -> None:
        self._seen.pop(task, None)

    async def told(self) -> WaitingRequests:
        """Those that still wait, in the order in which they were stored. Those that others have begun, or looked at for
        the last time, stand in front of them: they are passed over, for a while at most."""
        self._forget_old()
        known = sorted((request for request, _ in self._seen.values()), key=lambda request: request.sequence)
        places = asyncio.Semaphore(_AT_ONCE)

        async def waits(request: WaitingRequest) -> bool:
            async with places:
                begun = await self._log.newest(None, request.task) is not None
            if begun:
                self.forget(request.task)
            return not begun

        waiting: list[WaitingRequest] = []
        looked, until = 0, time.monotonic() + _LOOKING_S
        while looked < len(known) and len(waiting) < _TOLD and (not looked or time.monotonic() < until):
            part = known[looked : looked + _TOLD - len(waiting)]
            looked += len(part)
            still = await asyncio.gather(*map(waits, part))
            waiting += [request for request, holds in zip(part, still, strict=True) if holds]
        passed = len(waiting) == _TOLD or looked == len(known)
        return WaitingRequests(
            waiting=tuple(waiting),
            omitted=len(known) - looked,
            complete=passed and time.monotonic() - self._since > _ROUND * self.pause_s,
        )

    def _forget_old(self) -> None:
        """What another executor has looked at for the last time is never told here."""
        while self._seen and time.monotonic() - next(iter(self._seen.values()))[1] > _OLD * self.pause_s:
            self._seen.popitem(last=False)

    async def answer(self) -> bytes:
        return msgspec.json.encode(await self.told())
