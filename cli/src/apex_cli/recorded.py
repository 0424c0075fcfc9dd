"""The recorded provider calls of a task, with prompts and raw answers, asked of the decision-log as the operator."""

from typing import Final

import msgspec

from apex_bus.errors import Transient
from apex_cli.errors import NotFound, NotReachable
from apex_cli.operator import Operator
from apex_schemas import subjects
from apex_schemas.decision import DecisionRecord
from apex_schemas.queries import DecisionsQuery, QueryError, RecordedDecisions

_ANSWER_SECONDS: Final = 15.0


async def recorded(asked: Operator, task: str) -> list[DecisionRecord]:
    """All calls in order. Raises NotFound, or NotReachable when the decision-log cannot answer."""
    records: list[DecisionRecord] = []
    turn: int | None = 0
    while turn is not None:
        question = msgspec.json.encode(DecisionsQuery(task=task, from_turn=turn))
        try:
            data = await asked.bus.request(subjects.QUERY_DECISIONS, question, timeout_s=_ANSWER_SECONDS)
        except Transient as error:
            raise NotReachable(f"the decision-log does not answer ({error})", asked.found) from error
        page = _page(data)
        if isinstance(page, QueryError):
            if "not_found" in page.code:
                raise NotFound(page.error)
            raise NotReachable(f"the decision-log could not answer ({page.error})", asked.found)
        records += page.records
        turn = page.next_turn
    return records


def _page(data: bytes) -> RecordedDecisions | QueryError:
    """A QueryError has both of its fields; no other answer decodes as one."""
    try:
        return msgspec.json.decode(data, type=QueryError)
    except msgspec.ValidationError:
        return msgspec.json.decode(data, type=RecordedDecisions)
