"""`apex plan` shows what any recorded body comes to: as JSON for programs, and in words."""

import io
import json

import msgspec
import pytest
from planner_records import exchange_of
from planner_rows import ROWS, SAID, Row
from planner_world import network
from rich.console import Console

from apex_cli.planned import record, shown_plan
from apex_planner.once import plan_once


def printed(told: object) -> str:
    out = Console(file=io.StringIO(), width=200)
    out.print(shown_plan(told))  # type: ignore[arg-type]
    return out.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_the_result_of_any_body_is_told(row: Row) -> None:
    """A body that cannot be used is given twice, so that the corrective call fails with it too."""
    report = await plan_once(network(), "turn on Wi-Fi", exchange_of(row), tool_set="extended")
    told = record(report)
    as_json = json.loads(msgspec.json.encode(told))
    text = printed(told)
    if row.correctable is None and not row.lacks_something:
        assert (told.outcome, told.tool, told.error, len(told.attempts)) == ("planned", "tap", None, 1)
        assert told.arguments == {"at": {"x": 540, "y": 250}}
        assert told.target is not None
        assert "act       tap “Wi-Fi”" in text
    else:
        assert as_json["outcome"] == ("refused_call" if row.lacks_something else row.expect)
        assert as_json["tool"] is None
        assert as_json["error"]
        assert len(told.attempts) == (1 if row.correctable is False else 2)
        assert row.lacks_something or f"refused   {row.expect}: " in text
    for name, field in (("text_output", "rationale"), ("thinking", "thinking")):
        if name in row.also and not row.lacks_something:
            assert as_json[field] == row.also[name]
    if as_json["rationale"] == SAID:
        assert f"reason    {SAID}" in text
    assert f"{len(told.attempts)} call" in text
