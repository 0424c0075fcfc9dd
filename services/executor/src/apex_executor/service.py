"""The executor's composition: its fleet of devices, the shared watch, and the requests that it answers."""

import logging
from collections.abc import Coroutine, Mapping
from typing import Any, Final, get_args

import msgspec

from apex_bus import backlog, metrics, micro
from apex_bus.connection import Bus
from apex_bus.consume import consume
from apex_bus.settings import bus_settings
from apex_bus.tasklog import TaskLog
from apex_executor.fleet import Fleet
from apex_executor.provisioned import missing
from apex_executor.queue import Queue
from apex_executor.settings import DeviceConfig, executor_settings
from apex_executor.watch import Watch
from apex_executor.worker import Worker
from apex_schemas import subjects
from apex_schemas.consumers import PLATFORM_POOLS, SHARED_CONSUMERS, pool_consumer
from apex_schemas.devices import DeviceControl, DeviceState, SessionRequest

log = logging.getLogger(__name__)

_WATCHED_AT_ONCE = 32
_ENDS: Final = (
    ("succeeded", ""),
    ("cancelled", "client"),
    *(("failed", stage) for stage in ("intake", "perception", "planner", "executor")),
)
_STATES: Final[tuple[str, ...]] = get_args(DeviceState)


async def compose(bus: Bus, environ: Mapping[str, str]) -> list[Coroutine[Any, Any, Any]]:
    """The loops of an executor. Without devices of its own it still watches over everybody's tasks."""
    settings, configs = executor_settings(environ)
    tasklog = TaskLog(bus)
    server = bus_settings(environ)

    async def check(config: DeviceConfig) -> str | None:
        return await missing(server, config)

    fleet = Fleet(bus, tasklog, settings, configs, check)
    watch = Watch(bus, tasklog, settings)
    shared = {consumer.name: consumer for consumer in SHARED_CONSUMERS}
    for status, stage in _ENDS:  # told before there are any: who looks at growth would miss the first
        metrics.add(metrics.TASKS, 0, {"status": status, "stage": stage})
    metrics.observe(metrics.DEVICE_STATE, lambda: _states(fleet.workers))
    log.info("devices: %s", ", ".join(config.alias for config in configs) or "none")
    return [
        micro.serve(bus, "executor", *_endpoints(fleet, watch.queue)),
        consume(bus, shared["WATCHDOG"], watch.on_started, concurrency=_WATCHED_AT_ONCE),
        consume(bus, shared["INTAKE"], watch.on_request, concurrency=_WATCHED_AT_ONCE),
        consume(bus, shared["CANCEL"], watch.on_cancel),
        backlog.watch(bus, tuple(map(pool_consumer, ("any", *PLATFORM_POOLS)))),
        fleet.run(),
    ]


def _states(workers: list[Worker]) -> list[tuple[float, dict[str, str]]]:
    """Every state that a device could be in, with 1 for the one that it is in: what is no longer told, a collector goes
    on telling for minutes."""
    return [
        (float(worker.driving and worker.status().state == state), {"device": worker.config.alias, "state": state})
        for worker in workers
        for state in _STATES
    ]


def _endpoints(fleet: Fleet, queue: Queue) -> list[micro.Endpoint]:
    async def devices(_: bytes, __: Mapping[str, str]) -> bytes:
        return msgspec.json.encode(fleet.statuses())

    async def waiting(_: bytes, __: Mapping[str, str]) -> bytes:
        return await queue.answer()

    async def heal(data: bytes, headers: Mapping[str, str]) -> bytes | None:
        worker = fleet.worker(_device(headers))
        if worker is None:
            return None
        reply = await worker.heal_for(msgspec.msgpack.decode(data, type=SessionRequest).dead_session)
        return None if reply is None else msgspec.msgpack.encode(reply)

    async def control(data: bytes, headers: Mapping[str, str]) -> bytes | None:
        worker = fleet.worker(_device(headers))
        status = await worker.control(msgspec.json.decode(data, type=DeviceControl)) if worker else None
        return None if status is None else msgspec.json.encode(status)

    return [
        micro.Endpoint("devices", subjects.QUERY_DEVICES, answer=devices, each=True),
        micro.Endpoint("queue", subjects.QUERY_QUEUE, answer=waiting, each=True),
        micro.Endpoint("session", subjects.session("*"), answer=heal, each=True),
        micro.Endpoint("control", subjects.control("*"), answer=control, each=True),
    ]


def _device(headers: Mapping[str, str]) -> str:
    return headers[micro.SUBJECT].partition(".")[2]
