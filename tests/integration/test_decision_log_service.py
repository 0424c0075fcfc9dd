"""From the streams into Postgres and back to a client: nothing is lost or doubled, whatever dies on the way."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import asyncpg
import decision_log_world as world
import msgspec
import pytest
import pytest_asyncio
from integration.conftest import Nats, Postgres

from apex_bus import consume
from apex_bus.connection import Bus, connect
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_decision_log import migrate, service
from apex_schemas import envelope, subjects
from apex_schemas.devices import DeadLetter
from apex_schemas.queries import TaskList, TasksQuery, Timeline, TimelineQuery
from apex_schemas.subjects import Identity

SECONDS = 40
TASK = world.task_id(0)


@dataclass(frozen=True, kw_only=True)
class Rig:
    """Streams on a server of its own, a migrated database, and a client's connection."""

    nats: Nats
    postgres: Postgres
    bus: Bus

    async def publish(self, *messages: world.Message) -> None:
        for subject, data in messages:
            await self.bus.publish(subject, data)

    async def rows(self, query: str) -> list[Any]:
        connection = await asyncpg.connect(self.postgres.dsn)
        try:
            return await connection.fetch(query)
        finally:
            await connection.close()

    async def count(self, table: str) -> int:
        return (await self.rows(f"select count(*) from {table}"))[0][0]

    async def pending(self) -> int:
        """Messages that are not acknowledged yet, whether delivered or not."""
        found = 0
        for consumer in (service.TASKS, service.DECISIONS):
            info = await self.bus.api(f"CONSUMER.INFO.{consumer.stream}.{consumer.name}")
            found += info["num_pending"] + info["num_ack_pending"]
        return found

    @contextlib.asynccontextmanager
    async def service(self) -> AsyncGenerator[None]:
        bus = await connect(Identity.DECISION_LOG, BusSettings(url=self.nats.url))
        task = asyncio.create_task(service.serve(bus, self.postgres.dsn))
        try:
            yield
            assert not task.done(), task
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await bus.close()


@pytest_asyncio.fixture
async def rig(nats_server: Nats, postgres: Postgres) -> AsyncGenerator[Rig]:
    bus = await connect(Identity.PROVISIONER, BusSettings(url=nats_server.url))
    await provision(bus, (world.DEVICE,))
    await migrate.upgrade(postgres.dsn)
    yield Rig(nats=nats_server, postgres=postgres, bus=bus)
    await bus.close()


async def test_a_task_s_messages_are_in_the_timeline_that_a_client_asks_for(rig: Rig) -> None:
    async with rig.service():
        await rig.publish(*world.whole_task(TASK, turns=2), world.decided(TASK, 0), world.decided(TASK, 1))
        await _until(lambda: _is(rig.pending, 0))
        question = msgspec.json.encode(TimelineQuery())
        answer = await rig.bus.request(subjects.QUERY_TIMELINE, question, timeout_s=20)
        timeline = msgspec.json.decode(answer, type=Timeline)
        assert (timeline.summary.task, timeline.summary.status) == (TASK, "succeeded")
        assert [(step.rationale, step.success, len(step.calls)) for step in timeline.steps] == [
            ("It is off.", True, 1)
        ] * 2
        answer = await rig.bus.request(subjects.QUERY_TASKS, msgspec.json.encode(TasksQuery()), timeout_s=20)
        assert len(msgspec.json.decode(answer, type=TaskList).tasks) == 1
        assert await rig.bus.ping("decision-log")


async def test_a_restart_of_postgres_in_the_middle_loses_and_doubles_nothing(rig: Rig) -> None:
    tasks = [world.task_id(number) for number in range(60)]
    async with rig.service(), asyncio.TaskGroup() as group:

        async def publish() -> None:
            for task in tasks:
                await rig.publish(*world.whole_task(task, turns=2), world.decided(task, 0), world.decided(task, 1))

        publishing = group.create_task(publish())
        for _ in range(3):
            before = await rig.pending()
            await _until(lambda before=before: _differs(rig.pending, before))
            await rig.postgres.server.kill()
            await rig.postgres.server.start()
        await publishing
        await _until(lambda: _is(rig.pending, 0))
    assert await rig.count("tasks where status = 'succeeded' and goal = 'turn on Wi-Fi'") == len(tasks)
    assert await rig.count("steps where event_at is not null and action = 'tap'") == 2 * len(tasks)
    assert await rig.count("scenes") == await rig.count("planner_decision_log") == 2 * len(tasks)


