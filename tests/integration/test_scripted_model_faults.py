"""What a test can order from the scripted model server over HTTP, and what it can read there afterwards."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import anthropic
import openai
import pytest

from apex_lab.model import serve

MESSAGES: list[Any] = [{"role": "user", "content": "Goal: look around 3 turns"}]
SECRET = "sk-very-secret"


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with serve() as served:
        yield served


@pytest.fixture
async def client(url: str) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(api_key=SECRET, base_url=url, max_retries=0, timeout=30) as made:
        yield made


async def lab(url: str, path: str, body: Any = None) -> dict[str, Any]:
    async with aiohttp.ClientSession() as session:
        method = "GET" if path == "calls" else "POST"
        async with session.request(method, f"{url}/lab/model/{path}", json=body) as answer:
            return {"http": answer.status, **await answer.json()}


async def ask(client: anthropic.AsyncAnthropic) -> anthropic.types.Message:
    return await client.messages.create(model="scripted-old", max_tokens=500, messages=MESSAGES)


async def test_ordered_answers_come_in_order_and_then_the_playbook_again(
    url: str, client: anthropic.AsyncAnthropic
) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "x",
        "content": [],
        "stop_reason": 7,
        "usage": {},
    }
    ordered = [{"status": 529, "body": error, "headers": {"retry-after": "3"}, "times": 2}, {"body": message}]
    assert (await lab(url, "next", ordered))["waiting"] == 3

    for _ in range(2):
        with pytest.raises(anthropic.APIStatusError) as overloaded:
            await ask(client)
        assert overloaded.value.status_code == 529
        assert overloaded.value.response.headers["retry-after"] == "3"
    assert (await ask(client)).stop_reason == 7  # type: ignore[comparison-overlap]
    assert (await ask(client)).stop_reason == "end_turn"


async def test_a_string_is_sent_as_it_is_and_html_is_called_html(url: str) -> None:
    await lab(url, "next", [{"body": "<html>Bad gateway</html>", "status": 200}, {"body_base64": "/v8A"}])
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/v1/chat/completions", json={}) as answer:
            assert (answer.content_type, await answer.text()) == ("text/html", "<html>Bad gateway</html>")
        async with session.post(f"{url}/v1/chat/completions", json={}) as answer:
            assert await answer.read() == b"\xfe\xff\x00"


@pytest.mark.parametrize(
    "fault", [{"reset": True}, {"cut_after": 20}, {"cut_after": 0}, {"body": {"a": 1}, "cut_after": 3}]
)
async def test_a_reset_or_cut_answer_is_a_connection_error_and_the_next_one_is_whole(
    url: str, client: anthropic.AsyncAnthropic, fault: dict[str, Any]
) -> None:
    await lab(url, "next", fault)

    with pytest.raises(anthropic.APIConnectionError):
        await ask(client)
    assert (await ask(client)).stop_reason == "end_turn"


async def test_a_stream_can_be_cut_in_its_middle(url: str) -> None:
    await lab(url, "next", {"cut_after": 200})
    async with openai.AsyncOpenAI(api_key="any", base_url=f"{url}/v1", max_retries=0) as client:
        stream = await client.chat.completions.create(model="scripted-compatible", messages=MESSAGES, stream=True)
        with pytest.raises(openai.APIConnectionError):
            await anext(stream)


async def test_a_delay_alone_lets_the_playbook_answer_late(url: str, client: anthropic.AsyncAnthropic) -> None:
    await lab(url, "next", {"delay_ms": 150})

    began = time.monotonic()
    assert (await ask(client)).stop_reason == "end_turn"
    assert time.monotonic() - began >= 0.15


async def test_a_delay_beyond_the_client_s_patience_is_its_timeout(url: str, client: anthropic.AsyncAnthropic) -> None:
    await lab(url, "next", {"delay_ms": 2000})

    with pytest.raises(anthropic.APITimeoutError):
        await ask(client.with_options(timeout=0.2))


async def test_a_fault_for_a_path_waits_for_that_path(url: str, client: anthropic.AsyncAnthropic) -> None:
    await lab(url, "next", {"path": "/v1/models", "status": 500, "body": {}})

    assert (await ask(client)).stop_reason == "end_turn"
    with pytest.raises(anthropic.InternalServerError):
        await client.models.retrieve("scripted-old")
    assert (await client.models.retrieve("scripted-old")).id == "scripted-old"


@pytest.mark.parametrize("order", [{"stauts": 500}, {"delay_ms": "long"}, "x", {"body_base64": "!"}])
async def test_an_order_that_makes_no_sense_is_refused_by_name(url: str, order: Any) -> None:
    answer = await lab(url, "next", order)

    assert answer["http"] == 400
    assert "POST /lab/model/next" in answer["error"]


async def test_calls_are_listed_with_their_fate_and_without_keys_or_pictures(
    url: str, client: anthropic.AsyncAnthropic
) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 9000}}
    blocks: list[Any] = [picture, {"type": "text", "text": "Goal: look around"}]
    await client.messages.create(model="scripted-old", max_tokens=500, messages=[{"role": "user", "content": blocks}])
    await lab(url, "next", {"status": 500, "body": {}})
    for model in ("scripted-old", "nix"):
        with pytest.raises(anthropic.APIStatusError):
            await client.messages.create(model=model, max_tokens=500, messages=MESSAGES)

    calls = (await lab(url, "calls"))["calls"]

    assert [(call["status"], call["source"]) for call in calls] == [
        (200, "playbook:look-around"),
        (500, "ordered"),
        (404, "refused"),
    ]
    assert calls[0]["headers"]["anthropic-version"]
    assert all(call["ms"] is not None for call in calls)
    text = json.dumps(calls)
    assert SECRET not in text
    assert "AAAA" not in text
    assert (await lab(url, "reset"))["waiting"] == 0
    assert (await lab(url, "calls"))["calls"] == []


async def test_the_program_prints_one_json_line_serves_and_ends_on_a_signal() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "apex_lab.model", "--port", "0", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        url = json.loads(await asyncio.wait_for(process.stdout.readline(), 20))["url"]
        assert (await lab(url, "calls"))["calls"] == []
    finally:
        process.terminate()
    assert await asyncio.wait_for(process.wait(), 10) == 0
