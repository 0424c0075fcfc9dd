"""The executor's composition: a worker for each device, the shared watch, and the requests that it answers."""

import logging
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec

from apex_bus import backlog, metrics, micro
from apex_bus.connection import Bus
from apex_bus.consume import consume
from apex_bus.tasklog import TaskLog
from apex_executor.settings import executor_settings
from apex_executor.watch import Watch
from apex_executor.worker import Worker
from apex_schemas import subjects
from apex_schemas.devices import SessionRequest
from apex_schemas.subjects import PLATFORM_POOLS, SHARED_CONSUMERS

log = logging.getLogger(__name__)

_WATCHED_AT_ONCE = 32


async def compose(bus: Bus, environ: Mapping[str, str]) -> list[Coroutine[Any, Any, Any]]:
    """The loops of an executor. Without devices of its own it still watches over everybody's tasks."""
    settings, configs = executor_settings(environ)
    tasklog = TaskLog(bus)
    workers = [Worker(bus, tasklog, config, settings) for config in configs]
    watch = Watch(bus, tasklog, settings)
    shared = {consumer.name: consumer for consumer in SHARED_CONSUMERS}
    metrics.observe(metrics.DEVICE_STATE, lambda: _states(workers))
    pools = ("any", *PLATFORM_POOLS, *(config.alias for config in configs))
    log.info("devices: %s", ", ".join(config.alias for config in configs) or "none")
    return [
        micro.serve(bus, "executor", *_endpoints(workers)),
        consume(bus, shared["WATCHDOG"], watch.on_started, concurrency=_WATCHED_AT_ONCE),
        consume(bus, shared["INTAKE"], watch.on_request, concurrency=_WATCHED_AT_ONCE),
        consume(bus, shared["CANCEL"], watch.on_cancel),
        backlog.watch(bus, tuple(map(subjects.pool_consumer, pools))),
        *(worker.run() for worker in workers),
    ]


def _states(workers: list[Worker]) -> list[tuple[float, dict[str, str]]]:
    statuses = [worker.status() for worker in workers if worker.driving]
    return [(1, {"device": status.device, "state": status.state}) for status in statuses]


def _endpoints(workers: list[Worker]) -> list[micro.Endpoint]:
    async def devices(_: bytes, __: Mapping[str, str]) -> bytes:
        return msgspec.json.encode([worker.status() for worker in workers])

    return [
        micro.Endpoint("devices", subjects.QUERY_DEVICES, answer=devices, each=True),
        *(
            micro.Endpoint(
                f"session-{worker.config.alias}", subjects.session(worker.config.alias), _heal(worker), each=True
            )
            for worker in workers
        ),
    ]


def _heal(worker: Worker) -> micro.Answer:
    async def heal(data: bytes, _: Mapping[str, str]) -> bytes | None:
        request = msgspec.msgpack.decode(data, type=SessionRequest)
        reply = await worker.heal_for(request.dead_session)
        return None if reply is None else msgspec.msgpack.encode(reply)

    return heal
