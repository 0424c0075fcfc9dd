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
_ROUND_S: Final = 20.0
"""Each request that waits is looked at again within this time, so that by then all have been seen."""


class Queue:
    def __init__(self, tasklog: TaskLog) -> None:
        self._log, self._since = tasklog, time.monotonic()
        self._seen: OrderedDict[str, WaitingRequest] = OrderedDict()

    def see(self, asked: Asked, *, pool: str, sequence: int, age_s: float) -> None:
        """A request that waits."""
        self._seen[asked.task] = WaitingRequest(
            task=asked.task,
            pool=pool,
            sequence=sequence,
            goal=asked.request.goal[:_GOAL],
            waits_s=round(age_s),
            left_s=max(0, round(asked.not_after - time.time())),
        )
        self._seen.move_to_end(asked.task)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def goal(self, task: str) -> str:
        """What a request that waits asks for, shortened; nothing where this executor has not seen it."""
        return self._seen[task].goal if task in self._seen else ""

    def forget(self, task: str) -> None:
        self._seen.pop(task, None)

    async def told(self) -> WaitingRequests:
        """Those that still wait, in the order in which they were stored."""
        known = sorted(self._seen.values(), key=lambda request: request.sequence)
        places = asyncio.Semaphore(_AT_ONCE)

        async def waits(request: WaitingRequest) -> bool:
            async with places:
                begun = await self._log.newest(None, request.task) is not None
            if begun:
                self.forget(request.task)
            return not begun

        still = await asyncio.gather(*(waits(request) for request in known[:_TOLD]))
        waiting = tuple(request for request, holds in zip(known, still, strict=False) if holds)
        complete = time.monotonic() - self._since > _ROUND_S
        return WaitingRequests(waiting=waiting, omitted=max(0, len(known) - _TOLD), complete=complete)

    async def answer(self) -> bytes:
        return msgspec.json.encode(await self.told())
