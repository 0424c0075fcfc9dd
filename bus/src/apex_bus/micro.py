"""NATS micro services: every service answers PING, INFO and STATS, and requests on its endpoints.

The client runs one subscription's callbacks one after another, so each request is handled in a task of its own.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import NamedTuple, NoReturn

from nats.micro.request import Request
from nats.micro.service import EndpointConfig, Service, ServiceConfig

from apex_bus.connection import Bus

log = logging.getLogger(__name__)

VERSION = "0.1.0"

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


async def serve(bus: Bus, name: str, *endpoints: Endpoint) -> NoReturn:
    """Answer until cancelled."""
    service = Service(bus.client, ServiceConfig(name=name, version=VERSION))
    await service.start()
    async with asyncio.TaskGroup() as group:
        for endpoint in endpoints:
            config = EndpointConfig(
                name=endpoint.name,
                subject=endpoint.subject,
                handler=_in_a_task(group, endpoint),
                queue_group=bus.worker if endpoint.each else None,
            )
            await service.add_endpoint(config)
        try:
            await asyncio.Event().wait()
        finally:
            if bus.connected:
                await service.stop()
    raise AssertionError("unreachable")


def _in_a_task(group: asyncio.TaskGroup, endpoint: Endpoint) -> Callable[[Request], Awaitable[None]]:
    async def handle(request: Request) -> None:
        group.create_task(_answer(request, endpoint))

    return handle


async def _answer(request: Request, endpoint: Endpoint) -> None:
    headers = request.headers or {}
    try:
        if endpoint.answer is not None:
            answer = await endpoint.answer(request.data, headers)
            if answer is not None:
                await request.respond(answer)
        if endpoint.stream is not None:
            async for part in endpoint.stream(request.data, headers):
                await request.respond(part)
    except Exception as error:
        log.exception("%s failed", endpoint.subject)
        if bus_is_there(request):
            await request.respond_error("500", f"{endpoint.name} failed: {type(error).__name__}")


def bus_is_there(request: Request) -> bool:
    return not request._msg._client.is_closed  # pyright: ignore[reportPrivateUsage]
