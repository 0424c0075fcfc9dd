"""NATS micro services: every service answers PING, INFO and STATS, and requests on its endpoints.

The client runs one subscription's callbacks one after another, so each request is handled in a task of its own.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, NamedTuple, NoReturn

import nats.errors
from nats.aio.msg import Msg
from nats.micro.request import Request
from nats.micro.service import EndpointConfig, Service, ServiceConfig

from apex_bus.cancellation import finished
from apex_bus.connection import Bus
from apex_bus.tracing import arriving

log = logging.getLogger(__name__)

VERSION = "0.1.0"
SUBJECT: Final = "Apex-Subject"
"""Among the headers given to a handler: the subject asked on, for endpoints that have a wildcard."""
_START_S: Final = 12.0
_STOP_S: Final = 2.0

Answer = Callable[[bytes, Mapping[str, str]], Awaitable[bytes | None]]
Stream = Callable[[bytes, Mapping[str, str]], AsyncIterator[bytes]]


class Endpoint(NamedTuple):
    """A subject and who answers on it: `answer` once (None stays silent), or `stream` several times, to one inbox.

    With `each` every instance answers, otherwise one of them.
    """

    name: str
    subject: str
    answer: Answer | None = None
    stream: Stream | None = None
    each: bool = False


class _Service(Service):
    """The client's service, that answers inboxes only: whoever asks picks the subject of the answer, and would have
    us write to a stream otherwise, with our rights."""

    async def _handle_ping_request(self, msg: Msg) -> None:
        if to_an_inbox(msg):
            await super()._handle_ping_request(msg)

    async def _handle_info_request(self, msg: Msg) -> None:
        if to_an_inbox(msg):
            await super()._handle_info_request(msg)

    async def _handle_stats_request(self, msg: Msg) -> None:
        if to_an_inbox(msg):
            await super()._handle_stats_request(msg)


_INBOXES: Final = ("_INBOX", "_R_.")
"""Of this account, and of another: there the server puts the asker's inbox in when it hands the answer over."""


def to_an_inbox(msg: Msg) -> bool:
    """Whether a request may be answered."""
    if msg.reply.startswith(_INBOXES):
        return True
    log.warning("%s wants its answer on %r, which is no inbox: not answered", msg.subject, msg.reply)
    return False


async def serve(bus: Bus, name: str, *endpoints: Endpoint) -> NoReturn:
    """Answer until cancelled."""
    service = _Service(bus.client, ServiceConfig(name=name, version=VERSION))
    started = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        try:
            await finished(_start(bus, service, started), within_s=_START_S)
            for endpoint in endpoints:
                config = EndpointConfig(
                    name=endpoint.name,
                    subject=endpoint.subject,
                    handler=_in_a_task(group, endpoint),
                    queue_group=bus.worker if endpoint.each else None,
                )
                await service.add_endpoint(config)
            await asyncio.Event().wait()
        finally:
            await finished(_stop(bus, service, started), within_s=_STOP_S)
    raise AssertionError("unreachable")


async def _start(bus: Bus, service: Service, started: asyncio.Event) -> None:
    try:
        if await _connected(bus):
            await service.start()
    finally:
        started.set()


async def _stop(bus: Bus, service: Service, started: asyncio.Event) -> None:
    await started.wait()
    if await _connected(bus):  # else what is subscribed would be subscribed again, and answer for nobody
        await service.stop()


async def _connected(bus: Bus) -> bool:
    """Wait for the connection; False when it was closed for good. A flush in its absence would break the next one."""
    while not bus.connected and not bus.client.is_closed:  # noqa: ASYNC110  (the client has no event for it)
        await asyncio.sleep(0.1)
    return bus.connected


def _in_a_task(group: asyncio.TaskGroup, endpoint: Endpoint) -> Callable[[Request], Awaitable[None]]:
    async def handle(request: Request) -> None:
        if not to_an_inbox(request._msg):  # pyright: ignore[reportPrivateUsage]
            return
        group.create_task(_answer(request, endpoint))

    return handle


async def _answer(request: Request, endpoint: Endpoint) -> None:
    headers = {**(request.headers or {}), SUBJECT: request.subject}
    with arriving(endpoint.subject, headers):
        await _respond(request, endpoint, headers)


async def _respond(request: Request, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
    try:
        if endpoint.answer is not None:
            answer = await endpoint.answer(request.data, headers)
            if answer is not None:
                await request.respond(answer)
        if endpoint.stream is not None:
            async for part in endpoint.stream(request.data, headers):
                await request.respond(part)
    except Exception:
        log.exception("%s failed", endpoint.subject)
        try:
            await request.respond_error(
                "500", f"{endpoint.name} failed, by a fault of the program; its log has the traceback"
            )
        except nats.errors.Error as unsent:
            log.warning("nor could %s say so: %s", endpoint.subject, unsent)
