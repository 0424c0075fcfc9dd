"""How a service's process begins and ends: logging, signals, the connection, and why it stopped."""

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from apex_bus import health, tracing
from apex_bus.connection import Bus, connect
from apex_bus.errors import BusError, SettingsError
from apex_bus.settings import bus_settings
from apex_schemas.subjects import Identity

log = logging.getLogger(__name__)

Service = Callable[[Bus, Mapping[str, str]], Awaitable[list[Coroutine[Any, Any, Any]]]]
"""Composes a service on its bus and returns the loops that it consists of."""


class JsonLines(logging.Formatter):
    """One JSON object a line, with the trace of the task that it is about, where there is one."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
        }
        context = tracing.current_ids()
        if context is not None:
            line["trace_id"], line["span_id"] = context
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(service: str, environ: Mapping[str, str]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(service))
    logging.basicConfig(level=environ.get("APEX_LOG_LEVEL", "INFO").upper(), handlers=[handler], force=True)
    for chatty in ("httpx", "httpcore", "urllib3", "selenium", "nats", "openai", "anthropic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def run(identity: Identity, compose: Service) -> int:
    """Run a service until a signal. The exit code is 0 after a signal, 2 for a fault of set-up, 1 for anything else."""
    environ = dict(os.environ)
    set_up_logging(identity, environ)
    tracing.setup(identity, environ)
    try:
        asyncio.run(_run(identity, compose, environ))
    except (SettingsError, BusError) as error:
        log.critical("%s stops: %s", identity, error)
        return 2
    except BaseExceptionGroup as group:
        bus_errors, others = group.split(BusError)
        for error in bus_errors.exceptions if bus_errors else ():
            log.critical("%s stops: %s", identity, error)
        if others is not None:
            log.critical("%s stops", identity, exc_info=others)
        return 1
    finally:
        tracing.flush()
    return 0


async def _run(identity: Identity, compose: Service, environ: Mapping[str, str]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    bus = await connect(identity, bus_settings(environ))
    try:
        loops = await compose(bus, environ)
        log.info("%s is up as %s", identity, bus.worker)
        await _until_stopped(bus, loops, stop)
    finally:
        await bus.close()
    log.info("%s has stopped", identity)


class _Stop(Exception):
    """The signal to end, thrown into the task group."""


async def _until_stopped(bus: Bus, loops: list[Coroutine[Any, Any, Any]], stop: asyncio.Event) -> None:
    async def wait_for_stop() -> None:
        await stop.wait()
        raise _Stop

    async def wait_for_fatal() -> None:
        await asyncio.shield(bus.fatal)

    try:
        async with asyncio.TaskGroup() as group:
            for each in (*loops, wait_for_stop(), wait_for_fatal(), _beat(bus)):
                group.create_task(each)
    except* _Stop:
        pass


async def _beat(bus: Bus) -> None:
    file = health.beat_file()
    try:
        while True:
            health.beat(file, healthy=bus.connected)
            await asyncio.sleep(health.BEAT_SECONDS)
    finally:
        file.unlink(missing_ok=True)
