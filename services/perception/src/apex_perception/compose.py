"""How perception is put together: its loop over PERCEPTION, its threads, its answer to pings."""

from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from apex_bus.connection import Bus
from apex_bus.consume import consume
from apex_bus.micro import serve
from apex_bus.tasklog import TaskLog
from apex_perception.appium import attach
from apex_perception.service import PerceptionService
from apex_perception.settings import load_settings
from apex_schemas.consumers import SHARED_CONSUMERS

SERVICE: Final = "perception"
CONSUMER: Final = next(each for each in SHARED_CONSUMERS if each.name == "PERCEPTION")


async def compose(bus: Bus, environ: Mapping[str, str]) -> list[Coroutine[Any, Any, Any]]:
    settings = load_settings(environ)
    threads = ThreadPoolExecutor(max_workers=settings.concurrency, thread_name_prefix="phone")
    service = PerceptionService(bus, TaskLog(bus), settings, attach, threads)
    return [
        consume(bus, CONSUMER, service.handle, concurrency=settings.concurrency),
        serve(bus, SERVICE),
    ]
