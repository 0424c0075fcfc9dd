"""What each identity is refused by a real server. The list is written by hand, not made from the table."""

import asyncio
from pathlib import Path

import nkeys
import pytest
from security.conftest import Guarded

from apex_bus.connection import connect, flushed
from apex_bus.credentials import Server, write_credentials
from apex_bus.errors import NotPermitted, Unreachable
from apex_bus.settings import BusSettings
from apex_lab.embedded.nats import nats_server
from apex_schemas.subjects import Identity

TASK = "4bf92f3577b34da6a3ce929d0e0e4736"
I = Identity  # noqa: E741
GET = "$JS.API.DIRECT.GET"
NEXT = "$JS.API.CONSUMER.MSG.NEXT"

MAY_NOT_PUBLISH = [
    # Another's slots.
    (I.PERCEPTION, f"task.sim-1.{TASK}.0.started"),
    (I.PERCEPTION, f"task.sim-1.{TASK}.0.planned"),
    (I.PERCEPTION, f"task.sim-1.{TASK}.0.event"),
    (I.PLANNER, f"task.sim-1.{TASK}.0.scene"),
    (I.PLANNER, f"task.sim-1.{TASK}.0.acting"),
    (I.PLANNER, f"task.sim-1.{TASK}.0.event"),
    (I.EXECUTOR, f"task.sim-1.{TASK}.0.planned"),
    (I.EXECUTOR, f"task.sim-1.{TASK}.0.scene"),
    (I.ENDPOINT, f"task.sim-1.{TASK}.0.planned"),
    (I.ENDPOINT, f"task.sim-1.{TASK}.end.finished"),
    (I.DECISION_LOG, f"task.sim-1.{TASK}.end.finished"),
    (I.GUEST, f"task.sim-1.{TASK}.0.planned"),
    (I.GUEST, f"task.sim-1.{TASK}.end.finished"),
    (I.OPERATOR, f"task.sim-1.{TASK}.end.finished"),
    # Places that the table does not have.
    (I.EXECUTOR, f"task.sim-1.{TASK}.1.started"),
    (I.EXECUTOR, f"task.sim-1.{TASK}.1.finished"),
    # Requests, records, pictures, decisions, dead letters of others.
    (I.EXECUTOR, "request.any"),
    (I.PLANNER, "request.any"),
    (I.PERCEPTION, f"cancel.{TASK}"),
    (I.GUEST, f"approve.{TASK}.0"),
    (I.CLIENT, f"approve.{TASK}.0"),
    (I.EXECUTOR, f"approve.{TASK}.0"),
    (I.PLANNER, f"approve.{TASK}.0"),
    (I.PERCEPTION, "device.sim-1"),
    (I.PLANNER, "device.sim-1"),
    (I.EXECUTOR, f"claim.{TASK}.0"),
    (I.EXECUTOR, f"shot.{TASK}.0.a"),
    (I.PLANNER, f"shot.{TASK}.0.a"),
    (I.EXECUTOR, f"decision.{TASK}.0.0"),
    (I.PERCEPTION, f"decision.{TASK}.0.0"),
    (I.PERCEPTION, "dead.planner"),
    (I.PLANNER, "dead.planner-decision"),
    (I.GUEST, "dead.executor"),
    # Requests that another service may make.
    (I.PERCEPTION, "planner-decision.decide"),
    (I.GUEST, "planner-decision.decide"),
    (I.PLANNER, "session.sim-1"),
    (I.GUEST, "session.sim-1"),
    (I.PERCEPTION, "query.timeline"),
    (I.PERCEPTION, "query.queue"),
    (I.GUEST, "control.sim-1"),
    (I.CLIENT, "control.sim-1"),
    (I.EXECUTOR, "control.sim-1"),
    (I.PERCEPTION, "control.sim-1"),
    (I.CLIENT, "query.decisions"),
    (I.GUEST, "query.decisions"),
    (I.PERCEPTION, "$SRV.PING.executor"),
    (I.DECISION_LOG, "$SRV.PING"),
    # Reads.
    (I.PERCEPTION, f"{GET}.SHOTS.shot.{TASK}.0.a"),
    (I.EXECUTOR, f"{GET}.SHOTS.shot.{TASK}.0.a"),
    (I.ENDPOINT, f"{GET}.SHOTS.shot.{TASK}.0.a"),
    (I.DECISION_LOG, f"{GET}.SHOTS.shot.{TASK}.0.a"),
    (I.OPERATOR, f"{GET}.SHOTS.shot.{TASK}.0.a"),
    (I.PERCEPTION, f"{GET}.DECISIONS.decision.{TASK}.0.0"),
    (I.EXECUTOR, f"{GET}.DECISIONS.decision.{TASK}.0.0"),
    (I.GUEST, f"{GET}.DECISIONS.decision.{TASK}.0.0"),
    (I.PERCEPTION, f"{GET}.TASKS.task.sim-1.{TASK}.0.planned"),
    (I.PERCEPTION, f"{GET}.TASKS.task.sim-1.{TASK}.>"),
    (I.PLANNER, f"{GET}.TASKS.task.sim-1.{TASK}.*.acting"),
    (I.PLANNER, f"{GET}.TASKS.task.sim-1.{TASK}.>"),
    (I.ENDPOINT, f"{GET}.TASKS.task.sim-1.{TASK}.0.event"),
    (I.GUEST, f"{GET}.TASKS.task.sim-1.{TASK}.0.scene"),
    (I.GUEST, f"{GET}.TASKS.task.sim-1.{TASK}.>"),
    (I.GUEST, f"{GET}.REQUESTS.request.any"),
    (I.EXECUTOR, f"{GET}.REQUESTS.request.any"),
    (I.GUEST, f"{GET}.REQUESTS.approve.{TASK}.0"),
    (I.GUEST, f"{GET}.DEAD.dead.executor"),
    (I.EXECUTOR, f"{GET}.TASKS.task.>"),
    (I.EXECUTOR, f"{GET}.TASKS"),
    (I.PLANNER, f"{GET}.SHOTS"),
    (I.EXECUTOR, "$JS.API.STREAM.MSG.GET.TASKS"),
    (I.OPERATOR, "$JS.API.STREAM.MSG.GET.DECISIONS"),
    # Consumers of others, of other devices, and consumers made to order.
    (I.EXECUTOR, f"{NEXT}.TASKS.PERCEPTION"),
    (I.EXECUTOR, f"{NEXT}.TASKS.DEVICE_sim-9"),
    (I.PERCEPTION, f"{NEXT}.TASKS.PLANNER"),
    (I.PLANNER, f"{NEXT}.DECISIONS.DECISION_LOG_DECISIONS"),
    (I.DECISION_LOG, f"{NEXT}.REQUESTS.INTAKE"),
    (I.GUEST, f"{NEXT}.REQUESTS.POOL_any"),
    (I.PLANNER, "$JS.ACK.TASKS.PERCEPTION.1.1.1.1.0"),
    (I.EXECUTOR, "$JS.ACK._.x.TASKS.PLANNER.1.1.1.1.0"),
    (I.DECISION_LOG, "$JS.API.CONSUMER.CREATE.TASKS.MINE"),
    (I.EXECUTOR, "$JS.API.CONSUMER.CREATE.SHOTS.MINE.shot.>"),
    (I.GUEST, "$JS.API.CONSUMER.DURABLE.CREATE.TASKS.MINE"),
    (I.GUEST, "$JS.API.CONSUMER.CREATE.REQUESTS"),
    # Administration.
    (I.EXECUTOR, "$JS.API.STREAM.PURGE.TASKS"),
    (I.OPERATOR, "$JS.API.STREAM.DELETE.TASKS"),
    (I.PLANNER, "$JS.API.STREAM.UPDATE.TASKS"),
    (I.GUEST, "$JS.API.STREAM.LIST"),
    (I.PROVISIONER, "$JS.API.STREAM.DELETE.TASKS"),
    (I.PROVISIONER, "$JS.API.STREAM.CREATE.OTHER"),
    (I.PROVISIONER, "$JS.API.CONSUMER.DELETE.TASKS.PLANNER"),
    (I.PROVISIONER, f"{NEXT}.TASKS.PLANNER"),
    (I.PROVISIONER, "request.any"),
    (I.OPERATOR, "$SYS.REQ.SERVER.PING"),
    # Answers that nobody asked for.
    (I.PERCEPTION, "_INBOX_executor.abc.1"),
    (I.ENDPOINT, "_INBOX_planner.abc.1"),
    (I.GUEST, "_INBOX_operator.abc.1"),
    (I.EXECUTOR, "_INBOX.abc.1"),
]

