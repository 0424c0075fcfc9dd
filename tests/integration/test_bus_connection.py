"""The connection on a real server: what becomes of rights, sizes and silence."""

import asyncio
import time

import pytest
from integration.bus_rig import connected, provisioned, slot, until
from integration.conftest import Nats, RunNats

from apex_bus.connection import MAX_PUBLISH_BYTES, Bus, connect
from apex_bus.errors import LogUnavailable, NotPermitted, Transient, Unreachable
from apex_bus.settings import BusSettings
from apex_schemas.errors import TooLarge
from apex_schemas.subjects import Identity

LIMITED = """
authorization {
  users: [
    {user: all, password: a},
    {user: few, password: f, permissions: {publish: ["task.*.*.*.scene"], subscribe: ["_INBOX_executor.>"]}}
  ]
}
"""


@pytest.mark.parametrize("what", ["publish", "read", "subscribe"])
async def test_right_that_is_missing_is_fatal_and_named(run_nats: RunNats, what: str) -> None:
    server = await run_nats(config=LIMITED)
    async with connected(server.url.replace("nats://", "nats://few:f@")) as bus:
        match what:
            case "publish":
                await bus.client.publish("task.a.b.0.planned", b"x")
            case "read":
                with pytest.raises(LogUnavailable):
                    await bus.get("TASKS", "task.a.b.0.planned", timeout_s=0.3)
            case _:
                await bus.client.subscribe("decision.>")
        with pytest.raises(NotPermitted, match=r"identity executor is not permitted: (publish|subscription) \S+;"):
            await asyncio.wait_for(asyncio.shield(bus.fatal), 20)


async def test_connection_that_is_closed_for_good_is_fatal(nats_server: Nats) -> None:
    async with connected(nats_server.url) as bus:
        await bus.client.close()
        with pytest.raises(LogUnavailable, match="closed for good"):
            await asyncio.wait_for(asyncio.shield(bus.fatal), 20)


async def test_server_that_is_killed_and_started_again_is_nothing_fatal(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        woken: list[float] = []
        bus.on_reconnect(lambda: woken.append(time.monotonic()))
        await nats_server.kill()
        await nats_server.start()
        await until(lambda: bool(woken), "whoever waits for the connection is told")
        assert bus.connected
        assert not bus.fatal.done()
        assert await bus.publish(slot("scene", 0).subject, b"x") == 1


@pytest.mark.parametrize("url", ["nats://lab:s3cret@127.0.0.1:1", "nats://127.0.0.1:1", "127.0.0.1:1"])
async def test_server_that_does_not_answer_is_unreachable_in_time_and_shows_no_password(url: str) -> None:
    began = time.monotonic()
    with pytest.raises(Unreachable, match=r"no NATS server answers at nats://127\.0\.0\.1:1 ") as unreachable:
        await connect(Identity.CLIENT, BusSettings(url=url), timeout_s=0.5)
    assert time.monotonic() - began < 20
    assert "s3cret" not in str(unreachable.value)


async def test_key_that_the_server_does_not_know_is_not_permitted(run_nats: RunNats) -> None:
    server = await run_nats(config=LIMITED)
    with pytest.raises(NotPermitted, match="does not accept its key"):
        await connect(Identity.EXECUTOR, BusSettings(url=server.url), timeout_s=20)


async def test_message_that_is_too_large_is_refused_here_and_the_connection_lives(run_nats: RunNats) -> None:
    server = await run_nats(config="max_payload: 1MB")
    async with provisioned(server.url) as bus:
        for size in (MAX_PUBLISH_BYTES + 1, 2**20 + 1, 2**20):
            with pytest.raises(TooLarge):
                await bus.publish(slot("scene", 0).subject, bytes(size))
        assert await bus.publish(slot("scene", 0).subject, bytes(2**20 - 20_000), headers={"A": "b" * 9_000}) == 1


async def test_largest_message_that_is_allowed_is_stored_and_read_back(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        subject = slot("scene", 0).subject
        await bus.publish(subject, bytes(MAX_PUBLISH_BYTES), headers={"A": "b" * 9_000})
        stored = await bus.get("TASKS", subject)
        assert stored is not None
        assert len(stored.data) == MAX_PUBLISH_BYTES


async def test_subject_that_nobody_serves_is_transient_and_said_at_once(nats_server: Nats) -> None:
    async with connected(nats_server.url) as bus:
        began = time.monotonic()
        with pytest.raises(Transient, match=r"nobody serves query\.nobody"):
            await bus.request("query.nobody", b"", timeout_s=60)
        with pytest.raises(LogUnavailable):
            await bus.publish("task.no.stream.here", b"x")
        assert not await bus.ping("nobody", timeout_s=60)
        assert time.monotonic() - began < 30


async def test_connection_that_is_given_up_while_it_is_made_leaves_nothing_behind(nats_server: Nats) -> None:
    before = asyncio.all_tasks()
    for n in range(30):
        connecting = asyncio.create_task(connect(Identity.CLIENT, BusSettings(url=nats_server.url)))
        for _ in range(n):
            await asyncio.sleep(0)
        connecting.cancel()
        [made] = await asyncio.gather(connecting, return_exceptions=True)
        if isinstance(made, Bus):  # it was made before it was given up
            await made.close()
        else:
            assert isinstance(made, asyncio.CancelledError)
    await until(lambda: asyncio.all_tasks() <= before, "its tasks have ended")
