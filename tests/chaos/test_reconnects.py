"""A connection that breaks while somebody is being answered: the right to answer goes with it, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest
from chaos.conftest import Secured

from apex_bus import micro
from apex_bus.connection import Bus, flushed
from apex_planner.clients.cloud_proxy import CloudProxyClient
from apex_planner.endpoint import DecisionEndpoint
from apex_schemas.decision import DecisionReply, DecisionRequest, ToolCallDecision
from apex_schemas.ids import new_task_id
from apex_schemas.steps import DecisionKey
from apex_schemas.subjects import PLANNER_DECISION, QUERY_DEVICES, Identity

REQUEST = DecisionRequest(
    key=DecisionKey(task=new_task_id(), turn=0, call=0), system_prompt="s", user_blocks=("u",), tools=()
)


class Slow:
    """A client whose first answer waits until it is let go."""

    def __init__(self) -> None:
        self.asked, self.go = 0, asyncio.Event()
        self.waiting = asyncio.Event()

    async def decide(self, request: DecisionRequest) -> DecisionReply:
        self.asked += 1
        self.waiting.set()
        await self.go.wait()
        return ToolCallDecision(tool="finish_task", arguments={})


async def up(bus: Bus, service: str) -> None:
    async with asyncio.timeout(30):
        while not await bus.ping(service, timeout_s=0.5):
            pass


async def again(bus: Bus) -> None:
    async with asyncio.timeout(30):
        while not bus.connected:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("how", ["kill", "restart"])
async def test_endpoint_that_answers_over_a_new_connection_goes_on_and_the_planner_asks_again(
    secured: Secured, how: str
) -> None:
    slow = Slow()
    endpoint = DecisionEndpoint(slow)
    async with secured.bus(Identity.ENDPOINT) as serving, secured.bus(Identity.PLANNER) as asking:
        answering = asyncio.create_task(
            micro.serve(serving, "planner-decision", micro.Endpoint("decide", PLANNER_DECISION, stream=endpoint.answer))
        )
        await up(asking, "planner-decision")
        decision = asyncio.create_task(CloudProxyClient(asking).decide(REQUEST))
        async with asyncio.timeout(20):
            await slow.waiting.wait()
        await (secured.server.kill() if how == "kill" else secured.server.stop())
        await secured.server.start()
        await again(serving)
        await again(asking)
        slow.go.set()
        async with asyncio.timeout(10):  # far below the silence after which a dead endpoint is given up
            assert isinstance(await decision, ToolCallDecision)
        assert slow.asked >= 2
        await flushed(serving.client)
        assert not serving.fatal.done(), "a service ended for an answer that nobody waits for"
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)


@pytest.mark.parametrize(
    ("identity", "subject"),
    [(Identity.EXECUTOR, QUERY_DEVICES), (Identity.DECISION_LOG, "query.tasks"), (Identity.EXECUTOR, "session.sim-1")],
)
async def test_answer_over_a_new_connection_ends_no_service(secured: Secured, identity: Identity, subject: str) -> None:
    go = asyncio.Event()
    waiting = asyncio.Event()

    async def stream(_: bytes, __: Mapping[str, str]) -> AsyncIterator[bytes]:
        waiting.set()
        await go.wait()
        yield b"late"

    client = Identity.PERCEPTION if subject.startswith("session") else Identity.CLIENT
    async with secured.bus(identity) as serving, secured.bus(client) as asking:
        answering = asyncio.create_task(micro.serve(serving, identity, micro.Endpoint("it", subject, stream=stream)))
        async with asyncio.timeout(10):
            while not waiting.is_set():
                await asking.client.publish(subject, b"?", reply=asking.client.new_inbox())
                await asyncio.sleep(0.05)
        await secured.server.restart()
        await again(serving)
        go.set()
        await asyncio.sleep(0)
        await flushed(serving.client)  # the refusal has come by now
        assert not serving.fatal.done()
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)


async def test_publishing_what_one_may_not_still_ends_the_service(secured: Secured) -> None:
    async with secured.bus(Identity.PERCEPTION) as bus:
        await bus.client.publish("decision.t.0.0", b"")
        async with asyncio.timeout(20):
            with pytest.raises(Exception, match="not permitted"):
                await bus.fatal