MAY_NOT_SUBSCRIBE = [
    (I.PERCEPTION, "decision.>"),
    (I.EXECUTOR, f"decision.{TASK}.0.0"),
    (I.GUEST, "decision.*.*.*"),
    (I.OPERATOR, "decision.>"),
    (I.PLANNER, "shot.>"),
    (I.GUEST, f"shot.{TASK}.*.*"),
    (I.DECISION_LOG, "shot.>"),
    (I.GUEST, "task.>"),
    (I.GUEST, f"task.*.{TASK}.>"),
    (I.GUEST, f"task.*.{TASK}.*.scene"),
    (I.GUEST, f"task.*.{TASK}.*.acting"),
    (I.GUEST, f"task.*.{TASK}.*.*"),
    (I.GUEST, "request.>"),
    (I.GUEST, "cancel.*"),
    (I.GUEST, ">"),
    (I.OPERATOR, "*.>"),
    (I.PLANNER, "task.>"),
    (I.PERCEPTION, "request.any"),
    (I.EXECUTOR, "request.any"),
    (I.GUEST, "session.*"),
    (I.PERCEPTION, "session.sim-1"),
    (I.PLANNER, "planner-decision.decide"),
    (I.GUEST, "query.timeline"),
    (I.EXECUTOR, "query.timeline"),
    (I.GUEST, "_INBOX_planner.>"),
    (I.PERCEPTION, "_INBOX_executor.>"),
    (I.PERCEPTION, "_INBOX.>"),
    (I.GUEST, "_INBOX_client.>"),
    (I.GUEST, "$SRV.PING"),
    (I.PERCEPTION, "$SRV.PING.planner"),
    (I.GUEST, "$JS.API.>"),
    (I.EXECUTOR, "$JS.ACK.>"),
    (I.OPERATOR, "$JS.EVENT.ADVISORY.>"),
    (I.OPERATOR, "$SYS.>"),
    (I.PROVISIONER, "task.>"),
]


