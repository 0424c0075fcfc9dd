"""Each identity does its own work on a real server. The lists are written by hand, not made from the table."""

import asyncio
import json

import nats.errors
import pytest
from security.conftest import Guarded

from apex_bus.connection import Bus, connect, flushed
from apex_bus.pull import Pull
from apex_schemas.consumers import Consumer, consumers
from apex_schemas.subjects import Identity

TASK = "0af7651916cd43dd8448eb211c80319c"
I = Identity  # noqa: E741

STORES = [
    (I.EXECUTOR, f"task.sim-1.{TASK}.0.started"),
    (I.PERCEPTION, f"task.sim-1.{TASK}.0.scene"),
    (I.PLANNER, f"task.sim-1.{TASK}.0.planned"),
    (I.EXECUTOR, f"task.sim-1.{TASK}.0.acting"),
    (I.EXECUTOR, f"task.sim-1.{TASK}.0.event"),
    (I.EXECUTOR, f"task.sim-1.{TASK}.end.finished"),
    (I.PLANNER, f"task.none.{TASK}.end.finished"),
    (I.PERCEPTION, f"task.sim-2.{TASK}.end.finished"),
    (I.EXECUTOR, "device.sim-1"),
    (I.PLANNER, f"claim.{TASK}.0"),
    (I.ENDPOINT, f"claim.{TASK}.1"),
    (I.PERCEPTION, f"shot.{TASK}.0.a1"),
    (I.PLANNER, f"decision.{TASK}.0.0"),
    (I.ENDPOINT, f"decision.{TASK}.0.1"),
    (I.GUEST, "request.any"),
    (I.CLIENT, "request.sim-1"),
    (I.OPERATOR, "request.android"),
    (I.GUEST, f"cancel.{TASK}"),
    (I.OPERATOR, f"approve.{TASK}.0"),
    (I.EXECUTOR, "dead.executor"),
    (I.PLANNER, "dead.planner"),
    (I.ENDPOINT, "dead.planner-decision"),
    (I.PERCEPTION, "dead.perception"),
    (I.DECISION_LOG, "dead.decision-log"),
]

READS = [
    (I.EXECUTOR, "TASKS", f"task.sim-1.{TASK}.>"),
    (I.EXECUTOR, "TASKS", f"task.*.{TASK}.>"),
    (I.EXECUTOR, "TASKS", f"task.sim-1.{TASK}.0.acting"),
    (I.EXECUTOR, "DEVICES", "device.sim-1"),
    (I.EXECUTOR, "CLAIMS", f"claim.{TASK}.0"),
    (I.EXECUTOR, "REQUESTS", f"approve.{TASK}.0"),
    (I.PERCEPTION, "TASKS", f"task.sim-1.{TASK}.0.scene"),
    (I.PERCEPTION, "TASKS", f"task.sim-1.{TASK}.0.event"),
    (I.PERCEPTION, "TASKS", f"task.*.{TASK}.end.finished"),
    (I.PERCEPTION, "DEVICES", "device.sim-1"),
    (I.PLANNER, "TASKS", f"task.sim-1.{TASK}.0.started"),
    (I.PLANNER, "TASKS", f"task.sim-1.{TASK}.0.planned"),
    (I.PLANNER, "TASKS", f"task.sim-1.{TASK}.0.event"),
    (I.PLANNER, "SHOTS", f"shot.{TASK}.0.a1"),
    (I.PLANNER, "DECISIONS", f"decision.{TASK}.0.0"),
    (I.ENDPOINT, "DECISIONS", f"decision.{TASK}.0.1"),
    (I.ENDPOINT, "CLAIMS", f"claim.{TASK}.1"),
    (I.GUEST, "TASKS", f"task.*.{TASK}.end.finished"),
    (I.OPERATOR, "DEAD", "dead.*"),
]

FOLLOWS = [
    (I.GUEST, f"task.*.{TASK}.0.started"),
    (I.GUEST, f"task.*.{TASK}.*.planned"),
    (I.CLIENT, f"task.*.{TASK}.*.event"),
    (I.OPERATOR, f"task.*.{TASK}.end.finished"),
    (I.GUEST, "_INBOX.abc.*"),
]

PINGS = [
    (I.EXECUTOR, I.PERCEPTION),
    (I.EXECUTOR, I.PLANNER),
    (I.PLANNER, I.ENDPOINT),
    (I.GUEST, I.DECISION_LOG),
    (I.CLIENT, I.EXECUTOR),
    (I.OPERATOR, I.ENDPOINT),
]

