"""How a provider is asked, and what its errors come to: the real SDKs against the scripted model server, over both
transports."""

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio
from integration.containers import nats_container
from planner_lab import KEY, ModelServer, Transport, bus_of, client_over, model_server
from planner_rows import chat, message, text, use
from planner_world import event, network, world

from apex_bus.provision import provision
from apex_lab.embedded.nats import nats_server as embedded_nats
from apex_planner.clients.exchange import Exchange
from apex_planner.clients.protocol import ToolCallingClient
from apex_planner.decide import Correction, corrective, first_request
from apex_schemas.decision import DecisionFault, DecisionReply, DecisionRequest, Picture, ToolCallDecision
from apex_schemas.geometry import Size
from apex_schemas.ids import new_task_id
from apex_schemas.subjects import Identity

pytestmark = pytest.mark.asyncio(loop_scope="module")
APIS = ("anthropic", "chat", "responses")
TRANSPORTS: tuple[Transport, ...] = ("direct", "cloud-proxy")


class Opened:
    """The client of a test, over the transport that it runs with. A new one takes the place of the one before."""

    def __init__(self, transport: Transport, nats_url: str) -> None:
        self._transport, self._nats_url = transport, nats_url
        self._stack = AsyncExitStack()

    async def client(self, environ: dict[str, str], *, transport: Transport | None = None) -> ToolCallingClient:
        await self.close()
        opening = client_over(transport or self._transport, environ, self._nats_url)
        return await self._stack.enter_async_context(opening)

    async def close(self) -> None:
        await self._stack.aclose()


OPENED: list[Opened] = []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nats_url(in_containers: bool, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str]:
    async with AsyncExitStack() as stack:
        folder = tmp_path_factory.mktemp("nats")
        server = await stack.enter_async_context(nats_container(None) if in_containers else embedded_nats(folder))
        async with bus_of(Identity.PROVISIONER, server.url) as bus:
            await provision(bus, ("pixel",), store_mib=512)
        yield server.url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_model() -> AsyncGenerator[ModelServer]:
    async with model_server() as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module", params=TRANSPORTS)
async def model(
    request: pytest.FixtureRequest, shared_model: ModelServer, nats_url: str
) -> AsyncGenerator[ModelServer]:
    """Every test of this file runs over both transports."""
    await shared_model.reset()
    OPENED.append(Opened(request.param, nats_url))
    yield shared_model
    await OPENED.pop().close()


async def client(model: ModelServer, api: str = "anthropic", **more: str) -> ToolCallingClient:
    return await OPENED[-1].client(model.environ(api, **more))


async def direct(model: ModelServer, api: str = "anthropic", **more: str) -> Exchange:
    """The provider's own client, for what only it tells: the raw answer."""
    found = await OPENED[-1].client(model.environ(api, **more), transport="direct")
    assert isinstance(found, Exchange)
    return found


def question(*events: Any, picture: Picture | None = None) -> DecisionRequest:
    request = first_request(network(), world(*events), picture, task=new_task_id())
    assert isinstance(request, DecisionRequest)
    return request


def again(request: DecisionRequest, code: str = "no_tool_call", *, more_room: bool = False) -> DecisionRequest:
    return corrective(request, Correction(code=code, fault="f.", more_room=more_room))


async def bodies(model: ModelServer) -> list[dict[str, Any]]:
    return [call["body"] for call in await model.calls()]


async def one_body(model: ModelServer, *events: Any, api: str = "anthropic", **more: str) -> dict[str, Any]:
    reply = await (await client(model, api, **more)).decide(question(*events))
    assert isinstance(reply, ToolCallDecision), reply
    return (await bodies(model))[-1]


def fault(reply: DecisionReply) -> DecisionFault:
    assert isinstance(reply, DecisionFault)
    assert KEY not in reply.message
    return reply


# Rows 1 to 6: asking


