"""The scripted model server behind the real anthropic SDK: three kinds of Claude, refusals, usage, streams."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import anthropic
import pytest
from anthropic.types import Message

from apex_lab.model import serve

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "element": {"type": "string"},
        "purpose": {"type": "string"},
        "expected_outcome": {"type": "string"},
    },
    "required": ["element", "purpose", "expected_outcome"],
}
TOOLS: list[Any] = [{"name": "tap", "description": "Tap an element.", "input_schema": SCHEMA}]
SCREEN = '<screen app="com.android.settings" page="Network" size="1080x2400">\ne2 switch "Wi-Fi" off\n</screen>'
USER: list[Any] = [{"role": "user", "content": f"Goal: turn on Wi-Fi\nHistory: none\n{SCREEN}"}]
KINDS = ["scripted-old", "scripted-current", "scripted-newest"]


@pytest.fixture
async def client() -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with serve() as url, anthropic.AsyncAnthropic(api_key="any", base_url=url, max_retries=0, timeout=30) as made:
        yield made


async def ask(client: anthropic.AsyncAnthropic, model: str, **changed: Any) -> Message:
    arguments: dict[str, Any] = {"max_tokens": 2048, "tools": TOOLS, "messages": USER, **changed}
    return await client.messages.create(model=model, **arguments)


def kinds_of(message: Message) -> list[str]:
    return [block.type for block in message.content]


@pytest.mark.parametrize("model", KINDS)
async def test_each_kind_answers_with_text_and_one_call_and_says_that_it_is_scripted(
    client: anthropic.AsyncAnthropic, model: str
) -> None:
    raw = await client.messages.with_raw_response.create(model=model, max_tokens=2048, tools=TOOLS, messages=USER)
    message = await raw.parse()

    assert raw.headers["x-apex-scripted"] == "true"
    assert message.stop_reason == "tool_use"
    assert [block.input for block in message.content if block.type == "tool_use"] == [
        {"element": "e2", "purpose": 'Turn on "Wi-Fi".', "expected_outcome": '"Wi-Fi" is on.'}
    ]
    assert next(block.text for block in message.content if block.type == "text").startswith("[scripted]")
    assert "Scripted" in (await client.models.retrieve(model)).display_name
    assert message.usage.input_tokens > 100
    assert message.usage.output_tokens > 10


async def test_capabilities_name_the_thinking_types_that_the_requests_take(client: anthropic.AsyncAnthropic) -> None:
    settings: dict[str, dict[str, object]] = {
        "enabled": {"type": "enabled", "budget_tokens": 1024},
        "adaptive": {"type": "adaptive"},
        "disabled": {"type": "disabled"},
        "between_tools": {"type": "between_tools"},
    }
    for model in KINDS:
        capabilities = (await client.models.retrieve(model)).capabilities
        assert capabilities is not None
        for name, setting in settings.items():
            if getattr(capabilities.thinking.types, name).supported:
                await ask(client, model, thinking=setting)
            else:
                with pytest.raises(anthropic.BadRequestError, match="thinking"):
                    await ask(client, model, thinking=setting)


@pytest.mark.parametrize(
    ("model", "thinking", "shown"),
    [
        ("scripted-old", None, None),
        ("scripted-old", {"type": "enabled", "budget_tokens": 1024}, True),
        ("scripted-current", None, True),
        ("scripted-current", {"type": "disabled"}, None),
        ("scripted-current", {"type": "adaptive", "display": "omitted"}, False),
        ("scripted-newest", None, False),
        ("scripted-newest", {"type": "adaptive", "display": "summarized"}, True),
    ],
)
async def test_thinking_comes_and_is_shown_as_the_kind_and_the_display_say(
    client: anthropic.AsyncAnthropic, model: str, thinking: dict[str, object] | None, shown: bool | None
) -> None:
    message = await ask(client, model, **({"thinking": thinking} if thinking else {}))

    blocks = [block for block in message.content if block.type == "thinking"]
    assert [bool(block.thinking) for block in blocks] == ([] if shown is None else [shown])
    details = message.usage.output_tokens_details
    assert details is not None
    assert bool(details.thinking_tokens) is (shown is not None)


async def test_a_forced_choice_gives_a_call_without_text_or_no_call_or_400(client: anthropic.AsyncAnthropic) -> None:
    forced = {"tool_choice": {"type": "any"}}

    assert kinds_of(await ask(client, "scripted-old", **forced)) == ["tool_use"]
    assert kinds_of(await ask(client, "scripted-current", thinking={"type": "disabled"}, **forced)) == ["tool_use"]
    assert kinds_of(await ask(client, "scripted-current", **forced)) == ["thinking", "text"]
    with pytest.raises(anthropic.BadRequestError, match="Thinking may not be enabled"):
        await ask(client, "scripted-current", thinking={"type": "adaptive"}, **forced)
    with pytest.raises(anthropic.BadRequestError, match="tool_choice"):
        await ask(client, "scripted-newest", **forced)


@pytest.mark.parametrize(
    ("changed", "status", "said"),
    [
        ({"model": "claude-nix"}, 404, "model: claude-nix"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1023}}, 400, "greater than or equal to 1024"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, 400, "`max_tokens` must be greater than"),
        ({"thinking": {"type": "enabled"}}, 400, "budget_tokens: Field required"),
        ({"tools": [{"name": "tap", "input_schema": {"type": "nix"}}]}, 400, "tools.0.custom.input_schema.type"),
        ({"tools": TOOLS * 2}, 400, "unique"),
        ({"tools": [], "tool_choice": {"type": "auto"}}, 400, "while providing tools"),
        ({"tool_choice": {"type": "tool", "name": "nix"}}, 400, "'nix' not found"),
        ({"tool_choice": {"type": "required"}}, 400, "does not match"),
        ({"messages": []}, 400, "at least one message"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": " "}]}]}, 400, "non-whitespace"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": 64_001, "timeout": 5}, 400, "64001 > 64000"),
        ({"extra_headers": {"anthropic-beta": "nix-2020-01-01"}}, 400, "`nix-2020-01-01`"),
        ({"extra_body": {"nix": 1}}, 400, "nix: Extra inputs are not permitted"),
        ({"extra_body": {"thinking": {"type": "enabled", "budget": 1}}}, 400, "thinking.budget: Extra inputs"),
        ({"extra_body": {"max_tokens": "many"}}, 400, "max_tokens: Expected `int`"),
        (
            {"extra_body": {"temperature": 0.2}, "thinking": {"type": "enabled", "budget_tokens": 1024}},
            400,
            "`temperature`",
        ),
        ({"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}] * 5}, 400, "maximum of 4"),
    ],
)
async def test_what_the_real_api_refuses_is_refused_in_its_form(
    client: anthropic.AsyncAnthropic, changed: dict[str, Any], status: int, said: str
) -> None:
    with pytest.raises(anthropic.APIStatusError) as refused:
        await ask(client, changed.get("model", "scripted-old"), **{k: v for k, v in changed.items() if k != "model"})

    assert refused.value.status_code == status
    assert said in str(refused.value)
    assert (refused.value.request_id or "").startswith("req_scripted_")


async def test_without_a_key_the_answer_is_401(client: anthropic.AsyncAnthropic) -> None:
    url, version = f"{str(client.base_url).rstrip('/')}/v1/messages", {"anthropic-version": "2023-06-01"}
    async with aiohttp.ClientSession() as session, session.post(url, json={}, headers=version) as answer:
        assert answer.status == 401
        assert (await answer.json())["error"]["type"] == "authentication_error"


async def test_a_history_that_only_grows_is_read_from_the_cache(client: anthropic.AsyncAnthropic) -> None:
    def turn(number: int) -> list[Any]:
        blocks: list[dict[str, object]] = [
            {"type": "text", "text": f"Goal: turn on Wi-Fi\n{'x' * 9000}"},
            *(
                {"type": "text", "text": f"{past}. Home | tap | {'y' * 400} | success: true"}
                for past in range(1, number)
            ),
        ]
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
        return [{"role": "user", "content": [*blocks, {"type": "text", "text": f"{SCREEN}{number}"}]}]

    usages = [(await ask(client, "scripted-current", messages=turn(number))).usage for number in (1, 2, 3)]

    first, second, third = usages
    assert first.cache_read_input_tokens == 0
    assert (first.cache_creation_input_tokens or 0) > 2000
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert (third.cache_read_input_tokens or 0) > (second.cache_read_input_tokens or 0)
    assert third.input_tokens < 100


@pytest.mark.parametrize(("max_tokens", "blocks"), [(10, ["text"]), (40, ["text", "tool_use"])])
async def test_a_short_limit_cuts_the_answer_and_says_so(
    client: anthropic.AsyncAnthropic, max_tokens: int, blocks: list[str]
) -> None:
    message = await ask(client, "scripted-old", max_tokens=max_tokens)

    assert (message.stop_reason, kinds_of(message)) == ("max_tokens", blocks)
    assert [block.input for block in message.content if block.type == "tool_use"] in ([], [{}])
    assert message.usage.output_tokens == max_tokens


@pytest.mark.parametrize("model", KINDS)
async def test_a_stream_adds_up_to_the_same_message(client: anthropic.AsyncAnthropic, model: str) -> None:
    whole = await ask(client, model)
    async with client.messages.stream(model=model, max_tokens=2048, tools=TOOLS, messages=USER) as stream:
        streamed = await stream.get_final_message()

    assert kinds_of(streamed) == kinds_of(whole)
    assert [block.input for block in streamed.content if block.type == "tool_use"] == [
        block.input for block in whole.content if block.type == "tool_use"
    ]
    assert (streamed.stop_reason, streamed.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)
