"""Rows are written once however often they come, in any order, and a bad one does not take the others with it."""

import random
from collections.abc import AsyncGenerator
from typing import Any

import decision_log_world as world
import msgspec
import pytest
import pytest_asyncio
from integration.conftest import Postgres

from apex_decision_log import migrate
from apex_decision_log.decide import row_of
from apex_decision_log.errors import StoreAway
from apex_decision_log.rows import Row
from apex_decision_log.store import Store, open_store, write_all
from apex_decision_log.timeline import answer_tasks, answer_timeline
from apex_schemas.decision import ToolCallDecision
from apex_schemas.queries import QueryError, TaskList, Timeline, TimelineQuery

TASK, OTHER = world.task_id(0), world.task_id(1)
TABLES = ("tasks", "steps", "scenes", "planner_decision_log")


@pytest_asyncio.fixture
async def store(postgres: Postgres) -> AsyncGenerator[Store]:
    await migrate.upgrade(postgres.dsn)
    async with open_store(postgres.dsn) as opened:
        yield opened


async def test_a_task_reads_the_same_whatever_the_order_and_number_of_its_deliveries(store: Store) -> None:
    messages = [*world.whole_task(TASK, turns=3), *(world.decided(TASK, turn) for turn in range(3))]
    await _write(store, messages)
    expected = await _content(store)
    assert [len(expected[table]) for table in TABLES] == [1, 3, 3, 3]
    for seed in range(4):
        await store.fetch("truncate tasks, steps, scenes, planner_decision_log")
        shuffled = random.Random(seed).sample(messages * 2, k=len(messages) * 2)
        for start in range(0, len(shuffled), 5):
            await _write(store, shuffled[start : start + 5])
        assert await _content(store) == expected


async def test_text_that_postgres_cannot_hold_is_stored_with_replacements(store: Store) -> None:
    odd = ToolCallDecision(tool="tap\x00", arguments={"a\x00": "b\x00", "n": 2**63}, text_output="c\x00d")
    assert await _write(store, [world.recorded(TASK, 0, 0, odd), world.scene(TASK, 0, label="\x00")]) == []
    [row] = await store.fetch("select tool_name, tool_arguments, rationale from planner_decision_log")
    assert (row["tool_name"], row["rationale"]) == ("tap�", "c�d")
    assert msgspec.json.decode(row["tool_arguments"]) == {"a�": "b�", "n": 2**63}


async def test_rows_that_no_column_holds_are_named_and_all_others_written(store: Store) -> None:
    good = [world.acting(TASK, turn) for turn in range(40)]
    bad = [world.acting(OTHER, 3, deadline_ms=2**63), world.acting(OTHER, 5, deadline_ms=2**64 - 1)]
    refused = await _write(store, [*good[:7], bad[0], *good[7:], bad[1]])
    assert {getattr(each, "turn") for each, _ in refused} == {3, 5}  # noqa: B009
    assert [reason for _, reason in refused] == ["data error (SQLSTATE 22000)"] * 2
    assert [row["turn"] for row in await store.fetch("select turn from steps order by turn")] == list(range(40))


async def test_a_row_that_a_constraint_refuses_is_named_without_its_content(store: Store) -> None:
    await store.fetch("alter table steps add constraint mistaken check (session <> 's' or turn < 2)")
    [(row, reason)] = await _write(store, [world.acting(TASK, turn) for turn in range(3)])
    assert getattr(row, "turn") == 2  # noqa: B009
    assert reason == "check violation (SQLSTATE 23514) of constraint mistaken in table steps"


async def test_a_store_that_is_away_or_not_migrated_says_where_and_what_to_do(postgres: Postgres) -> None:
    async with open_store(postgres.dsn) as store:
        with pytest.raises(StoreAway, match="migrate upgrade"):
            await _write(store, [world.started(TASK)])
        await migrate.upgrade(postgres.dsn)
        assert await _write(store, [world.started(TASK)]) == []
        await postgres.server.kill()
        with pytest.raises(StoreAway, match=r"127\.0\.0\.1") as caught:
            await _write(store, [world.started(TASK)])
        assert postgres.dsn.split(":")[2].split("@")[0] not in str(caught.value)  # the password
        assert "Error" not in str(caught.value)
        assert msgspec.json.decode(await answer_timeline(store, b"{}"))["code"] == "database_away"
        await postgres.server.start()
        assert await _write(store, [world.started(TASK)]) == []


