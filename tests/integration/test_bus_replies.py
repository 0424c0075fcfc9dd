"""Whoever asks picks where the answer goes: services answer inboxes only, and lose nothing by being asked otherwise."""

import asyncio
from collections.abc import Mapping

from integration.conftest import Nats

from apex_bus import micro
from apex_bus.connection import connect
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_schemas import subjects
from apex_schemas.subjects import Identity


async def test_answer_that_is_to_go_to_a_stream_is_not_given(nats_server: Nats) -> None:
    bus = await connect(Identity.PROVISIONER, BusSettings(url=nats_server.url))
    asker = await connect(Identity.GUEST, BusSettings(url=nats_server.url))
    await provision(bus, ("sim-1",), store_mib=512)

    async def answer(data: bytes, _: Mapping[str, str]) -> bytes:
        return data

    serving = asyncio.create_task(micro.serve(bus, "planner", micro.Endpoint("echo", "query.echo", answer=answer)))
    while not await asker.ping("planner"):
        await asyncio.sleep(0.02)
    for subject in ("$SRV.PING.planner", "$SRV.INFO.planner", "$SRV.STATS.planner", "query.echo"):
        await asker.client.publish(subject, b"x", reply=subjects.device("sim-1"))
        await asker.client.publish(subject, b"x")
    assert await asker.request("query.echo", b"still there", timeout_s=20) == b"still there"
    assert await asker.ping("planner")
    assert await bus.get("DEVICES", subjects.device("sim-1")) is None
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    await asker.close()
    await bus.close()
