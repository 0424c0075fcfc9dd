"""An event loop whose time is virtual: it jumps to the next timer, so that an hour of waits takes no time at all.

Owns `time.monotonic`, `time.time` and `time.time_ns` while it runs: all code sees one clock.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar
from unittest import mock

T = TypeVar("T")
EPOCH_S = 1_800_000_000.0


class Deadlock(AssertionError):
    """Everything waits and nothing will ever happen."""


class _Selector(selectors.SelectSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Deadlock
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def wall_s(self) -> float:
        return EPOCH_S + self.time()

    def wall_ns(self) -> int:
        return int(self.wall_s() * 1e9)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time; whatever is left then is cancelled."""
    loop = VirtualLoop()
    with (
        mock.patch("time.monotonic", loop.time),
        mock.patch("time.time", loop.wall_s),
        mock.patch("time.time_ns", loop.wall_ns),
    ):
        try:
            return loop.run_until_complete(work)
        finally:
            for _ in range(20):
                left = asyncio.all_tasks(loop)
                if not left:
                    break
                for task in left:
                    task.cancel()
                loop.run_until_complete(asyncio.wait(left, timeout=1))
            loop.close()
