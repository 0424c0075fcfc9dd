"""A provider call is paid once: records, claims, the endpoint that dies, and the answer that was lost."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from integration.conftest import Nats
from msgspec import structs
from planner_lab import background, bus_of
from planner_world import TASK, call, network, world

from apex_bus.connection import Bus
from apex_bus.micro import Endpoint, serve
from apex_bus.provision import provision
from apex_bus.records import Record
from apex_planner.clients.cloud_proxy import CloudProxyClient
from apex_planner.clients.protocol import Answer
from apex_planner.decide import first_request
from apex_planner.endpoint import SERVICE, DecisionEndpoint
from apex_planner.errors import EndpointAway
from apex_planner.ledger import BusLedger
from apex_planner.recorded import RecordedClient
from apex_schemas import envelope, subjects
from apex_schemas.decision import DecisionFault, DecisionRecord, DecisionReply, DecisionRequest
from apex_schemas.subjects import PLANNER_DECISION, Identity

REPLY = call("tap", element="e2")


class Provider:
    """Counts its calls; waits until it is let go."""

    def __init__(self, reply: DecisionReply = REPLY) -> None:
        self.reply, self.calls = reply, 0
        self.called, self.let_go = asyncio.Event(), asyncio.Event()
        self.let_go.set()

    async def decide(self, request: DecisionRequest) -> DecisionReply:
        return (await self.ask(request)).reply

    async def ask(self, request: DecisionRequest) -> Answer:
        self.calls += 1
        self.called.set()
        await self.let_go.wait()
        return Answer(self.reply, '{"raw": 1}')


@pytest.fixture
async def bus(nats_server: Nats) -> AsyncGenerator[Bus]:
    async with bus_of(Identity.ENDPOINT, nats_server.url) as made:
        await provision(made, ("pixel",), store_mib=512)
        yield made


@pytest.fixture
async def other(nats_server: Nats, bus: Bus) -> AsyncGenerator[Bus]:
    async with bus_of(Identity.ENDPOINT, nats_server.url) as made:
        yield made


def question() -> DecisionRequest:
    request = first_request(network(), world(), None, task=TASK)
    assert isinstance(request, DecisionRequest)
    return request


def client(bus: Bus, provider: Provider, *, claim_s: float = 15, concurrency: int = 4) -> RecordedClient:
    return RecordedClient(provider, BusLedger(bus, claim_s=claim_s), concurrency=concurrency, wait_s=0.02)


async def test_answer_too_large_for_a_record_is_a_fault_on_record_and_is_paid_for_once(bus: Bus) -> None:
    provider = Provider(structs.replace(REPLY, thinking="t" * 7_000_000))
    for _ in range(2):
        fault = await client(bus, provider).decide(question())
        assert isinstance(fault, DecisionFault)
        assert (fault.code, fault.correctable) == ("too_long", False)
        assert "7,0" in fault.message
    assert provider.calls == 1


async def test_answer_waits_for_a_full_record_without_being_paid_for_again(
    bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    config = (await bus.api("STREAM.INFO.DECISIONS"))["config"]
    small = json.dumps({**config, "max_bytes": 10}).encode()
    assert "error" not in await bus.api("STREAM.UPDATE.DECISIONS", small)
    provider = Provider()
    async with background(client(bus, provider).decide(question())) as answer:
        async with asyncio.timeout(30):
            while "waits for its record: stream DECISIONS is full" not in caplog.text:
                await asyncio.sleep(0.02)
        assert not answer.done()
        assert "error" not in await bus.api("STREAM.UPDATE.DECISIONS", json.dumps(config).encode())
        assert await asyncio.wait_for(answer, 30) == REPLY
    assert provider.calls == 1


async def test_a_call_is_recorded_with_all_that_explains_it_and_answered_from_the_record(bus: Bus) -> None:
    provider = Provider()
    assert await client(bus, provider).decide(question()) == REPLY
    assert await client(bus, provider).decide(question()) == REPLY
    assert provider.calls == 1
    stored = await bus.get("DECISIONS", subjects.decision(TASK, 0, 0))
    assert stored is not None
    record = envelope.decode(stored.data).body
    assert isinstance(record, DecisionRecord)
    assert (record.reply, record.raw_answer, record.worker) == (REPLY, '{"raw": 1}', bus.worker)
    assert record.user_prompt.startswith("Goal: turn on Wi-Fi\n")
    assert record.tools[0] == "tap"


async def test_a_failure_is_recorded_too(bus: Bus) -> None:
    denied = DecisionFault(code="denied", message="m", correctable=False)
    provider = Provider(denied)
    assert await client(bus, provider).decide(question()) == denied
    assert await client(bus, Provider()).decide(question()) == denied


async def test_of_two_that_decide_one_turn_one_pays_and_both_answer_alike(bus: Bus, other: Bus) -> None:
    provider = Provider()
    provider.let_go.clear()
    asked = [asyncio.create_task(client(each, provider).decide(question())) for each in (bus, other)]
    await provider.called.wait()
    assert not (await asyncio.wait(asked, timeout=0.2))[0]
    provider.let_go.set()
    assert await asyncio.gather(*asked) == [REPLY] * 2
    assert provider.calls == 1


async def test_one_process_that_gets_a_turn_twice_pays_once(bus: Bus) -> None:
    provider = Provider()
    one = client(bus, provider)
    assert await asyncio.gather(one.decide(question()), one.decide(question())) == [REPLY, REPLY]
    assert provider.calls == 1


async def test_a_claim_whose_holder_died_expires_and_another_pays(bus: Bus, other: Bus) -> None:
    stuck, provider = Provider(), Provider()
    stuck.let_go.clear()
    dying = asyncio.create_task(client(bus, stuck, claim_s=1).decide(question()))
    await stuck.called.wait()
    dying.cancel()
    assert await client(other, provider, claim_s=1).decide(question()) == REPLY
    assert provider.calls == 1


async def test_a_claim_is_kept_while_its_holder_lives(bus: Bus, other: Bus) -> None:
    slow, eager = Provider(), Provider()
    slow.let_go.clear()
    first = asyncio.create_task(client(bus, slow, claim_s=3).decide(question()))
    await slow.called.wait()
    second = asyncio.create_task(client(other, eager, claim_s=3).decide(question()))
    assert not (await asyncio.wait((second,), timeout=5))[0]
    slow.let_go.set()
    assert await asyncio.gather(first, second) == [REPLY, REPLY]
    assert eager.calls == 0


async def test_a_claim_whose_renewal_was_stored_without_an_answer_is_kept(bus: Bus, other: Bus) -> None:
    slow, eager = Provider(), Provider()
    slow.let_go.clear()
    first = asyncio.create_task(client(bus, slow, claim_s=3).decide(question()))
    await slow.called.wait()
    claim = Record(bus, "CLAIMS", subjects.claim(TASK, 0))
    renewed = None
    while renewed is None:  # between two renewals
        held = await claim.read()
        assert held is not None
        renewed = await claim.write(envelope.decode(held.data).body, attempt="a", last=held.sequence, ttl_s=3)
    second = asyncio.create_task(client(other, eager, claim_s=3).decide(question()))
    assert not (await asyncio.wait((second,), timeout=7))[0]
    slow.let_go.set()
    assert await asyncio.gather(first, second) == [REPLY, REPLY]
    assert eager.calls == 0


async def test_the_corrective_call_may_be_anothers_and_need_not_wait_for_the_first_claim(bus: Bus, other: Bus) -> None:
    provider = Provider()
    await client(bus, provider).decide(question())
    second = question()
    second = structs.replace(second, key=structs.replace(second.key, call=1))
    async with asyncio.timeout(12):
        await client(other, provider).decide(second)
    assert provider.calls == 2


async def test_calls_in_flight_are_bounded(bus: Bus) -> None:
    provider = Provider()
    provider.let_go.clear()
    bounded = client(bus, provider, concurrency=2)
    keys = [structs.replace(question().key, turn=turn) for turn in range(4)]
    asked = [asyncio.create_task(bounded.decide(structs.replace(question(), key=key))) for key in keys]
    async with asyncio.timeout(20):
        while provider.calls < 2:
            await asyncio.sleep(0.01)
    await asyncio.wait(asked, timeout=0.3)
    assert provider.calls == 2
    provider.let_go.set()
    await asyncio.gather(*asked)
    assert provider.calls == 4


def served(bus: Bus, provider: Any, *, progress_s: float = 10) -> Any:
    answer = DecisionEndpoint(client(bus, provider), progress_s=progress_s).answer
    return background(serve(bus, SERVICE, Endpoint("decide", PLANNER_DECISION, stream=answer)))


async def there(bus: Bus) -> None:
    async with asyncio.timeout(30):
        while not await bus.ping(SERVICE, timeout_s=0.5):
            await asyncio.sleep(0.01)


async def test_while_the_endpoint_says_that_it_waits_it_is_waited_for(bus: Bus, other: Bus) -> None:
    provider = Provider()
    provider.let_go.clear()
    async with served(bus, provider, progress_s=0.1):
        await there(other)
        asked = asyncio.create_task(CloudProxyClient(other, silence_s=2).decide(question()))
        assert not (await asyncio.wait((asked,), timeout=4))[0]
        provider.let_go.set()
        assert await asked == REPLY
    assert provider.calls == 1


async def test_without_an_endpoint_nothing_is_decided_and_nothing_failed(other: Bus) -> None:
    with pytest.raises(EndpointAway, match="nobody serves it"):
        await CloudProxyClient(other).decide(question())


async def test_an_endpoint_that_dies_before_its_answer_is_noticed_and_the_next_answers_from_the_record(
    bus: Bus, other: Bus
) -> None:
    provider = Provider()
    lost = asyncio.Event()

    async def loses_it(data: bytes, headers: Any) -> AsyncGenerator[bytes]:
        if not lost.is_set():
            lost.set()
            await client(bus, provider).decide(question())
            return
        async for part in DecisionEndpoint(client(bus, provider)).answer(data, headers):
            yield part

    async with background(serve(bus, SERVICE, Endpoint("decide", PLANNER_DECISION, stream=loses_it))):
        await there(other)
        assert await CloudProxyClient(other, silence_s=0.3).decide(question()) == REPLY
    assert provider.calls == 1


async def test_what_the_endpoint_cannot_serve_is_a_fault_with_its_reason(bus: Bus, other: Bus) -> None:
    class Broken(Provider):
        async def ask(self, request: DecisionRequest) -> Answer:
            raise RuntimeError("secret detail")

    async with served(bus, Broken()):
        await there(other)
        reply = await CloudProxyClient(other).decide(question())
    assert isinstance(reply, DecisionFault)
    assert (reply.code, reply.correctable) == ("unavailable", False)
    assert "a fault of the program" in reply.message
    assert "secret detail" not in reply.message


async def test_an_unreadable_request_is_answered_with_an_error(bus: Bus, other: Bus) -> None:
    async with served(bus, Provider()):
        await there(other)
        message = await other.client.request(PLANNER_DECISION, b"\xff", timeout=20)
    assert (message.headers or {}).get("Nats-Service-Error-Code") == "500"
