"""The scripted model server behind the real openai SDK: Responses, Chat Completions, and compatible servers."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import openai
import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from apex_lab.model import serve

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "element": {"type": "string"},
        "purpose": {"type": "string"},
        "expected_outcome": {"type": "string"},
    },
    "required": ["element", "purpose", "expected_outcome"],
    "additionalProperties": False,
}
CHAT_TOOLS: list[Any] = [{"type": "function", "function": {"name": "tap", "parameters": SCHEMA}}]
TOOLS: list[Any] = [{"type": "function", "name": "tap", "parameters": SCHEMA, "strict": True}]
PROMPT = (
    "Goal: turn on Wi-Fi\nHistory: none\n"
    '<screen app="com.android.settings" page="Network" size="1080x2400">\ne2 switch "Wi-Fi" off\n</screen>'
)
TAP = {"element": "e2", "purpose": 'Turn on "Wi-Fi".', "expected_outcome": '"Wi-Fi" is on.'}


@pytest.fixture
async def client() -> AsyncIterator[openai.AsyncOpenAI]:
    async with serve() as url, openai.AsyncOpenAI(api_key="any", base_url=f"{url}/v1", max_retries=0) as made:
        yield made


async def chat(client: openai.AsyncOpenAI, model: str = "scripted-compatible", **changed: Any) -> ChatCompletion:
    arguments: dict[str, Any] = {"messages": [{"role": "user", "content": PROMPT}], "tools": CHAT_TOOLS, **changed}
    return await client.chat.completions.create(model=model, **arguments)


async def respond(client: openai.AsyncOpenAI, **changed: Any) -> Response:
    arguments: dict[str, Any] = {"model": "scripted-gpt", "input": PROMPT, "tools": TOOLS, "store": False, **changed}
    return await client.responses.create(**arguments)


async def test_a_compatible_server_answers_with_text_reasoning_and_one_call(client: openai.AsyncOpenAI) -> None:
    completion = await chat(client, parallel_tool_calls=False, tool_choice="auto")

    choice = completion.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert (choice.message.content or "").startswith("[scripted]")
    assert (choice.message.model_extra or {})["reasoning_content"].startswith("[scripted]")
    assert choice.message.tool_calls is not None
    (call,) = choice.message.tool_calls
    assert call.type == "function"
    assert json.loads(call.function.arguments) == TAP
    assert completion.usage is not None
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens


async def test_responses_give_reasoning_text_and_call_as_items(client: openai.AsyncOpenAI) -> None:
    answer = await respond(client, reasoning={"effort": "low", "summary": "auto"})

    assert [item.type for item in answer.output] == ["reasoning", "message", "function_call"]
    assert answer.output_text.startswith("[scripted]")
    (call,) = [item for item in answer.output if item.type == "function_call"]
    assert json.loads(call.arguments) == TAP
    assert call.call_id
    assert answer.usage is not None
    assert answer.usage.output_tokens_details.reasoning_tokens > 0


async def test_reasoning_is_summarised_only_when_asked_for_and_absent_without_effort(
    client: openai.AsyncOpenAI,
) -> None:
    silent = await respond(client)
    without = await respond(client, reasoning={"effort": "none"})

    assert [item.summary for item in silent.output if item.type == "reasoning"] == [[]]
    assert [item.type for item in without.output] == ["message", "function_call"]


async def test_a_forced_choice_suppresses_the_text(client: openai.AsyncOpenAI) -> None:
    completion = await chat(client, tool_choice="required")
    answer = await respond(client, tool_choice={"type": "function", "name": "tap"}, reasoning={"effort": "none"})

    assert completion.choices[0].message.content is None
    assert [item.type for item in answer.output] == ["function_call"]


@pytest.mark.parametrize(
    ("model", "changed", "status", "code", "said"),
    [
        ("nix", {}, 404, "model_not_found", "`nix`"),
        ("scripted-gpt", {}, 400, None, "/v1/responses"),
        ("scripted-gpt", {"reasoning_effort": "none", "max_tokens": 9}, 400, "unsupported_parameter",
         "max_completion_tokens"),
        ("scripted-compatible", {"extra_body": {"nix": 1}}, 400, "unknown_parameter", "nix"),
        ("scripted-compatible", {"tools": [], "tool_choice": "auto"}, 400, None, "'tools'"),
        ("scripted-compatible", {"tool_choice": "any"}, 400, "invalid_value", "'any'"),
        ("scripted-compatible", {"tools": CHAT_TOOLS * 2}, 400, None, "unique"),
        ("scripted-compatible", {"tools": [{"type": "function", "function": {"name": "a", "parameters": {}}}]},
         400, "invalid_function_parameters", "type: \\\"object"),
        ("scripted-compatible-plain", {"parallel_tool_calls": False}, 400, "extra_forbidden", "parallel_tool_calls"),
        ("scripted-compatible-plain", {"tool_choice": "auto"}, 400, "extra_forbidden", "tool_choice"),
        ("scripted-compatible-plain", {"max_completion_tokens": 99}, 400, "extra_forbidden", "max_completion_tokens"),
    ],
)  # fmt: skip
async def test_chat_refuses_what_such_a_server_refuses(
    client: openai.AsyncOpenAI, model: str, changed: dict[str, Any], status: int, code: str | None, said: str
) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        await chat(client, model, **changed)

    assert (refused.value.status_code, refused.value.code) == (status, code)
    assert said.replace("\\", "") in refused.value.message.replace("\\", "")


@pytest.mark.parametrize(
    ("changed", "status", "said"),
    [
        ({"model": "scripted-compatible"}, 404, "does not exist"),
        ({"max_output_tokens": 15}, 400, "below minimum"),
        ({"temperature": 0.1}, 400, "'temperature' is not supported"),
        ({"reasoning": {"effort": "huge"}}, 400, "'huge'"),
        ({"previous_response_id": "resp_1"}, 400, "not found"),
        ({"extra_body": {"nix": 1}}, 400, "nix"),
        ({"tools": [{**TOOLS[0], "parameters": {**SCHEMA, "required": []}}]}, 400, "Missing 'element'"),
    ],
)
async def test_responses_refuse_what_the_real_ones_refuse(
    client: openai.AsyncOpenAI, changed: dict[str, Any], status: int, said: str
) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        await respond(client, **changed)

    assert refused.value.status_code == status
    assert said in refused.value.message


async def test_without_a_key_the_answer_is_401(client: openai.AsyncOpenAI) -> None:
    async with aiohttp.ClientSession() as session:
        for headers in ({}, {"Authorization": "Bearer "}):
            async with session.post(f"{client.base_url}chat/completions", json={}, headers=headers) as answer:
                assert answer.status == 401
                assert "API key" in (await answer.json())["error"]["message"]


async def test_the_model_on_offer_is_told_and_others_are_404(client: openai.AsyncOpenAI) -> None:
    assert "scripted" in (await client.models.retrieve("scripted-gpt")).owned_by
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("scripted-old")


async def test_a_plain_server_answers_when_nothing_is_sent_that_it_does_not_know(client: openai.AsyncOpenAI) -> None:
    assert (await chat(client, "scripted-compatible-plain", max_tokens=500)).choices[0].finish_reason == "tool_calls"


async def test_a_short_limit_cuts_the_arguments_and_says_so(client: openai.AsyncOpenAI) -> None:
    completion = await chat(client, max_completion_tokens=85)
    answer = await respond(client, max_output_tokens=45, reasoning={"effort": "none"})

    assert completion.choices[0].finish_reason == "length"
    assert (answer.status, answer.incomplete_details and answer.incomplete_details.reason) == (
        "incomplete",
        "max_output_tokens",
    )
    (call,) = completion.choices[0].message.tool_calls or ()
    assert call.type == "function"
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.function.arguments)


async def test_a_repeated_long_prompt_is_read_from_the_cache(client: openai.AsyncOpenAI) -> None:
    messages = [{"role": "system", "content": "x" * 8000}, {"role": "user", "content": PROMPT}]

    cached: list[int | None] = []
    for _ in range(2):
        usage = (await chat(client, messages=messages)).usage
        assert usage is not None
        assert usage.prompt_tokens_details is not None
        cached.append(usage.prompt_tokens_details.cached_tokens)

    assert cached[0] == 0
    assert (cached[1] or 0) > 1024


async def test_streams_add_up_to_the_same_answers(client: openai.AsyncOpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    async with client.chat.completions.stream(
        model="scripted-compatible", messages=messages, tools=CHAT_TOOLS
    ) as stream:
        completion = await stream.get_final_completion()
    async with client.responses.stream(model="scripted-gpt", input=PROMPT, tools=TOOLS) as events:
        answer = await events.get_final_response()

    (call,) = completion.choices[0].message.tool_calls or ()
    assert json.loads(call.function.arguments) == TAP
    assert [item.type for item in answer.output] == ["reasoning", "message", "function_call"]
