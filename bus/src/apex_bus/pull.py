"""Pulling from one consumer: requests kept open at the server, so that a message arrives as soon as it is stored.

A pull request is lost when the connection is; heartbeats are asked for, and when they stay away the request is
made again on a new inbox, so that nothing of the old one can come later.
"""

import asyncio
import logging
import time
from types import TracebackType
from typing import Final, Self

import msgspec
import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from apex_bus.cancellation import finished, heeded
from apex_bus.connection import Bus, flushed, parse_timestamp_ns
from apex_bus.errors import Drift, Transient
from apex_schemas.consumers import Consumer

log = logging.getLogger(__name__)

EXPIRES_S: Final = 5.0
HEARTBEAT_S: Final = 1.0
_SILENCE_S: Final = 3.0
_PAUSE_S: Final = 0.2
_TAKE_S: Final = 5.0
_CHECK_EVERY_S: Final = 60.0
_CHECK_S: Final = 2.0
_DROP_S: Final = 1.0


class Pull:
    """An async context manager; `next(n)` keeps requests for n messages open and returns the next message."""

    def __init__(self, bus: Bus, consumer: Consumer, *, check: bool = True) -> None:
        self._bus, self._consumer, self._checked = bus, consumer, check
        self._inbox: Subscription | None = None
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._open = 0
        self._heard_at = 0.0
        self._checked_at = 0.0

    async def __aenter__(self) -> Self:
        self._bus.on_reconnect(self._wake)
        try:
            await self._rebind()
            if self._checked:
                await self._check()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        self._bus.off_reconnect(self._wake)
        await self._drop()

    async def next(self, wanted: int, *, wait_s: float = EXPIRES_S) -> Msg | None:
        """The next message, or None after `wait_s` without one. At most `wanted` messages are asked for at a time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while (left := deadline - loop.time()) > 0:
            if self._open <= 0 and self._arrived.empty():
                await self._ask(wanted)
            try:
                async with asyncio.timeout(min(left, _SILENCE_S)):
                    msg = await self._arrived.get()
            except TimeoutError:
                if self._bus.connected and loop.time() - self._heard_at >= _SILENCE_S:
                    await self._rebind()
                continue
            self._heard_at = loop.time()
            if msg is None:  # reconnected: what was asked for is forgotten
                await self._rebind()
            elif (status := _status(msg)) is None:
                self._open -= 1
                return msg
            else:
                await self._note(status, msg)
        if loop.time() - self._checked_at > _CHECK_EVERY_S:
            await self._check()
        return None

    async def take(self) -> Msg | None:
        """A message that is there now, or None. Not to be mixed with an open `next`.

        The server answers either way, and is waited for: a message that came after we had gone on would be given back,
        and overtaken by those behind it."""
        assert self._inbox is not None
        if not await self._request({"batch": 1, "no_wait": True}):
            return None
        try:
            async with asyncio.timeout(_TAKE_S):
                msg = await self._arrived.get()
        except TimeoutError:
            return None
        return None if msg is None or _status(msg) is not None else msg

    async def _note(self, status: str, msg: Msg) -> None:
        if status == "100":
            return
        self._open = 0
        if "Consumer Deleted" in (msg.headers or {}).get("Description", ""):
            raise Drift(f"consumer {self._consumer.name}", {"existence": (False, True)})
        if status != "408":  # 408 is a request that expired; anything else would come again at once
            await asyncio.sleep(_PAUSE_S)

    async def _ask(self, batch: int) -> None:
        self._open = batch
        expires, heartbeat = int(EXPIRES_S * 1e9), int(HEARTBEAT_S * 1e9)
        if not await self._request({"batch": batch, "expires": expires, "idle_heartbeat": heartbeat}):
            self._open = 0
            await asyncio.sleep(_PAUSE_S)

    async def _request(self, body: dict[str, int | bool]) -> bool:
        assert self._inbox is not None
        if not self._bus.connected:
            return False  # it would wait in the client and reach the server for an inbox that is gone by then
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._consumer.stream}.{self._consumer.name}"
        try:
            await heeded(self._bus.client.publish(subject, msgspec.json.encode(body), reply=self._inbox.subject))
        except nats.errors.Error as error:
            log.warning("%s cannot be pulled from: %s", self._consumer.name, type(error).__name__)
            return False
        return True

    def _wake(self) -> None:
        self._arrived.put_nowait(None)

    async def _rebind(self) -> None:
        await self._drop()
        self._inbox = await self._bus.client.subscribe(  # pyright: ignore[reportUnknownMemberType]
            self._bus.client.new_inbox(), cb=self._arrived.put
        )
        self._open = 0
        self._heard_at = asyncio.get_running_loop().time()

    async def _drop(self) -> None:
        """Give back what was delivered and not looked at."""
        inbox, self._inbox = self._inbox, None
        if inbox is None or self._bus.client.is_closed:
            return
        await finished(self._unsubscribe(inbox), within_s=_DROP_S)
        while not self._arrived.empty():
            msg = self._arrived.get_nowait()
            if msg is not None and _status(msg) is None:
                await msg.nak(delay=0.05)

    async def _unsubscribe(self, inbox: Subscription) -> None:
        """What the server had sent before it heard of this has arrived when the flush returns, and is not lost."""
        try:
            if self._bus.connected:
                await self._bus.client._send_unsubscribe(inbox._id)  # pyright: ignore[reportPrivateUsage]
                await flushed(self._bus.client)
                await asyncio.sleep(0)  # the client hands on what has arrived in one step of its own task
        finally:
            await inbox.unsubscribe()

    async def _check(self) -> None:
        """A consumer that is gone looks like silence: ask for it. Its answer also tells the server's time."""
        self._checked_at = asyncio.get_running_loop().time()
        try:
            place = f"{self._consumer.stream}.{self._consumer.name}"
            info = await self._bus.api(f"CONSUMER.INFO.{place}", timeout_s=_CHECK_S)
        except Transient:
            return  # no answer proves nothing; asked again in a minute
        if "error" in info:
            raise Drift(f"consumer {self._consumer.name}", {"existence": (False, True)})
        if ts := info.get("ts"):
            self._bus.clock.observe(parse_timestamp_ns(str(ts)), time.time_ns())


def _status(msg: Msg) -> str | None:
    """The status of a message that the server sends about a pull request; None for a stored message.

    Only a stored message names where to acknowledge it; its headers are whatever its sender wrote.
    """
    return None if msg.reply.startswith("$JS.ACK.") else (msg.headers or {}).get("Status", "")
