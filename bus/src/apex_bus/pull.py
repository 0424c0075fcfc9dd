"""Pulling from one consumer: requests kept open at the server, so that a message arrives as soon as it is stored.

A pull request is lost when the connection is; heartbeats are asked for, and when they stay away the request is
made again on a new inbox, so that nothing of the old one can come later.
"""

import asyncio
import time
from types import TracebackType
from typing import Final, Self

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from apex_bus.connection import Bus, parse_timestamp_ns
from apex_bus.errors import Drift
from apex_schemas.subjects import Consumer

EXPIRES_S: Final = 5.0
HEARTBEAT_S: Final = 1.0
_SILENCE_S: Final = 3.0
_CHECK_EVERY_S: Final = 60.0


class Pull:
    """An async context manager; `next(n)` keeps requests for n messages open and returns the next message."""

    def __init__(self, bus: Bus, consumer: Consumer) -> None:
        self._bus, self._consumer = bus, consumer
        self._inbox: Subscription | None = None
        self._open = 0
        self._asked_at = 0.0
        self._checked_at = 0.0

    async def __aenter__(self) -> Self:
        await self._rebind()
        await self._check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._drop()

    async def next(self, wanted: int, *, wait_s: float = EXPIRES_S) -> Msg | None:
        """The next message, or None after `wait_s` without one. At most `wanted` messages are asked for at a time."""
        assert self._inbox is not None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while (left := deadline - loop.time()) > 0:
            if self._open <= 0:
                await self._ask(wanted)
            try:
                msg = await self._inbox.next_msg(timeout=min(left, _SILENCE_S))
            except TimeoutError:
                if loop.time() - self._asked_at >= _SILENCE_S and left > _SILENCE_S / 2:
                    await self._rebind()
                continue
            status = (msg.headers or {}).get("Status") if not msg.data else None
            if status is None:
                self._open -= 1
                return msg
            self._note(status, msg)
        if loop.time() - self._checked_at > _CHECK_EVERY_S:
            await self._check()
        return None

    def _note(self, status: str, msg: Msg) -> None:
        if status == "100":
            return
        self._open = 0
        description = (msg.headers or {}).get("Description", "")
        if status == "409" and "Consumer Deleted" in description:
            raise Drift(f"consumer {self._consumer.name}", {"existence": (False, True)})

    async def _ask(self, batch: int) -> None:
        assert self._inbox is not None
        body = {
            "batch": batch,
            "expires": int(EXPIRES_S * 1e9),
            "idle_heartbeat": int(HEARTBEAT_S * 1e9),
        }
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._consumer.stream}.{self._consumer.name}"
        await self._bus.client.publish(subject, msgspec.json.encode(body), reply=self._inbox.subject)
        self._open = batch
        self._asked_at = asyncio.get_running_loop().time()

    async def _rebind(self) -> None:
        await self._drop()
        self._inbox = await self._bus.client.subscribe(self._bus.client.new_inbox())  # pyright: ignore[reportUnknownMemberType]
        self._open = 0
        self._asked_at = asyncio.get_running_loop().time()

    async def _drop(self) -> None:
        """Give back what was delivered and not looked at."""
        if self._inbox is None or self._bus.client.is_closed:
            return
        inbox, self._inbox = self._inbox, None
        await inbox.unsubscribe()
        while inbox.pending_msgs:
            msg = await inbox.next_msg(timeout=0.1)
            if msg.reply:
                await msg.nak(delay=0.05)

    async def _check(self) -> None:
        """A consumer that is gone looks like silence: ask for it. Its answer also tells the server's time."""
        self._checked_at = asyncio.get_running_loop().time()
        info = await self._bus.api(f"CONSUMER.INFO.{self._consumer.stream}.{self._consumer.name}")
        if "error" in info:
            raise Drift(f"consumer {self._consumer.name}", {"existence": (False, True)})
        if ts := info.get("ts"):
            self._bus.clock.observe(parse_timestamp_ns(str(ts)), time.time_ns())
