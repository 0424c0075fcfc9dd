"""The decision-log: TASKS and DECISIONS into Postgres, and the answers to queries of tasks, timelines and decisions.

Consumes two consumers by the batch; emits nothing but dead letters. A batch is written in one transaction and then
acknowledged. While Postgres is away the batch is kept, nothing more is pulled, and that is said; a row that Postgres
refuses for its content is parked in DEAD, and the rest is written.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping
from typing import Any, Final, NamedTuple

from apex_bus import backlog, metrics, micro
from apex_bus.connection import Bus
from apex_bus.consume import BatchHandler, Delivery, bury, consume_batches, counters
from apex_bus.tracing import Arrival, span
from apex_decision_log import recorded, timeline
from apex_decision_log.decide import row_of
from apex_decision_log.rows import Row
from apex_decision_log.settings import database_url
from apex_decision_log.store import Store, open_store, write_all
from apex_schemas import subjects
from apex_schemas.consumers import SHARED_CONSUMERS, Consumer
from apex_schemas.errors import UnknownKind, WireError

log = logging.getLogger(__name__)

TASKS: Final = next(each for each in SHARED_CONSUMERS if each.name == "DECISION_LOG_TASKS")
DECISIONS: Final = next(each for each in SHARED_CONSUMERS if each.name == "DECISION_LOG_DECISIONS")
_BATCH: Final = {TASKS.name: 200, DECISIONS.name: 50}


class Readable(NamedTuple):
    """A delivery with the row that it stands for."""

    delivery: Delivery
    row: Row


def recorder(bus: Bus, store: Store, consumer: Consumer) -> BatchHandler:
    """The handler of one consumer's batches: it returns when all that can be stored is."""

    async def record(deliveries: list[Delivery]) -> None:
        readable: list[Readable] = []
        begun_ns = time.time_ns()
        for delivery in deliveries:
            try:
                row = row_of(delivery.subject, delivery.data, stored_at_ms=delivery.timestamp_ns // 1_000_000)
            except UnknownKind as error:
                counters["skipped"] += 1
                log.warning("%s skipped: %s", delivery.subject, error)
            except WireError as error:
                await bury(bus, delivery, str(error), stream=consumer.stream)
            else:
                readable.append(Readable(delivery, row))
        for refused in await write_all(store, readable, lambda each: each.row):
            await bury(bus, refused.item.delivery, refused.reason, stream=consumer.stream)
        _tell(readable, consumer, begun_ns)

    return record


def _tell(readable: list[Readable], consumer: Consumer, begun_ns: int) -> None:
    """A span for each task of a batch that is now on record, linked to whoever wrote its messages."""
    tasks: dict[str, list[Arrival]] = {}
    for delivery, row in readable:
        tasks.setdefault(row.task_id, []).append(Arrival(delivery.subject, delivery.headers))
    for task, causes in tasks.items():
        with span("record", task=task, causes=causes, begun_ns=begun_ns, attributes={"apex.messages": len(causes)}):
            pass
    if readable:
        lag_s = max(delivery.age_s for delivery, _ in readable)
        metrics.record(metrics.LOG_LAG, lag_s, {"consumer": consumer.name})


def endpoints(store: Store) -> tuple[micro.Endpoint, ...]:
    async def of_task(question: bytes, _: Mapping[str, str]) -> bytes:
        return await timeline.answer_timeline(store, question)

    async def of_tasks(question: bytes, _: Mapping[str, str]) -> bytes:
        return await timeline.answer_tasks(store, question)

    async def of_calls(question: bytes, _: Mapping[str, str]) -> bytes:
        return await recorded.answer_decisions(store, question)

    return (
        micro.Endpoint("decisions", subjects.QUERY_DECISIONS, answer=of_calls),
        micro.Endpoint("timeline", subjects.QUERY_TIMELINE, answer=of_task),
        micro.Endpoint("tasks", subjects.QUERY_TASKS, answer=of_tasks),
    )


async def serve(bus: Bus, dsn: str) -> None:
    """All loops of the service over one store, until cancelled. It starts with or without its database."""
    async with open_store(dsn) as store, asyncio.TaskGroup() as group:
        log.info("decisions go to %s", store.place)
        group.create_task(micro.serve(bus, bus.identity, *endpoints(store)))
        group.create_task(backlog.watch(bus, (TASKS, DECISIONS)))
        for consumer in (TASKS, DECISIONS):
            handle = recorder(bus, store, consumer)
            group.create_task(consume_batches(bus, consumer, handle, batch=_BATCH[consumer.name]))


async def compose(bus: Bus, environ: Mapping[str, str]) -> list[Coroutine[Any, Any, Any]]:
    """Raises SettingsError when the database's URL is missing or wrong."""
    return [serve(bus, database_url(environ))]
