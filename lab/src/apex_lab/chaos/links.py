"""A TCP proxy for one connection between a process and a server, which can be cut, slowed, frozen and refused.

Owns its listening port and what runs through it. Nothing of what it carries is read.
"""

import asyncio
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

HOST: Final = "127.0.0.1"
_CHUNK: Final = 64 * 1024


class Link:
    """Listens while its block runs. `upstream` is asked at each connection, so it may be started later.

    `delay_s` is added to each piece in both directions, in order; while `frozen` nothing moves and nothing closes.
    """

    def __init__(self, upstream: Callable[[], int]) -> None:
        self._upstream = upstream
        self._writers: set[asyncio.StreamWriter] = set()
        self._moving = asyncio.Event()
        self._moving.set()
        self._refusing = False
        self.delay_s = 0.0
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, HOST, 0, limit=_CHUNK)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.heal()
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Reset every connection; new ones may be made."""
        for writer in list(self._writers):
            writer.transport.abort()

    def refuse(self) -> None:
        """Reset every connection, and every new one."""
        self._refusing = True
        self.cut()

    def freeze(self) -> None:
        self._moving.clear()

    def heal(self) -> None:
        self.delay_s, self._refusing = 0.0, False
        self._moving.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self._upstream(), limit=_CHUNK)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, far_writer}
        self._writers |= pair
        both = [
            asyncio.create_task(self._carry(reader, far_writer)),
            asyncio.create_task(self._carry(far_reader, writer)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in both:
                task.cancel()
            self._writers -= pair
            for each in pair:
                each.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until one side ends: an orderly end is passed on, anything else raises."""
        while data := await reader.read(_CHUNK):
            await asyncio.sleep(self.delay_s)
            await self._moving.wait()
            writer.write(data)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()
