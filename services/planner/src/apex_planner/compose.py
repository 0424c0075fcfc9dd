"""How the planner is put together from its settings, and when it says that it is there."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, assert_never

from apex_bus.connection import Bus
from apex_bus.consume import consume
from apex_bus.micro import serve
from apex_bus.tasklog import TaskLog
from apex_planner.ai_planner import AIPlanner
from apex_planner.clients.protocol import ToolCallingClient
from apex_planner.pictures import BusPictures
from apex_planner.service import Planner, PlannerService
from apex_planner.settings import PlannerSettings, load_planner, with_key
from apex_planner.stub import StubPlanner
from apex_schemas.consumers import SHARED_CONSUMERS

log = logging.getLogger(__name__)

SERVICE: Final = "planner"
ENDPOINT_SERVICE: Final = "planner-decision"
_CONSUMER: Final = next(each for each in SHARED_CONSUMERS if each.name == "PLANNER")
_LOOK_EVERY_S: Final = 3.0
_LOOK_FIRST_S: Final = 0.3
_MISSES: Final = 2


async def compose(bus: Bus, environ: Mapping[str, str]) -> list[Coroutine[Any, Any, Any]]:
    settings = load_planner(environ)
    planner: Planner = StubPlanner()
    if settings.enabled:
        planner = AIPlanner(
            _client(bus, settings, environ),
            tool_set=settings.tools,
            max_tokens_per_task=settings.max_tokens_per_task,
            loop_limit=settings.loop_limit,
        )
    pictures = BusPictures(bus) if settings.enabled and settings.screenshot != "never" else None
    service = PlannerService(TaskLog(bus), planner, pictures)
    return [
        consume(bus, _CONSUMER, service.handle, concurrency=settings.max_concurrency),
        stand_ready(lambda: serve(bus, SERVICE), _readiness(bus, settings)),
    ]


def _client(bus: Bus, settings: PlannerSettings, environ: Mapping[str, str]) -> ToolCallingClient:
    """On cloud-proxy neither an SDK nor what records calls is imported: the endpoint does both."""
    match settings.transport:
        case "cloud-proxy":
            from apex_planner.clients.cloud_proxy import CloudProxyClient

            return CloudProxyClient(bus)
        case "direct":
            from apex_planner.clients.choose import provider_client
            from apex_planner.ledger import BusLedger
            from apex_planner.recorded import RecordedClient

            provider = provider_client(with_key(settings, environ))
            return RecordedClient(provider, BusLedger(bus), concurrency=settings.max_concurrency)
        case _:
            assert_never(settings.transport)


def _readiness(bus: Bus, settings: PlannerSettings) -> Callable[[], Awaitable[bool]]:
    async def endpoint_answers() -> bool:
        return await bus.ping(ENDPOINT_SERVICE)

    async def always() -> bool:
        return True

    return endpoint_answers if settings.enabled and settings.transport == "cloud-proxy" else always


async def stand_ready(
    answer_pings: Callable[[], Coroutine[Any, Any, Any]],
    can_decide: Callable[[], Awaitable[bool]],
    *,
    every_s: float = _LOOK_EVERY_S,
) -> None:
    """Answer pings while decisions can be had, so that no device takes a task that could not be planned."""
    async with asyncio.TaskGroup() as group:
        answering: asyncio.Task[Any] | None = None
        misses = 0
        while True:
            misses = 0 if await can_decide() else misses + 1
            if misses == 0 and answering is None:
                answering = group.create_task(answer_pings())
            elif misses >= _MISSES and answering is not None:
                log.warning("no planner-decision endpoint answers; new tasks wait for it")
                answering.cancel()
                answering = None
            await asyncio.sleep(every_s if answering else min(every_s, _LOOK_FIRST_S))
