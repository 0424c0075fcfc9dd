"""Connections to sessions, kept while they are of use and lent to one observation at a time."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import Final

from apex_perception.appium import Phone
from apex_schemas.devices import SessionHandle

_MOST: Final = 256


class _Kept:
    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        self.lock = asyncio.Lock()


class Phones:
    """Attaching costs nothing on the wire, but a kept connection saves its opening."""

    def __init__(self, attach: Callable[[SessionHandle], Phone], threads: Executor) -> None:
        self._attach, self._threads = attach, threads
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()

    @asynccontextmanager
    async def borrow(self, handle: SessionHandle) -> AsyncGenerator[Phone]:
        kept = self._kept.get(_key(handle))
        if kept is None:
            kept = self._kept[_key(handle)] = _Kept(self._attach(handle))
        self._kept.move_to_end(_key(handle))
        await self._drop_oldest()
        async with kept.lock:
            yield kept.phone

    async def forget(self, handle: SessionHandle) -> None:
        kept = self._kept.pop(_key(handle), None)
        if kept is not None:
            await self._close(kept)

    async def _drop_oldest(self) -> None:
        for key, kept in list(self._kept.items())[: max(0, len(self._kept) - _MOST)]:
            if not kept.lock.locked():
                del self._kept[key]
                await self._close(kept)

    async def _close(self, kept: _Kept) -> None:
        async with kept.lock:
            await asyncio.get_running_loop().run_in_executor(self._threads, kept.phone.close)


def _key(handle: SessionHandle) -> tuple[str, str]:
    return handle.url, handle.id
