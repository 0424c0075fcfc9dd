"""A row that Postgres would not take is written once its cause is mended and its dead letter is handed back."""

import asyncio
import contextlib

import asyncpg
import decision_log_world as world
import msgspec
from integration.bus_rig import until_answered
from integration.conftest import Nats, Postgres

from apex_bus.connection import connect
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_decision_log import migrate, service
from apex_schemas import envelope, subjects
from apex_schemas.devices import DeadLetter, HandledAgain
from apex_schemas.subjects import Identity

TASK = world.task_id(0)


async def test_row_that_a_constraint_refused_is_written_once_when_it_is_handed_back_without_the_constraint(
    nats_server: Nats, postgres: Postgres
) -> None:
    await migrate.upgrade(postgres.dsn)
    database = await asyncpg.connect(postgres.dsn)
    bus = await connect(Identity.PROVISIONER, BusSettings(url=nats_server.url))
    await provision(bus, (world.DEVICE,))
    own = await connect(Identity.DECISION_LOG, BusSettings(url=nats_server.url))
    serving = asyncio.create_task(service.serve(own, postgres.dsn))
    try:
        await database.execute("alter table steps add constraint mistaken check (turn <> 1)")
        for subject, data in world.whole_task(TASK, turns=3):
            await bus.publish(subject, data)

        async def refused() -> bool:
            info = await bus.api("STREAM.INFO.DEAD")
            waits = await bus.api(f"CONSUMER.INFO.TASKS.{service.TASKS.name}")
            return info["state"]["messages"] > 0 and waits["num_pending"] + waits["num_ack_pending"] == 0

        await until_answered(refused, "what the constraint refuses is in DEAD", within_s=40)
        letters: list[DeadLetter] = []
        for number in range(1, (await bus.api("STREAM.INFO.DEAD"))["state"]["messages"] + 1):
            stored = await bus.get_at("DEAD", number)
            assert stored is not None
            letters.append(envelope.decode(stored.data).body)
        assert all(letter.subject.split(".")[3] == "1" for letter in letters)

        async def handed_back() -> list[HandledAgain]:
            place = subjects.again(Identity.DECISION_LOG, service.TASKS.name)
            answers = [await bus.request(place, msgspec.json.encode(letter), timeout_s=20) for letter in letters]
            return [msgspec.json.decode(answer, type=HandledAgain) for answer in answers]

        for answer in await handed_back():
            assert answer.outcome == "failed"
            assert answer.reason == "check violation (SQLSTATE 23514) of constraint mistaken in table steps"
        assert await database.fetchval("select count(*) from steps") == 2
        await database.execute("alter table steps drop constraint mistaken")
        for _ in range(2):
            assert {answer.outcome for answer in await handed_back()} == {"handled"}
            rows = await database.fetch("select turn, success, event_at is not null from steps order by turn")
            assert [tuple(row) for row in rows] == [(0, True, True), (1, True, True), (2, True, True)]
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        await own.close()
        await database.close()
        await bus.close()
