"""Recorded bodies read without any network: the same bodies give the same replies, always."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planner_rows import ROWS, Row, chat, message, response, use

from apex_planner.clients import anthropic_answer, chat_answer, reading, responses_answer
from apex_schemas import envelope
from apex_schemas.decision import DecisionFault, DecisionRecord, DecisionReply, ToolCallDecision, Usage
from apex_schemas.steps import DecisionKey

READERS = {"anthropic": anthropic_answer.read, "chat": chat_answer.read, "responses": responses_answer.read}


def reply_of(api: str, raw: str) -> DecisionReply | None:
    parts = READERS[api](raw)
    return None if parts is None else reading.conclude(parts, provider="p", model="asked")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_body_comes_to_exactly_one_call_or_a_fault(row: Row) -> None:
    reply = reply_of(row.api, row.raw)
    match reply:
        case None:
            assert row.expect == "not_a_completion"
            return
        case ToolCallDecision():
            assert reply.tool == row.expect
        case DecisionFault():
            assert (reply.code, reply.correctable) == (row.expect, row.correctable)
            assert reply.message
    for name, value in row.also.items():
        assert getattr(reply, name) == value, name
    assert reply.model in ("m-1", "asked")
    assert reply == reply_of(row.api, row.raw)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_whatever_was_read_can_be_recorded(row: Row) -> None:
    reply = reply_of(row.api, row.raw)
    if reply is not None:
        record = DecisionRecord(
            key=DecisionKey(task="t", turn=0, call=0), system_prompt="", user_prompt="", tools=(), reply=reply
        )
        assert envelope.decode(envelope.encode(record)).body == record


@pytest.mark.parametrize(
    ("api", "body", "usage"),
    [
        (
            "anthropic",
            message(
                use(),
                usage={
                    "input_tokens": 7,
                    "cache_read_input_tokens": 100,
                    "cache_creation_input_tokens": 20,
                    "output_tokens": 9,
                    "output_tokens_details": {"thinking_tokens": 4},
                },
            ),
            Usage(input_tokens=127, output_tokens=9, cache_read_tokens=100, cache_write_tokens=20, reasoning_tokens=4),
        ),
        (
            "anthropic",
            message(use(), usage={"input_tokens": 7, "cache_read_input_tokens": None}),
            Usage(input_tokens=7),
        ),
        (
            "chat",
            chat(
                usage={
                    "prompt_tokens": 50,
                    "completion_tokens": 8,
                    "prompt_tokens_details": {"cached_tokens": 30},
                    "completion_tokens_details": {"reasoning_tokens": 3},
                }
            ),
            Usage(input_tokens=50, output_tokens=8, cache_read_tokens=30, reasoning_tokens=3),
        ),
        ("chat", chat(usage=None), Usage()),
        (
            "responses",
            response(
                usage={
                    "input_tokens": 50,
                    "output_tokens": 8,
                    "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 2},
                    "output_tokens_details": {"reasoning_tokens": 3},
                }
            ),
            Usage(input_tokens=50, output_tokens=8, cache_read_tokens=30, cache_write_tokens=2, reasoning_tokens=3),
        ),
    ],
)
def test_usage_counts_cache_reads_and_writes_in_the_total(api: str, body: Any, usage: Usage) -> None:
    reply = reply_of(api, json.dumps(body))
    assert reply is not None
    assert reply.usage == usage


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KNOWN = (
    "content",
    "type",
    "choices",
    "message",
    "output",
    "status",
    "stop_reason",
    "usage",
    "tool_calls",
    "function",
    "finish_reason",
    "input",
    "name",
    "arguments",
    "error",
    "summary",
    "thinking",
)


@given(st.sampled_from(list(READERS)), st.dictionaries(st.sampled_from(KNOWN), JSON, max_size=6) | JSON)
def test_no_body_makes_a_reader_fall_over(api: str, body: Any) -> None:
    reply = reply_of(api, json.dumps(body))
    assert reply is None or isinstance(reply, DecisionFault | ToolCallDecision)


@given(st.sampled_from(list(READERS)), st.text(max_size=40))
def test_no_text_makes_a_reader_fall_over(api: str, raw: str) -> None:
    reply_of(api, raw)


def test_a_body_that_is_nested_without_end_is_no_completion() -> None:
    assert reply_of("chat", '{"choices":' + "[" * 100_000) is None
    assert reply_of("chat", '{"choices":' + "[" * 5_000 + "]" * 5_000 + "}") is None


def test_arguments_that_are_no_json_are_told_to_the_model_as_they_came_on_one_line() -> None:
    reply = reply_of("chat", json.dumps(chat(content=None, tool_calls=[row_call("tap(e2)\n</screen>")])))
    assert isinstance(reply, DecisionFault)
    assert reply.message == "the arguments of tap are no JSON object: tap(e2) ‹/screen>"


def row_call(arguments: str) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": "tap", "arguments": arguments}}


@pytest.mark.parametrize("row", [row for row in ROWS if row.row == 12], ids=lambda row: row.id)
def test_parts_of_a_kind_not_known_are_named_so_that_they_can_be_counted(row: Row) -> None:
    parts = READERS[row.api](row.raw)
    assert parts is not None
    assert parts.ignored == (("hologram",) if "hologram" in row.raw else ())
    chunks = chat(content=[{"type": "hologram"}, {"type": "text", "text": "x"}], tool_calls=[row_call("{}")])
    of_chat = chat_answer.read(json.dumps(chunks))
    assert of_chat is not None
    assert of_chat.ignored == ("hologram",)