async def test_the_choice_is_free_and_one_call_is_asked_for(model: ModelServer) -> None:
    assert (await one_body(model))["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    for api in ("chat", "responses"):
        body = await one_body(model, api=api)
        assert (body["tool_choice"], body["parallel_tool_calls"]) == ("auto", False)


@pytest.mark.parametrize(
    ("name", "choice"), [("scripted-old", "any"), ("scripted-current", "auto"), ("scripted-newest", "auto")]
)
async def test_the_corrective_call_is_forced_where_the_model_takes_it(
    model: ModelServer, name: str, choice: str
) -> None:
    reply = await (await client(model, MODEL=name)).decide(again(question()))
    assert isinstance(reply, ToolCallDecision)
    assert (await bodies(model))[-1]["tool_choice"]["type"] == choice


async def test_a_forced_choice_can_be_had_by_setting(model: ModelServer) -> None:
    assert (await one_body(model, TOOL_CHOICE="forced"))["tool_choice"]["type"] == "any"
    assert (await one_body(model, api="chat", TOOL_CHOICE="forced"))["tool_choice"] == "required"


@pytest.mark.parametrize(
    ("name", "thinking"),
    [
        ("scripted-old", {"type": "enabled", "budget_tokens": 2000}),
        ("scripted-current", {"type": "adaptive", "display": "summarized"}),
        ("scripted-newest", {"type": "adaptive", "display": "summarized"}),
    ],
)
async def test_thinking_is_asked_for_in_the_form_that_the_model_takes(
    model: ModelServer, name: str, thinking: dict[str, Any]
) -> None:
    asking = await client(model, MODEL=name, THINKING_BUDGET_TOKENS="2000", MAX_TOKENS="1000")
    for _ in range(2):
        reply = await asking.decide(question())
        assert isinstance(reply, ToolCallDecision)
        assert reply.thinking
    calls = await model.calls()
    assert calls[-1]["body"]["thinking"] == thinking
    assert calls[-1]["body"]["max_tokens"] == 3000
    betas = calls[-1]["headers"].get("anthropic-beta", "")
    assert ("interleaved-thinking" in betas) == (thinking["type"] == "enabled")
    assert len(await model.calls("GET")) == 1  # asked once and kept


async def test_without_a_budget_nothing_is_asked_for_and_thinking_that_comes_unasked_is_kept(
    model: ModelServer,
) -> None:
    reply = await (await client(model, MODEL="scripted-current")).decide(question())
    assert isinstance(reply, ToolCallDecision)
    assert reply.thinking
    assert "thinking" not in (await bodies(model))[-1]
    assert await model.calls("GET") == []


async def test_a_form_of_thinking_that_is_refused_is_changed_once_when_the_model_is_not_described(
    model: ModelServer,
) -> None:
    asking = await client(model, MODEL="scripted-newest", THINKING_BUDGET_TOKENS="2000")
    await model.order({"status": 404, "body": {"type": "error"}, "path": "/v1/models"})
    for _ in range(2):
        assert isinstance(await asking.decide(question()), ToolCallDecision)
    kinds = [body["thinking"]["type"] for body in await bodies(model)]
    assert kinds == ["enabled", "adaptive", "adaptive"]


async def test_a_server_that_refuses_every_form_of_thinking_is_asked_twice_and_no_more(model: ModelServer) -> None:
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "thinking is not supported"}}
    await model.order({"status": 404, "body": {}, "path": "/v1/models"}, {"status": 400, "body": refusal, "times": 3})
    reply = fault(await (await client(model, THINKING_BUDGET_TOKENS="2000")).decide(question()))
    assert (reply.code, len(await model.calls())) == ("configuration", 2)


