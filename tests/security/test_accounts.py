"""Outside identities live in accounts of their own: the server carries an answer back to who asked, and nowhere else.

Within one account the server itself writes its acknowledgement to the reply subject that a publisher picks, whatever
the publisher's rights: so a client could fill slots and records. Each test here failed on that form.
"""

import asyncio
import json

import nats
import nats.errors
import pytest
from security.conftest import Guarded

from apex_bus import micro
from apex_bus.connection import Bus, connect, flushed
from apex_schemas.subjects import Identity

I = Identity  # noqa: E741
TASK = "b7ad6b7169203331b7ad6b7169203331"
GET = "$JS.API.DIRECT.GET.TASKS"
ENDED = f"task.sim-1.{TASK}.end.finished"
OUTSIDE = (I.GUEST, I.CLIENT, I.OPERATOR)

TARGETS = [
    ("TASKS", f"task.sim-1.{TASK}.0.started"),
    ("TASKS", f"task.sim-1.{TASK}.3.planned"),
    ("TASKS", f"task.none.{TASK}.end.finished"),
    ("DEVICES", "device.sim-2"),
    ("CLAIMS", f"claim.{TASK}.3"),
    ("DECISIONS", f"decision.{TASK}.3.0"),
    ("SHOTS", f"shot.{TASK}.3.a"),
    ("DEAD", "dead.executor"),
]
READERS = {
    "TASKS": I.EXECUTOR,
    "DEVICES": I.EXECUTOR,
    "CLAIMS": I.PLANNER,
    "DECISIONS": I.PLANNER,
    "SHOTS": I.PLANNER,
    "REQUESTS": I.EXECUTOR,
}


async def bus_of(guarded: Guarded, identity: Identity) -> Bus:
    return await connect(identity, guarded.settings(identity))


async def stored(guarded: Guarded, stream: str, subject: str) -> bytes | None:
    bus = await bus_of(guarded, READERS.get(stream, I.OPERATOR))
    try:
        message = await bus.get(stream, subject)
    finally:
        await bus.close()
    return None if message is None else message.data


@pytest.mark.parametrize("identity", OUTSIDE)
@pytest.mark.parametrize(("stream", "subject"), TARGETS)
async def test_an_acknowledgement_is_not_stored_where_the_asker_may_not_write(
    guarded: Guarded, identity: Identity, stream: str, subject: str
) -> None:
    before = await stored(guarded, stream, subject)
    async with guarded.client(identity) as (client, _):
        asked = {"request.any", f"cancel.{TASK}", f"{GET}.task.*.{TASK}.end.finished", "$SRV.PING.executor"}
        for each in asked:
            await client.publish(each, b"forged", reply=subject)
        answer = await client.request("request.any", b"afterwards", timeout=20)
    assert json.loads(answer.data)["stream"] == "REQUESTS"  # so what came before has been stored, and answered
    assert await stored(guarded, stream, subject) == before


async def test_a_client_cannot_approve_by_way_of_an_answer(guarded: Guarded) -> None:
    subject = f"approve.{TASK}.3"
    async with guarded.client(I.CLIENT) as (client, _):
        await client.publish("request.any", b"forged", reply=subject)
        await client.request("request.any", b"afterwards", timeout=20)
    assert await stored(guarded, "REQUESTS", subject) is None


@pytest.mark.parametrize("subject", [f"task.sim-1.{TASK}.4.planned", "device.sim-2", f"approve.{TASK}.4"])
async def test_a_message_with_a_trace_destination_writes_nothing_there(guarded: Guarded, subject: str) -> None:
    async with guarded.client(I.GUEST) as (guest, _):
        await guest.publish("request.any", b"traced", headers={"Nats-Trace-Dest": subject})
        await guest.request("request.any", b"afterwards", timeout=20)
    assert await stored(guarded, {"t": "TASKS", "d": "DEVICES", "a": "REQUESTS"}[subject[0]], subject) is None


async def test_a_bare_client_is_told_that_its_request_was_stored(guarded: Guarded) -> None:
    client = await nats.connect(guarded.url)
    try:
        answer = json.loads((await client.request("request.any", b'{"goal":"x"}', timeout=20)).data)
        assert (answer["stream"], answer["seq"] > 0) == ("REQUESTS", True)
        with pytest.raises(nats.errors.NoRespondersError):  # at once, and not after the time-out
            await client.request("query.timeline", b"{}", timeout=30)
    finally:
        await client.close()


async def test_a_guest_follows_a_task_and_reads_its_end(guarded: Guarded) -> None:
    executor = await bus_of(guarded, I.EXECUTOR)
    try:
        async with guarded.client(I.GUEST) as (guest, refusals):
            live = await guest.subscribe(f"task.*.{TASK}.end.finished")
            await flushed(guest)
            await executor.publish(ENDED, b"the end")
            assert (await live.next_msg(timeout=20)).subject == ENDED
            read = await guest.request(f"{GET}.task.*.{TASK}.end.finished", b"", timeout=20)
        assert read.data == b"the end"
        assert refusals == []
    finally:
        await executor.close()


async def test_every_instance_answers_a_client_over_the_border(guarded: Guarded) -> None:
    buses = [await bus_of(guarded, I.EXECUTOR) for _ in range(3)]

    async def answer(data: bytes, _: object) -> bytes:
        return data

    endpoint = micro.Endpoint("devices", "query.devices", answer=answer, each=True)
    serving = [asyncio.create_task(micro.serve(bus, "executor", endpoint)) for bus in buses]
    try:
        async with guarded.client(I.GUEST) as (guest, _):
            for subject in ("query.devices", "$SRV.PING.executor", "$SRV.INFO"):
                await _answers(guest, subject, 3)
        assert not any(bus.fatal.done() for bus in buses)
    finally:
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        for bus in buses:
            await bus.close()


async def _answers(client: nats.NATS, subject: str, wanted: int) -> None:
    """Ask until so many answered one question: services come up one by one."""
    async with asyncio.timeout(30):
        while True:
            inbox = client.new_inbox()
            answers = await client.subscribe(inbox)
            await client.publish(subject, b"?", reply=inbox)
            try:
                for _ in range(wanted):
                    await answers.next_msg(timeout=0.5)
                return
            except nats.errors.TimeoutError:
                await answers.unsubscribe()


@pytest.mark.parametrize("other", [I.CLIENT, I.OPERATOR])
async def test_a_guest_does_not_hear_the_answers_of_named_clients(guarded: Guarded, other: Identity) -> None:
    """All NATS clients take `_INBOX` for their answers unless told otherwise."""
    seed = guarded.credentials.seeds[other].read_text().strip()
    asking = await nats.connect(guarded.url, nkeys_seed_str=seed)
    async with guarded.client(I.GUEST) as (guest, refusals):
        listening = await guest.subscribe("_INBOX.>")
        await flushed(guest)
        await asking.request("request.any", b"{}", timeout=20)
        await guest.publish("_INBOX.mine", b"own")
        await asking.close()
        await flushed(guest)
        with pytest.raises(nats.errors.TimeoutError):
            await listening.next_msg(timeout=0.3)
    assert "_inbox.mine" in " ".join(refusals)
