"""How a service's process begins and ends: logging, signals, the connection, and why it stopped."""

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Literal, cast

import msgspec

from apex_bus import health, metrics, telemetry, tracing
from apex_bus.connection import Bus, connect
from apex_bus.consume import counters
from apex_bus.errors import BusError, Drift, NotPermitted, SettingsError, Unreachable
from apex_bus.settings import bus_settings, load
from apex_schemas.subjects import Identity

log = logging.getLogger(__name__)

Service = Callable[[Bus, Mapping[str, str]], Awaitable[list[Coroutine[Any, Any, Any]]]]
"""Composes a service on its bus and returns the loops that it consists of."""

_SET_UP_FAULTS: Final = (SettingsError, NotPermitted, Drift, Unreachable)


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
            line["trace_id"] = context[0]
            if context[1] is not None:
                line["span_id"] = context[1]
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class _LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    level: Literal["debug", "info", "warning", "error", "critical", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = (
        "INFO"
    )


def set_up_logging(service: str, environ: Mapping[str, str]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(service))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for chatty in ("httpx", "httpx2", "httpcore", "urllib3", "selenium", "nats", "openai", "anthropic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.getLogger().setLevel(load(_LogSettings, environ, prefix="APEX_LOG_").level.upper())


def run(identity: Identity, compose: Service) -> int:
    """Run a service until a signal. The exit code is 0 after a signal, 2 for a fault of set-up, 1 for anything else."""
    environ = dict(os.environ)
    try:
        set_up_logging(identity, environ)
        telemetry.set_up(identity, environ)
        metrics.observe(metrics.MESSAGES, lambda: [(counters[fate], {"fate": fate}) for fate in metrics.FATES])
        asyncio.run(_run(identity, compose, environ))
    except BusError as error:
        return _explain(identity, [error])
    except BaseExceptionGroup as group:
        bus_errors, others = group.split(BusError)
        code = _explain(identity, _leaves(bus_errors))
        if others is not None:
            log.critical("%s stops", identity, exc_info=others)
            return 1
        return code
    finally:
        telemetry.flush()
    return 0


def _explain(identity: Identity, errors: list[BaseException]) -> int:
    for text in dict.fromkeys(map(str, errors)):
        log.critical("%s stops: %s", identity, text)
    return 2 if all(isinstance(error, _SET_UP_FAULTS) for error in errors) else 1


def _leaves(error: BaseException | None) -> list[BaseException]:
    """The errors themselves, out of the groups of however many task groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in cast(BaseExceptionGroup[BaseException], error).exceptions for leaf in _leaves(each)]
    return [] if error is None else [error]


async def _run(identity: Identity, compose: Service, environ: Mapping[str, str]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        async with asyncio.TaskGroup() as group:
            stopping = group.create_task(_wait_for(stop))
            await _serve(identity, compose, environ)
            stopping.cancel()
    except* _Stop:
        log.info("%s has stopped", identity)


async def _serve(identity: Identity, compose: Service, environ: Mapping[str, str]) -> None:
    bus = await connect(identity, bus_settings(environ))
    try:
        loops = await compose(bus, environ)
        log.info("%s is up as %s", identity, bus.worker)
        async with asyncio.TaskGroup() as group:
            for each in loops:
                group.create_task(_endless(each))
            group.create_task(_wait_for_fatal(bus))
            group.create_task(_beat(bus))
    finally:
        await bus.close()


class _Stop(Exception):
    """The signal to end, thrown into the task group."""


async def _wait_for(stop: asyncio.Event) -> None:
    await stop.wait()
    raise _Stop


async def _wait_for_fatal(bus: Bus) -> None:
    await asyncio.shield(bus.fatal)


async def _endless(loop: Coroutine[Any, Any, Any]) -> None:
    """A loop that returns would leave its service half alive, which nobody notices."""
    await loop
    raise RuntimeError(f"{loop.__qualname__} has ended, which it never should")


async def _beat(bus: Bus) -> None:
    file = health.beat_file()
    try:
        while True:
            try:
                health.beat(file, bus.trouble)
            except OSError as error:
                log.warning("%s cannot be written, so that the health check fails: %s", file, error.strerror)
            await asyncio.sleep(health.BEAT_SECONDS)
    finally:
        file.unlink(missing_ok=True)
