"""The provider calls of a task as they were recorded, prompts and raw answers included: for the operator alone.

Consumes DecisionsQuery and `planner_decision_log`; gives RecordedDecisions, in pages that fit into a message.
"""

from datetime import datetime
from itertools import groupby
from typing import Any, Final

import msgspec

from apex_decision_log.errors import RefusedRow, StoreAway
from apex_decision_log.postgres import Record
from apex_decision_log.store import Store
from apex_schemas.decision import DecisionFault, DecisionRecord, DecisionReply, ToolCallDecision, Usage
from apex_schemas.queries import DecisionsQuery, QueryError, RecordedDecisions
from apex_schemas.steps import DecisionKey

_PAGE_CHARACTERS: Final = 1_000_000
_PAGE_ROWS: Final = 40

_CALLS: Final = """
select turn, call, outcome, provider, model, system_prompt, user_prompt, tools, tool_name, tool_arguments, purpose,
    expected_outcome, rationale, thinking, error, correctable, raw_answer, stop_reason, response_id, input_tokens,
    output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, latency_ms, screenshot_sha256,
    screenshot_bytes, requested_at, worker
from planner_decision_log where task_id = $1 and turn >= $2 order by turn, call limit $3
"""


async def answer_decisions(store: Store, question: bytes) -> bytes:
    """The answer to `query.decisions`: RecordedDecisions or a QueryError, as JSON."""
    try:
        query = msgspec.json.decode(question or b"{}", type=DecisionsQuery)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return _error(f"the query cannot be read: {error}", "bad_query")
    try:
        found = await decisions(store, query)
    except StoreAway as error:
        return _error(str(error), "database_away")
    except RefusedRow as error:
        return _error(str(error), "bad_query")
    if not found.records and query.from_turn == 0:
        return _error(f"no provider call of a task {query.task} is recorded", "task_not_found")
    return msgspec.json.encode(found)


async def decisions(store: Store, query: DecisionsQuery) -> RecordedDecisions:
    """Whole turns, as many as fit, at least one. Raises StoreAway, RefusedRow."""
    rows = await store.fetch(_CALLS, query.task, query.from_turn, _PAGE_ROWS + 1)
    more = len(rows) > _PAGE_ROWS
    turns = [list(group) for _, group in groupby(rows, key=lambda row: row["turn"])]
    page: list[DecisionRecord] = []
    characters = 0
    for number, turn in enumerate(turns):
        characters += sum(len(row["user_prompt"]) + len(row["raw_answer"] or "") for row in turn)
        unfinished = more and number == len(turns) - 1
        if number > 0 and (characters > _PAGE_CHARACTERS or unfinished):
            return RecordedDecisions(records=tuple(page), next_turn=turn[0]["turn"])
        page.extend(_record(query.task, row) for row in turn)
    return RecordedDecisions(records=tuple(page), next_turn=turns[-1][0]["turn"] + 1 if more else None)


def _record(task: str, row: Record) -> DecisionRecord:
    return DecisionRecord(
        key=DecisionKey(task=task, turn=row["turn"], call=row["call"]),
        system_prompt=row["system_prompt"],
        user_prompt=row["user_prompt"],
        tools=msgspec.json.decode(row["tools"], type=tuple[str, ...]),
        reply=_reply(row),
        raw_answer=row["raw_answer"],
        screenshot_sha256=row["screenshot_sha256"],
        screenshot_bytes=row["screenshot_bytes"],
        requested_at_ms=_ms(row["requested_at"]),
        worker=row["worker"],
    )


def _reply(row: Record) -> DecisionReply:
    usage = Usage(**{name: row[name] for name in Usage.__struct_fields__})
    if row["outcome"] == "tool_call":
        return ToolCallDecision(
            tool=row["tool_name"] or "",
            arguments=msgspec.json.decode(row["tool_arguments"] or "{}", type=dict[str, Any]),
            purpose=row["purpose"],
            expected_outcome=row["expected_outcome"],
            text_output=row["rationale"],
            thinking=row["thinking"],
            usage=usage,
            provider=row["provider"],
            model=row["model"],
            stop_reason=row["stop_reason"],
            response_id=row["response_id"],
            latency_ms=row["latency_ms"],
        )
    return DecisionFault(
        code=row["outcome"],
        message=row["error"] or "",
        correctable=bool(row["correctable"]),
        text_output=row["rationale"],
        thinking=row["thinking"],
        usage=usage,
        provider=row["provider"],
        model=row["model"],
        stop_reason=row["stop_reason"],
        response_id=row["response_id"],
        latency_ms=row["latency_ms"],
    )


def _error(said: str, code: str) -> bytes:
    return msgspec.json.encode(QueryError(error=said, code=code))


def _ms(moment: datetime | None) -> int:
    return 0 if moment is None else round(moment.timestamp() * 1000)
