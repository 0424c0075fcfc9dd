"""Every seen answer of a provider, asked for by the real SDKs over HTTP, through both transports: the same suite."""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from integration.containers import nats_container
from planner_lab import ModelServer, Transport, bus_of, client_over, model_server
from planner_rows import ROWS, TAP, Row, message, text, use
from planner_world import event, network, world

from apex_bus.provision import provision
from apex_lab.embedded.nats import nats_server as embedded_nats
from apex_planner.ai_planner import AIPlanner
from apex_planner.decide import Outcome, PlanFailure
from apex_schemas.actions import Tap
from apex_schemas.ids import new_task_id
from apex_schemas.steps import PlannedStep
from apex_schemas.subjects import Identity

pytestmark = pytest.mark.asyncio(loop_scope="module")
TRANSPORTS: tuple[Transport, ...] = ("direct", "cloud-proxy")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nats_url(in_containers: bool, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str]:
    """One provisioned server for the whole table."""
    async with AsyncExitStack() as stack:
        folder: Path = tmp_path_factory.mktemp("nats")
        server = await stack.enter_async_context(nats_container(None) if in_containers else embedded_nats(folder))
        async with bus_of(Identity.PROVISIONER, server.url) as bus:
            await provision(bus, ("pixel",), store_mib=512)
        yield server.url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_model() -> AsyncGenerator[ModelServer]:
    async with model_server() as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def model(shared_model: ModelServer) -> ModelServer:
    await shared_model.reset()
    return shared_model


async def plan(transport: Transport, environ: dict[str, str], nats_url: str) -> Outcome:
    async with client_over(transport, environ, nats_url) as client:
        planner = AIPlanner(client, tool_set="extended")
        return await planner.plan(network(), world(event()), task=new_task_id())


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_an_answer_comes_to_a_step_a_retry_or_a_failure(
    row: Row, transport: Transport, model: ModelServer, nats_url: str
) -> None:
    """A usable answer is the step; for a correctable one the model is asked once more; the rest fails at once."""
    await model.answer_with(row.raw)
    outcome = await plan(transport, model.environ(row.api), nats_url)

    asked = len(await model.calls())
    if row.correctable is False:
        assert isinstance(outcome, PlanFailure)
        assert (outcome.code, asked) == (row.expect, 1)
        assert model.url in outcome.reason or row.expect != "not_a_completion"
    elif row.correctable or row.lacks_something:
        assert isinstance(outcome, PlannedStep)
        assert outcome.decision is not None
        assert (outcome.decision.call, asked) == (1, 2)
        # Where the retry forces a call, there is no text before it.
        assert outcome.rationale is None or outcome.rationale.startswith("[scripted]")
    else:
        assert isinstance(outcome, PlannedStep)
        assert (type(outcome.action), asked) == (Tap, 1)
        assert (outcome.purpose, outcome.expected_outcome) == (TAP["purpose"], TAP["expected_outcome"])
        seen = {"text_output": outcome.rationale, "thinking": outcome.thinking}
        assert {name: seen[name] for name in seen if name in row.also} == {
            name: value for name, value in row.also.items() if name in seen
        }


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_second_answer_that_cannot_be_used_is_the_end(
    transport: Transport, model: ModelServer, nats_url: str
) -> None:
    for words in ("hm", "again"):
        await model.answer_with(json.dumps(message(text(words), stop="end_turn")))
    outcome = await plan(transport, model.environ("anthropic"), nats_url)
    assert isinstance(outcome, PlanFailure)
    assert (outcome.code, len(await model.calls())) == ("no_tool_call", 2)
    assert "twice" in outcome.reason


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_retry_repeats_the_conversation_and_never_the_answer(
    transport: Transport, model: ModelServer, nats_url: str
) -> None:
    """Row 13: an id that is not on the screen; the sentence names it."""
    thinking = {"type": "thinking", "thinking": "private", "signature": "c2ln"}
    await model.answer_with(json.dumps(message(thinking, text("said"), use({**TAP, "element": "e99"}))))
    await plan(transport, model.environ("anthropic"), nats_url)
    first, second = [call["body"]["messages"] for call in await model.calls()]
    assert [each["role"] for each in second] == ["user"]
    assert second[0]["content"][:-1] == first[0]["content"]
    assert "there is no element 'e99'" in second[0]["content"][-1]["text"]
    assert "private" not in json.dumps(second)