async def test_a_budget_means_nothing_to_openai_and_that_is_said_once(
    model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        body = await one_body(model, api="responses", THINKING_BUDGET_TOKENS="2000")
    assert "reasoning" not in body
    assert caplog.text.count("AI_PLANNER_THINKING_BUDGET_TOKENS") == 1


async def test_more_than_the_sdk_allows_without_streaming_can_be_asked_for(model: ModelServer) -> None:
    assert (await one_body(model, MAX_TOKENS="30000"))["max_tokens"] == 30000


async def test_nothing_is_taken_from_the_environment_but_by_our_settings(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "sk-of-somebody-else")
    for api in APIS:
        assert await one_body(model, api=api)


async def test_responses_are_not_stored_and_their_schemas_not_rewritten(model: ModelServer) -> None:
    body = await one_body(model, api="responses")
    assert body["store"] is False
    assert all(tool["strict"] is False for tool in body["tools"])
    assert "reasoning" not in body


async def test_an_effort_brings_a_summary_of_the_reasoning(model: ModelServer) -> None:
    reply = await (await client(model, "responses", REASONING_EFFORT="low")).decide(question())
    assert isinstance(reply, ToolCallDecision)
    assert reply.thinking
    assert (await bodies(model))[-1]["reasoning"] == {"effort": "low", "summary": "auto"}


async def test_openais_own_models_are_asked_without_reasoning_on_chat_once_they_say_so(model: ModelServer) -> None:
    asking = await client(model, "chat", MODEL="scripted-gpt")
    for _ in range(2):
        assert isinstance(await asking.decide(question()), ToolCallDecision)
    assert [body.get("reasoning_effort") for body in await bodies(model)] == [None, "none", "none"]


async def test_the_cache_breakpoint_is_on_the_last_line_of_history_and_later_turns_hit_it(model: ModelServer) -> None:
    asking = await client(model)
    events = [event(rationale="r" * 220) for _ in range(20)]
    first = await asking.decide(question(*events[:18]))
    then = await asking.decide(question(*events[:19]))
    content = (await bodies(model))[-1]["messages"][0]["content"]
    assert [index for index, block in enumerate(content) if "cache_control" in block] == [len(content) - 2]
    assert "19. " in content[-2]["text"]
    assert first.usage.cache_write_tokens > 1024
    assert then.usage.cache_read_tokens > 0
    assert then.usage.input_tokens > then.usage.cache_read_tokens


async def test_an_answer_that_was_cut_off_gets_more_room_the_second_time(model: ModelServer) -> None:
    for api, limit in (
        ("anthropic", "max_tokens"),
        ("chat", "max_completion_tokens"),
        ("responses", "max_output_tokens"),
    ):
        asking = await client(model, api, MAX_TOKENS="1000")
        await asking.decide(again(question(), "truncated", more_room=True))
        assert (await bodies(model))[-1][limit] == 4000


@pytest.mark.parametrize("api", APIS)
async def test_a_picture_goes_along_and_is_in_no_record(model: ModelServer, api: str) -> None:
    picture = Picture(data=b"\x89PNG-picture", media_type="image/png", size=Size(width=4, height=4), sha256="0" * 64)
    answer = await (await direct(model, api)).ask(question(picture=picture))
    assert isinstance(answer.reply, ToolCallDecision)
    assert "image" in json.dumps((await bodies(model))[-1])
    assert "iVBOR" not in (answer.raw or "")


# Row 7: a server that knows few parameters


async def test_what_a_server_does_not_know_is_left_out_for_good_and_said_once(
    model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    asking = await client(model, "chat", MODEL="scripted-compatible-plain", REASONING_EFFORT="low")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert isinstance(await asking.decide(again(question())), ToolCallDecision)
    seen = await bodies(model)
    left_out = {"tool_choice", "parallel_tool_calls", "max_completion_tokens", "reasoning_effort"}
    assert not left_out & set(seen[-1])
    assert left_out <= set(seen[0])
    assert not left_out & set(seen[-2])
    assert caplog.text.count("refuses parallel_tool_calls") == 1


@pytest.mark.parametrize("name", ["cache_control", "disable_parallel_tool_use"])
async def test_an_anthropic_compatible_server_can_do_without(model: ModelServer, name: str) -> None:
    refusal = {"type": "error", "error": {"message": f"{name}: Extra inputs are not permitted"}}
    await model.order({"status": 400, "body": refusal})
    assert isinstance(await (await client(model)).decide(question()), ToolCallDecision)
    first, second = await bodies(model)
    assert name in json.dumps(first)
    assert name not in json.dumps(second)


# Rows 17, 20, 21: errors


@pytest.mark.parametrize(
    "error",
    [
        {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<tap e2>"},
        {"message": "Tool choice is required, but model did not call a tool", "code": "tool_use_failed"},
    ],
)
async def test_a_call_that_the_server_itself_rejected_is_the_models_fault(model: ModelServer, error: Any) -> None:
    await model.order({"status": 400, "body": {"error": error}})
    reply = fault(await (await client(model, "chat")).decide(question()))
    assert (reply.code, reply.correctable) == ("rejected_by_server", True)
    assert reply.text_output == error.get("failed_generation")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
@pytest.mark.parametrize("api", ["anthropic", "chat"])
async def test_what_passes_is_tried_again_by_the_sdk_and_then_fails_with_status_and_request_id(
    model: ModelServer, status: int, api: str
) -> None:
    said = {"error": {"message": f"busy, {KEY}"}}
    headers = {"retry-after-ms": "1"}
    await model.order({"status": status, "body": said, "headers": headers, "times": 2})
    assert isinstance(await (await client(model, api, MAX_RETRIES="2")).decide(question()), ToolCallDecision)
    await model.order({"status": status, "body": said, "headers": headers, "times": 3})
    reply = fault(await (await client(model, api, MAX_RETRIES="2")).decide(question()))
    assert (reply.code, reply.correctable) == ("unavailable", False)
    assert f"answered {status}" in reply.message
    assert "request id req_scripted_" in reply.message


@pytest.mark.parametrize("api", APIS)
async def test_a_connection_that_is_reset_fails_after_the_retries(model: ModelServer, api: str) -> None:
    await model.order({"reset": True, "times": 2})
    reply = fault(await (await client(model, api, MAX_RETRIES="1")).decide(question()))
    assert reply.code == "unavailable"
    assert "cannot be reached" in reply.message


@pytest.mark.parametrize("api", APIS)
async def test_one_deadline_covers_all_tries(model: ModelServer, api: str) -> None:
    await model.order({"delay_ms": 1500, "times": 5})
    reply = fault(await (await client(model, api, TIMEOUT_SECONDS="1", MAX_RETRIES="5")).decide(question()))
    assert reply.code == "timeout"
    assert "AI_PLANNER_TIMEOUT_SECONDS" in reply.message
    assert reply.latency_ms < 5_000  # six tries of a second each are more


@pytest.mark.parametrize(
    ("status", "error", "code", "says"),
    [
        (401, {"message": f"Incorrect API key provided: {KEY}"}, "denied", "ANTHROPIC_API_KEY"),
        (402, {"message": "Payment required"}, "denied", "credit"),
        (400, {"message": "Your credit balance is too low"}, "denied", "credit"),
        (403, {"message": "no access"}, "denied", "scripted-old"),
        (404, {"message": "model: scripted-old"}, "configuration", "AI_PLANNER_MODEL"),
        (400, {"message": "prompt is too long: 300000 tokens > 200000 maximum"}, "too_long", "larger context"),
        (413, {"message": "Request exceeds the maximum size"}, "too_long", "larger context"),
        (400, {"message": "messages: something else"}, "configuration", "something else"),
    ],
)
async def test_what_only_a_person_can_cure_fails_at_once_with_what_to_set(
    model: ModelServer, status: int, error: Any, code: str, says: str
) -> None:
    await model.order({"status": status, "body": {"type": "error", "error": error}})
    reply = fault(await (await client(model, MAX_RETRIES="3")).decide(question()))
    assert (reply.code, reply.correctable, len(await model.calls())) == (code, False, 1)
    assert says in reply.message


async def test_an_unknown_model_is_named(model: ModelServer) -> None:
    for api in APIS:
        reply = fault(await (await client(model, api, MODEL="nonesuch")).decide(question()))
        assert reply.code == "configuration"
        assert "nonesuch" in reply.message


async def test_a_record_holds_the_raw_answer_without_key_signature_or_redacted_data(model: ModelServer) -> None:
    redacted = {"type": "redacted_thinking", "data": "c2VjcmV0LWRhdGE="}
    signed = {"type": "thinking", "thinking": "t", "signature": "c2lnbmF0dXJl"}
    await model.order({"body": message(redacted, signed, text(f"my key is {KEY}"), use())})
    answer = await (await direct(model)).ask(question())
    assert answer.raw is not None
    assert all(secret not in answer.raw for secret in (KEY, "c2VjcmV0", "c2lnbmF0"))
    reply = answer.reply
    assert isinstance(reply, ToolCallDecision)
    assert KEY not in (reply.text_output or "")
    await model.order({"body": chat(content="x", tool_calls=[], hologram=1)})
    assert (await (await direct(model, "chat")).ask(question())).raw is not None