@pytest.mark.parametrize(("identity", "subject"), MAY_NOT_PUBLISH)
async def test_publishing_what_is_not_its_own_is_refused(guarded: Guarded, identity: Identity, subject: str) -> None:
    assert await guarded.refused(identity, "publish", subject)


@pytest.mark.parametrize(("identity", "subject"), MAY_NOT_SUBSCRIBE)
async def test_listening_to_what_is_not_its_own_is_refused(guarded: Guarded, identity: Identity, subject: str) -> None:
    assert await guarded.refused(identity, "subscribe", subject)


async def test_a_service_may_not_answer_twice_where_one_answer_is_due(guarded: Guarded) -> None:
    async with guarded.client(I.EXECUTOR) as (executor, refusals), guarded.client(I.PERCEPTION) as (perception, _):
        serving = await executor.subscribe("session.sim-1")
        await flushed(executor)
        asked = asyncio.create_task(perception.request("session.sim-1", b"", timeout=20))
        request = await serving.next_msg(timeout=20)
        await request.respond(b"first")
        await request.respond(b"second")
        await flushed(executor)
        assert (await asked).data == b"first"
    assert any(request.reply.lower() in refusal for refusal in refusals)


async def test_a_key_that_the_server_does_not_know_is_refused(guarded: Guarded, tmp_path: Path) -> None:
    stranger = tmp_path / "seed"
    stranger.write_bytes(nkeys.encode_seed(b"s" * 32, nkeys.PREFIX_BYTE_USER))
    with pytest.raises(
        (NotPermitted, Unreachable)
    ):  # the second when the server hangs up before the client has read why
        await connect(I.EXECUTOR, BusSettings(url=guarded.url, seed_file=str(stranger)), timeout_s=2)


async def test_a_refusal_ends_a_service_that_was_given_the_wrong_identity(guarded: Guarded) -> None:
    bus = await connect(I.PLANNER, guarded.settings(I.PLANNER))
    try:
        await bus.client.publish("request.any", b"{}")
        with pytest.raises(NotPermitted, match=r"request\.any"):
            await asyncio.wait_for(asyncio.shield(bus.fatal), 20)
    finally:
        await bus.close()


async def test_without_the_guest_nobody_comes_in_unnamed(tmp_path: Path) -> None:
    credentials = write_credentials(tmp_path / "credentials", ("sim-1",), Server(guest=False))
    async with nats_server(tmp_path / "server", config=credentials.authorization) as server:
        with pytest.raises((NotPermitted, Unreachable)):
            await connect(I.GUEST, BusSettings(url=server.url), timeout_s=2)
