"""Micro services on a real server: who answers, what becomes of a failure, and what is left after a cancellation."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

import pytest
from integration.bus_rig import connected, running, until, until_answered
from integration.conftest import Nats

from apex_bus.connection import Bus
from apex_bus.errors import Transient
from apex_bus.micro import Endpoint, serve
from apex_schemas.subjects import Identity


async def echo(data: bytes, _: Mapping[str, str]) -> bytes:
    return data


async def up(bus: Bus, service: str = "lab") -> None:
    async def answers() -> bool:
        return await bus.ping(service, timeout_s=0.2)

    await until_answered(answers, f"{service} answers")


async def down(bus: Bus, service: str = "lab") -> None:
    async def silent() -> bool:
        return not await bus.ping(service, timeout_s=0.2)

    await until_answered(silent, f"{service} is silent")


async def ask_all(bus: Bus, subject: str, *, wanted: int) -> list[bytes]:
    inbox = bus.client.new_inbox()
    answers: asyncio.Queue[bytes] = asyncio.Queue()

    async def note(msg: object) -> None:
        answers.put_nowait(msg.data)  # type: ignore[attr-defined]

    subscription = await bus.client.subscribe(inbox, cb=note)
    await bus.client.publish(subject, b"?", reply=inbox)
    found = [await asyncio.wait_for(answers.get(), 20) for _ in range(wanted)]
    await bus.request("query.last", b"", timeout_s=20)  # whatever else was to come has come before this answer
    assert answers.empty(), "nobody else answered"
    await subscription.unsubscribe()
    return found


async def test_request_is_answered_by_one_instance_or_by_each_as_its_endpoint_says(nats_server: Nats) -> None:
    async with connected(nats_server.url) as first, connected(nats_server.url) as second:

        def loops(bus: Bus, name: bytes) -> object:
            async def answer(_: bytes, __: Mapping[str, str]) -> bytes:
                return name

            one = Endpoint("one", "query.one", answer=answer)
            each = Endpoint("each", "query.each", answer=answer, each=True)
            return serve(bus, f"lab-{name.decode()}", one, each, Endpoint("last", "query.last", answer=echo))

        async with running(loops(first, b"a"), loops(second, b"b")), connected(nats_server.url) as asking:
            await up(asking, "lab-a")
            await up(asking, "lab-b")
            assert sorted(await ask_all(asking, "query.each", wanted=2)) == [b"a", b"b"]
            assert len(await ask_all(asking, "query.one", wanted=1)) == 1


async def test_stream_endpoint_sends_every_part_in_order_to_the_one_who_asked(nats_server: Nats) -> None:
    async def parts(data: bytes, _: Mapping[str, str]) -> AsyncIterator[bytes]:
        for n in range(5):
            yield data + bytes([n])

    async with connected(nats_server.url) as bus, connected(nats_server.url) as asking:
        last = Endpoint("last", "query.last", answer=echo)
        async with running(serve(bus, "lab", Endpoint("parts", "query.parts", stream=parts), last)):
            await up(asking)
            assert await ask_all(asking, "query.parts", wanted=5) == [b"?" + bytes([n]) for n in range(5)]


async def test_requests_are_handled_side_by_side(nats_server: Nats) -> None:
    both = asyncio.Barrier(2)

    async def meet(data: bytes, _: Mapping[str, str]) -> bytes:
        await both.wait()
        return data

    async with (
        connected(nats_server.url) as bus,
        connected(nats_server.url) as asking,
        running(serve(bus, "lab", Endpoint("meet", "query.meet", answer=meet))),
    ):
        await up(asking)
        asked = (asking.request("query.meet", each, timeout_s=20) for each in (b"a", b"b"))
        assert await asyncio.gather(*asked) == [b"a", b"b"]


async def test_failure_of_an_endpoint_reaches_the_one_who_asked_without_its_text_and_ends_nothing(
    nats_server: Nats,
) -> None:
    async def fail(data: bytes, _: Mapping[str, str]) -> bytes:
        raise ValueError("a secret")

    async with (
        connected(nats_server.url) as bus,
        connected(nats_server.url) as asking,
        running(serve(bus, "lab", Endpoint("fail", "query.fail", answer=fail))) as loops,
    ):
        await up(asking)
        for _ in range(2):
            with pytest.raises(Transient, match="fail failed, by a fault of the program") as failure:
                await asking.request("query.fail", b"", timeout_s=20)
            assert "a secret" not in str(failure.value)
        assert not loops[0].done()


@pytest.mark.parametrize("payload", [b"", b"\x00\xff" * 100, b"x" * 1_000_000], ids=["nothing", "noise", "much"])
async def test_message_without_a_reply_subject_ends_nothing(nats_server: Nats, payload: bytes) -> None:
    """Whoever may ask may also just publish: the process must not end of it."""

    async def fail(data: bytes, _: Mapping[str, str]) -> bytes:
        raise ValueError

    async with connected(nats_server.url) as bus, connected(nats_server.url, Identity.GUEST) as anybody:
        echoing = Endpoint("echo", "query.echo", answer=echo)
        async with running(serve(bus, "lab", echoing, Endpoint("fail", "query.fail", answer=fail))) as loops:
            await up(anybody)
            for subject in ("query.echo", "query.fail", "$SRV.PING.lab"):
                await anybody.client.publish(subject, payload)
            assert await anybody.request("query.echo", b"still there", timeout_s=20) == b"still there"
            assert not loops[0].done()


async def test_service_that_is_cancelled_answers_no_more_and_its_connection_lives(nats_server: Nats) -> None:
    async with connected(nats_server.url) as bus, connected(nats_server.url) as asking:
        for _ in range(3):
            async with running(serve(bus, "lab", Endpoint("echo", "query.echo", answer=echo))):
                await up(asking)
                assert await asking.request("query.echo", b"x", timeout_s=20) == b"x"
            await down(asking)
            with pytest.raises(Transient, match="nobody serves"):
                await asking.request("query.echo", b"x", timeout_s=20)


async def test_service_that_is_cancelled_at_any_moment_of_its_start_or_end_breaks_no_connection(
    nats_server: Nats,
) -> None:
    async with connected(nats_server.url) as bus, connected(nats_server.url) as asking:
        for n in range(40):
            serving = asyncio.create_task(serve(bus, "lab", Endpoint("echo", "query.echo", answer=echo)))
            for _ in range(n):
                await asyncio.sleep(0)
            serving.cancel()
            for _ in range(n % 5):
                await asyncio.sleep(0)
            serving.cancel()  # a second one, while it tidies up
            await asyncio.wait({serving}, timeout=20)
            assert serving.cancelled()
        assert await bus.api("INFO", timeout_s=20), "the connection still hears its answers"
        await down(asking)


async def test_service_that_is_cancelled_while_the_server_is_away_does_not_answer_when_it_is_back(
    nats_server: Nats,
) -> None:
    async with connected(nats_server.url) as bus, connected(nats_server.url) as asking:
        async with running(serve(bus, "lab")):
            await up(asking)
            await nats_server.kill()
        await nats_server.start()
        await until(lambda: bus.connected and asking.connected, "both are connected again")
        await down(asking)


async def test_service_answers_again_after_the_server_was_killed_and_started(nats_server: Nats) -> None:
    async with (
        connected(nats_server.url) as bus,
        connected(nats_server.url) as asking,
        running(serve(bus, "lab", Endpoint("echo", "query.echo", answer=echo))),
    ):
        await up(asking)
        await nats_server.kill()
        await nats_server.start()
        await up(asking)
        assert await asking.request("query.echo", b"x", timeout_s=20) == b"x"
        stats = json.loads(await asking.request("$SRV.STATS.lab", b"", timeout_s=20))
        assert stats["endpoints"][0]["num_requests"] == 1