async def test_while_postgres_is_away_nothing_is_acknowledged_and_that_is_said(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    await rig.postgres.server.kill()
    messages = [*world.whole_task(TASK), world.decided(TASK, 0)]
    with caplog.at_level(logging.WARNING):
        async with rig.service():
            await rig.publish(*messages)
            await _until(lambda: _said(caplog, "DECISION_LOG_TASKS waits", "DECISION_LOG_DECISIONS waits"))
            assert await rig.pending() == len(messages)
            await rig.postgres.server.start()
            await _until(lambda: _is(rig.pending, 0))
    assert await rig.count("planner_decision_log") == 1
    assert rig.postgres.dsn not in caplog.text


async def test_a_batch_that_comes_again_is_written_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [*world.whole_task(TASK, turns=2), world.decided(TASK, 0)]
    await rig.publish(*messages)

    async def lost(_: consume.Delivery) -> None:
        """An acknowledgement that never arrives."""

    with monkeypatch.context() as patch:
        patch.setattr(consume.Delivery, "ack", lost)
        async with rig.service():
            await _until(lambda: _is(lambda: rig.count("planner_decision_log"), 1))
            await _until(lambda: _is(lambda: rig.count("tasks where status = 'succeeded'"), 1))
    first = await rig.rows("select * from steps order by turn")
    for consumer in (service.TASKS, service.DECISIONS):  # at once, instead of after the ack wait
        await rig.bus.api(f"CONSUMER.DELETE.{consumer.stream}.{consumer.name}")
    await provision(rig.bus, (world.DEVICE,))
    async with rig.service():
        await _until(lambda: _is(rig.pending, 0))
    assert await rig.rows("select * from steps order by turn") == first
    assert await rig.count("planner_decision_log") == 1


async def test_two_services_at_once_share_the_work_and_double_nothing(rig: Rig) -> None:
    tasks = [world.task_id(number) for number in range(30)]
    async with rig.service(), rig.service():
        for task in tasks:
            await rig.publish(*world.whole_task(task), world.decided(task, 0))
        await _until(lambda: _is(rig.pending, 0))
    assert await rig.count("tasks where status = 'succeeded' and goal is not null") == len(tasks)
    assert await rig.count("planner_decision_log") == len(tasks)


async def test_poison_is_parked_in_dead_and_blocks_nothing_behind_it(rig: Rig) -> None:
    poison = world.acting(TASK, 0, deadline_ms=2**63)  # more than a column holds
    forged = (world.event(TASK, 1)[0], world.event(TASK, 0)[1])  # another turn's event
    newer = msgspec.msgpack.encode({"kind": "world_event.v9", "body": {}})
    noise = (world.event(TASK, 3)[0], b"\xc1")
    await rig.publish(
        world.started(TASK), poison, forged, (world.event(TASK, 2)[0], newer), noise, world.finished(TASK)
    )
    async with rig.service():
        await _until(lambda: _is(rig.pending, 0))
    assert await rig.count("tasks where status = 'succeeded'") == 1
    assert await rig.count("steps") == 0
    letters = [await _dead(rig.bus, sequence) for sequence in (1, 2, 3)]
    assert {letter.subject for letter in letters} == {poison[0], forged[0], noise[0]}
    assert all(letter.stream == "TASKS" and letter.reason for letter in letters)
    assert (await rig.bus.api("STREAM.INFO.DEAD"))["state"]["messages"] == 3


async def _dead(bus: Bus, sequence: int) -> DeadLetter:
    answer = await bus.request("$JS.API.DIRECT.GET.DEAD", msgspec.json.encode({"seq": sequence}), timeout_s=20)
    body = envelope.decode(answer).body
    assert isinstance(body, DeadLetter)
    return body


async def _is(ask: Callable[[], Awaitable[int]], wanted: int) -> bool:
    return await ask() == wanted


async def _differs(ask: Callable[[], Awaitable[int]], unwanted: int) -> bool:
    return await ask() != unwanted


async def _said(caplog: pytest.LogCaptureFixture, *texts: str) -> bool:
    return all(text in caplog.text for text in texts)


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + SECONDS
    while not await condition():
        assert time.monotonic() < deadline, "it did not come to pass in time"
        await asyncio.sleep(0.02)
