"""What NATS does beside streams, in virtual time: subjects that are asked and inboxes that are answered.

Owns the client that the real micro services and the real cloud-proxy transport are given. Whoever is dead hears nothing
more, whoever is paused hears it later; where nobody is left to be asked, the asker is told so at once.
"""

import asyncio
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import msgspec
import nats.errors
from chaos.virtual_log import VirtualLog, matches
from chaos.virtual_process import Life
from nats.aio.msg import Msg

from apex_bus.connection import Bus

RUNNING: ContextVar[Life] = ContextVar("RUNNING")
"""The life whose code this is."""


@dataclass(eq=False)
class Subscription:
    core: "Core"
    life: Life
    subject: str
    queue: str
    heard: Callable[[Msg], Awaitable[None]]

    async def drain(self) -> None:
        await self.unsubscribe()

    async def unsubscribe(self) -> None:
        if self in self.core.subscriptions:
            self.core.subscriptions.remove(self)

    @property
    def there(self) -> bool:
        return not self.life.dead and self in self.core.subscriptions


@dataclass
class Core:
    """All subscriptions of a world. Of a group each is asked in turn, so that every copy has work."""

    log: VirtualLog
    rng: random.Random
    subscriptions: list[Subscription] = field(default_factory=list)
    _asked: Counter[object] = field(default_factory=Counter)

    def serves(self, subject: str) -> bool:
        return any(each.there and matches(each.subject, subject) for each in self.subscriptions)

    def route(self, msg: Msg) -> None:
        """To everybody who listens, and to one of each group; to nobody while the server is down."""
        if self.log.now < self.log.down_until:
            return
        groups: dict[object, list[Subscription]] = defaultdict(list)
        for each in self.subscriptions:
            if each.there and matches(each.subject, msg.subject):
                groups[(each.subject, each.queue) if each.queue else each].append(each)
        for name, group in groups.items():
            chosen = group[self._asked[name] % len(group)]
            self._asked[name] += 1
            asyncio.ensure_future(self._deliver(chosen, msg))  # noqa: RUF006  (the loop keeps it)
        if not groups and msg.reply:
            self.route(Msg(msg._client, subject=msg.reply, headers={"Status": "503"}))

    async def _deliver(self, to: Subscription, msg: Msg) -> None:
        await asyncio.sleep(self.rng.uniform(0.001, 0.01))
        log = to.life.world.log
        while not to.life.dead and log.now < to.life.paused_until:
            await asyncio.sleep(to.life.paused_until - log.now)
        if to.there:
            RUNNING.set(to.life)
            own = Msg(to.life.client, msg.subject, msg.reply, msg.data, msg.headers)  # type: ignore[attr-defined]
            await to.heard(own)


class VirtualClient:
    """A nats-py client of one life, as far as our code uses one."""

    is_closed = False
    is_connected = True

    def __init__(self, life: Life, core: Core) -> None:
        self._life, self._core = life, core
        self._names = itertools.count(1)
        self._nuid = SimpleNamespace(next=lambda: f"id-{next(self._names)}".encode())

    def new_inbox(self) -> str:
        return f"_INBOX.{self._life.worker}.{next(self._names)}"

    async def flush(self) -> None:
        """Subscriptions are in force at once."""

    async def subscribe(self, subject: str, queue: str = "", cb: Any = None) -> Subscription:
        subscription = Subscription(self._core, self._life, subject, queue, cb)
        self._core.subscriptions.append(subscription)
        return subscription

    async def publish(
        self, subject: str, payload: bytes = b"", reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        await self._life.point()
        self._life.world.did(self._life, _told(subject, payload))  # type: ignore[attr-defined]
        self._core.route(Msg(self, subject, reply, payload, headers))  # type: ignore[arg-type]
        await self._life.point()

    async def request(
        self, subject: str, payload: bytes = b"", timeout: float = 1, headers: dict[str, str] | None = None
    ) -> Msg:
        answers: asyncio.Queue[Msg] = asyncio.Queue()
        inbox = await self.subscribe(self.new_inbox(), cb=answers.put)
        try:
            await self.publish(subject, payload, inbox.subject, headers)
            async with asyncio.timeout(timeout):
                answer = await answers.get()
        except TimeoutError:
            raise nats.errors.TimeoutError from None
        finally:
            await inbox.unsubscribe()
        await self._life.point()
        if (answer.headers or {}).get("Status") == "503":
            raise nats.errors.NoRespondersError
        return answer


def connected(life: Life, core: Core) -> None:
    """Give a life what `Bus` has beside the log. Pings are looked up: there is nothing to be lost by one."""

    async def ping(service: str, *, timeout_s: float = 1.0) -> bool:
        return core.serves(f"$SRV.PING.{service}")

    async def request(subject: str, data: bytes, *, timeout_s: float, headers: dict[str, str] | None = None) -> bytes:
        return await Bus.request(life, subject, data, timeout_s=timeout_s, headers=headers)  # type: ignore[arg-type]

    life.client = VirtualClient(life, core)  # type: ignore[attr-defined]
    life.ping, life.request = ping, request  # type: ignore[attr-defined]
    RUNNING.set(life)


def _told(subject: str, payload: bytes) -> str:
    """What a message is called in the order of effects: answers by what they are, all else by its first word."""
    if not subject.startswith("_INBOX"):
        return subject.partition(".")[0]
    try:
        said = msgspec.msgpack.decode(payload)
    except msgspec.MsgspecError:
        return "answer"
    return "progress" if isinstance(said, dict) and said.get("type") == "progress" else "answer"