ASKS = [
    (I.PERCEPTION, "session.sim-1", I.EXECUTOR),
    (I.PLANNER, "planner-decision.decide", I.ENDPOINT),
    (I.GUEST, "query.timeline", I.DECISION_LOG),
    (I.CLIENT, "query.tasks", I.DECISION_LOG),
    (I.OPERATOR, "query.devices", I.EXECUTOR),
    (I.OPERATOR, "query.decisions", I.DECISION_LOG),
    (I.GUEST, "query.queue", I.EXECUTOR),
    (I.OPERATOR, "control.sim-1", I.EXECUTOR),
]

CONSUMERS = [each for each in consumers(("sim-1",)) if each.name != "POOL_ios"]  # to which nothing is sent above


async def bus_of(guarded: Guarded, identity: Identity) -> Bus:
    return await connect(identity, guarded.settings(identity))


@pytest.fixture(scope="module")
def written(guarded: Guarded) -> list[int]:
    """Every identity writes what is its own; the sequences that the server answered."""

    async def write() -> list[int]:
        sequences: list[int] = []
        for identity, subject in STORES:
            bus = await bus_of(guarded, identity)
            try:
                sequences.append(await bus.publish(subject, subject.encode()))
            finally:
                await bus.close()
        return sequences

    return asyncio.run(write())


def test_what_an_identity_writes_is_stored(written: list[int]) -> None:
    assert len(written) == len(STORES)
    assert all(sequence > 0 for sequence in written)


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(("identity", "stream", "subject"), READS)
async def test_what_an_identity_may_read_comes_back(
    guarded: Guarded, identity: Identity, stream: str, subject: str
) -> None:
    bus = await bus_of(guarded, identity)
    try:
        stored = await bus.get(stream, subject)
    finally:
        await bus.close()
    assert stored is not None
    assert stored.data == stored.subject.encode()


@pytest.mark.usefixtures("written")
async def test_newest_slot_of_a_task_is_the_last_one_written(guarded: Guarded) -> None:
    bus = await bus_of(guarded, I.EXECUTOR)
    try:
        newest = await bus.get("TASKS", f"task.sim-1.{TASK}.>")
    finally:
        await bus.close()
    assert newest is not None
    assert newest.subject == f"task.sim-1.{TASK}.end.finished"


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda consumer: consumer.name)
async def test_every_consumer_serves_its_identity_until_acknowledged(guarded: Guarded, consumer: Consumer) -> None:
    bus = await bus_of(guarded, consumer.identity)
    try:
        async with Pull(bus, consumer) as pull:
            msg = await pull.next(1, wait_s=2)
            assert msg is not None
            await msg.in_progress()
            await msg.ack_sync(timeout=20)
        assert not bus.fatal.done()
    finally:
        await bus.close()


@pytest.mark.parametrize(("identity", "subject"), FOLLOWS)
async def test_a_client_may_follow(guarded: Guarded, identity: Identity, subject: str) -> None:
    assert not await guarded.refused(identity, "subscribe", subject)


@pytest.mark.parametrize(("identity", "service"), PINGS)
async def test_a_ping_is_answered(guarded: Guarded, identity: Identity, service: Identity) -> None:
    await _ask_and_answer(guarded, identity, f"$SRV.PING.{service}", service)


@pytest.mark.parametrize(("identity", "subject", "service"), ASKS)
async def test_a_request_is_answered_by_whoever_serves_it(
    guarded: Guarded, identity: Identity, subject: str, service: Identity
) -> None:
    await _ask_and_answer(guarded, identity, subject, service)


async def test_the_endpoint_may_answer_one_request_many_times(guarded: Guarded) -> None:
    async with guarded.client(I.ENDPOINT) as (endpoint, refusals), guarded.client(I.PLANNER) as (planner, _):
        serving = await endpoint.subscribe("planner-decision.decide")
        await flushed(endpoint)
        inbox = planner.new_inbox()
        answers = await planner.subscribe(inbox)
        await planner.publish("planner-decision.decide", b"", reply=inbox)
        request = await serving.next_msg(timeout=20)
        for number in range(50):
            await request.respond(str(number).encode())
        heard = [json.loads((await answers.next_msg(timeout=20)).data) for _ in range(50)]
    assert heard == list(range(50))
    assert refusals == []


async def _ask_and_answer(guarded: Guarded, identity: Identity, subject: str, service: Identity) -> None:
    async with guarded.client(service) as (server, refusals), guarded.client(identity) as (asking, refused):
        serving = await server.subscribe(subject)
        await flushed(server)
        asked = asyncio.create_task(asking.request(subject, b"?", timeout=10))
        try:
            await (await serving.next_msg(timeout=10)).respond(b"!")
            answer = await asked
        except (nats.errors.Error, TimeoutError) as error:
            pytest.fail(f"{error!r}: {refusals} {refused}")
    assert answer.data == b"!"
