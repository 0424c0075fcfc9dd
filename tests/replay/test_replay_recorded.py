"""Recorded provider calls parsed again: what an earlier version of the code decided is decided again, to the letter.

`recorded/task-*.json` are whole tasks of the simulated phone, as the decision-log gave them; `recorded/rows.json` one
call for each answer that providers are known to give.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from planner_records import record_of_row
from planner_rows import ROWS, Row, chat, function, message, text, use

from apex_planner.clients.protocol import Answer
from apex_planner.replay import ask_again, parse_again, request_of
from apex_schemas import envelope
from apex_schemas.decision import DecisionFault, DecisionRecord, DecisionReply, DecisionRequest, ToolCallDecision
from apex_schemas.steps import DecisionKey

RECORDED = Path(__file__).parent / "recorded"
TASKS = sorted(RECORDED.glob("task-*.json"))
STORED = msgspec.json.decode((RECORDED / "rows.json").read_bytes(), type=dict[str, DecisionRecord])


def spelled(reply: DecisionReply) -> bytes:
    """To the letter, but for the order of names, which the database has for itself."""
    return msgspec.json.encode(reply, order="sorted")


@pytest.mark.parametrize("file", TASKS, ids=lambda file: file.stem)
def test_a_stored_task_is_decided_again_to_the_letter(file: Path) -> None:
    records = msgspec.json.decode(file.read_bytes(), type=tuple[DecisionRecord, ...])
    assert len(records) >= 4
    for record in records:
        again = parse_again(record)
        assert (again.verdict, again.differences) == ("same", ())
        assert isinstance(again.now, ToolCallDecision)
        assert spelled(again.now) == spelled(record.reply)
        assert record.reply.text_output


@pytest.mark.parametrize("name", STORED)
def test_a_stored_answer_of_any_kind_is_read_as_it_was(name: str) -> None:
    again = parse_again(STORED[name])
    assert (again.verdict, again.differences) == ("same", ())


def test_every_known_answer_is_stored() -> None:
    assert {row.id for row in ROWS} == set(STORED)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_what_is_recorded_of_an_answer_today_is_enough_to_read_it_again(row: Row) -> None:
    record = await record_of_row(row)
    stored = envelope.decode(envelope.encode(record)).body
    assert parse_again(stored).verdict == "same"
    assert (
        record == STORED[row.id]
        or structs.replace(record, reply=structs.replace(record.reply, latency_ms=STORED[row.id].reply.latency_ms))
        == STORED[row.id]
    )


def record(reply: DecisionReply, raw: str | None, **more: Any) -> DecisionRecord:
    key = DecisionKey(task="t", turn=3, call=1)
    return DecisionRecord(
        key=key, system_prompt="s", user_prompt="u", tools=("tap", "gone"), reply=reply, raw_answer=raw, **more
    )


RAW = json.dumps(message(text("said"), use()))
CALL = ToolCallDecision(tool="tap", arguments={"element": "e2"}, provider="anthropic", model="m-1")


def test_an_answer_that_is_read_otherwise_now_is_told_with_the_fields_that_differ() -> None:
    again = parse_again(record(CALL, RAW))
    assert again.verdict == "differs"
    assert set(again.differences) == {
        "purpose", "expected_outcome", "text_output", "usage", "stop_reason", "response_id",
    }  # fmt: skip
    assert (again.turn, again.call) == (3, 1)
    fault = DecisionFault(code="no_tool_call", message="m", correctable=True, provider="anthropic")
    assert "type" in parse_again(record(fault, RAW)).differences


@pytest.mark.parametrize("other", [1, 1.0, True, "1"])
def test_equal_means_to_the_letter(other: Any) -> None:
    body = chat(content=None, tool_calls=[function('{"seconds": 1, "purpose": "p"}')])
    then = ToolCallDecision(
        tool="tap", arguments={"seconds": other}, purpose="p", provider="openai", model="m-1",
        stop_reason="tool_calls", response_id="chatcmpl-1",
    )  # fmt: skip
    again = parse_again(record(then, json.dumps(body)))
    assert again.differences == (() if other is not True and other == 1 and isinstance(other, int) else ("arguments",))


def test_an_answer_that_cannot_be_read_at_all_any_more_differs() -> None:
    again = parse_again(record(CALL, "<html>"))
    assert (again.verdict, again.now) == ("differs", None)


@pytest.mark.parametrize(
    "code", ["unavailable", "timeout", "denied", "configuration", "too_long", "rejected_by_server"]
)
def test_a_call_without_an_answer_has_nothing_to_parse(code: str) -> None:
    fault = DecisionFault(code=code, message="m", correctable=False, provider="anthropic")
    assert parse_again(record(fault, '{"error": 1}')).verdict == "no_answer"
    assert parse_again(record(CALL, None)).verdict == "no_answer"


class Other:
    """Another model."""

    def __init__(self, reply: DecisionReply) -> None:
        self.reply, self.asked = reply, list[DecisionRequest]()

    async def decide(self, request: DecisionRequest) -> DecisionReply:
        return (await self.ask(request)).reply

    async def ask(self, request: DecisionRequest) -> Answer:
        self.asked.append(request)
        return Answer(self.reply)


async def test_another_model_is_asked_with_the_recorded_prompts_and_todays_tools() -> None:
    other = Other(structs.replace(CALL, text_output="my own words", model="m-2"))
    again = await ask_again(record(CALL, RAW), other)
    assert (again.verdict, again.pictureless) == ("same", False)
    (asked,) = other.asked
    assert (asked.system_prompt, asked.user_blocks) == ("s", ("u",))
    assert [tool.name for tool in asked.tools] == ["tap"]
    assert asked == request_of(record(CALL, RAW))


async def test_what_another_model_would_do_otherwise_is_named_and_a_missing_picture_is_said() -> None:
    other = Other(structs.replace(CALL, arguments={"element": "e3"}))
    again = await ask_again(record(CALL, RAW, screenshot_sha256="ab"), other)
    assert (again.verdict, again.differences, again.pictureless) == ("differs", ("arguments",), True)
    fault = Other(DecisionFault(code="no_tool_call", message="m", correctable=True))
    assert (await ask_again(record(CALL, RAW), fault)).differences == ("tool", "arguments", "fault")