async def test_a_timeline_tells_each_turn_with_its_calls(store: Store) -> None:
    calls = [world.faulty(TASK, 0, call=0), world.decided(TASK, 0, call=1), world.decided(TASK, 1)]
    failed = world.event(TASK, 1, success=False, message="moved")
    await _write(store, [world.started(TASK), world.scene(TASK, 0), world.planned(TASK, 0, rationale=None, call=1)])
    await _write(store, [*calls, world.event(TASK, 0), world.planned(TASK, 1), failed])
    timeline = msgspec.json.decode(await answer_timeline(store, b""), type=Timeline)
    assert (timeline.summary.status, timeline.summary.turns, timeline.summary.goal) == ("running", 2, "turn on Wi-Fi")
    first, second = timeline.steps
    assert [(call.outcome, call.error) for call in first.calls] == [
        ("no_tool_call", "no tool was called"),
        ("tool_call", None),
    ]
    assert (first.rationale, first.page, first.observe_ms, first.plan_ms, first.act_ms) == (
        "It is off.",  # from the call that the step names
        "Settings",
        11,
        22,
        33,
    )
    assert (first.action, first.target, first.arguments) == ("tap", "Wi-Fi", {"at": {"x": 5, "y": 6}})
    assert (second.success, second.done, second.code, second.message) == (False, True, "STALE_SCENE", "moved")


async def test_a_call_whose_step_is_still_to_come_is_a_turn_already(store: Store) -> None:
    await _write(store, [world.started(TASK), world.decided(TASK, 0)])
    [step] = msgspec.json.decode(await answer_timeline(store, b"{}"), type=Timeline).steps
    assert (step.action, step.done, len(step.calls)) == (None, False, 1)


async def test_tasks_are_listed_newest_first_and_found_by_id_and_by_request(store: Store) -> None:
    await _write(store, [*world.whole_task(TASK), world.started(OTHER, goal="second", sequence=9)])
    listed = msgspec.json.decode(await answer_tasks(store, b"{}"), type=TaskList).tasks
    assert [task.task for task in listed] == [OTHER, TASK]
    running = msgspec.json.decode(await answer_tasks(store, b'{"status":"running"}'), type=TaskList).tasks
    assert [task.task for task in running] == [OTHER]
    assert msgspec.json.decode(await answer_tasks(store, b'{"limit":1,"device":"none"}'), type=TaskList).tasks == ()
    for query, expected in (
        (TimelineQuery(), OTHER),
        (TimelineQuery(task=TASK), TASK),
        (TimelineQuery(request_sequence=9), OTHER),
    ):
        answer = msgspec.json.decode(await answer_timeline(store, msgspec.json.encode(query)), type=Timeline)
        assert answer.summary.task == expected
    ended = msgspec.json.decode(await answer_timeline(store, f'{{"task":"{TASK}"}}'.encode()), type=Timeline).summary
    assert (ended.status, ended.answer, ended.turns) == ("succeeded", "on", 1)
    assert ended.finished_at_ms == world.START_MS + 9_000


@pytest.mark.parametrize(
    ("question", "code"),
    [
        (b'{"task":"none"}', "task_not_found"),
        (b'{"request_sequence":5}', "task_not_found"),
        (b"{}", "task_not_found"),
        (b"{", "bad_query"),
        (b'{"task":5}', "bad_query"),
        (b"[" * 100_000, "bad_query"),
    ],
)
async def test_a_question_without_an_answer_gets_an_error_with_a_code(store: Store, question: bytes, code: str) -> None:
    assert msgspec.json.decode(await answer_timeline(store, question), type=QueryError).code == code


@pytest.mark.parametrize("question", [b'{"task":"a\\u0000"}', b'{"request_sequence":9223372036854775808}'])
async def test_a_question_that_postgres_cannot_hold_gets_an_error_with_a_code(store: Store, question: bytes) -> None:
    assert msgspec.json.decode(await answer_timeline(store, question), type=QueryError).code == "bad_query"


async def _write(store: Store, messages: list[world.Message]) -> list[tuple[Row, str]]:
    rows = [row_of(subject, data, stored_at_ms=world.START_MS) for subject, data in messages]
    return [(each.item, each.reason) for each in await write_all(store, rows, lambda row: row)]


async def _content(store: Store) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for table in TABLES:
        rows = await store.fetch(f"select * from {table} order by task_id" + (", turn" if table != "tasks" else ""))
        found[table] = [{name: value for name, value in row.items() if name != "recorded_at"} for row in rows]
    return found
