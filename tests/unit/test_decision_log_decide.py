"""Messages become rows: every kind, whatever text is in it, and nothing that its subject contradicts."""

from datetime import UTC, datetime

import decision_log_world as world
import msgspec
import pytest
from contract.examples import EXAMPLES
from hypothesis import example, given
from hypothesis import strategies as st

from apex_decision_log import cleaning
from apex_decision_log.decide import row_of
from apex_decision_log.rows import Acting, Decided, Finished, Happened, Planned, Row, Seen, Started
from apex_decision_log.upserts import UPSERTS, batches, statement
from apex_schemas import slots, subjects
from apex_schemas.actions import tool_name
from apex_schemas.decision import ToolCallDecision
from apex_schemas.errors import SubjectMismatch, Undecodable, UnknownKind
from apex_schemas.slots import Slot
from apex_schemas.steps import PlannedStep
from apex_schemas.task import TaskFinished

TASK = world.task_id(0)


def read(message: world.Message) -> Row:
    subject, data = message
    return row_of(subject, data, stored_at_ms=world.START_MS)


def test_each_kind_of_a_task_becomes_its_row() -> None:
    rows = [read(message) for message in world.whole_task(TASK)]
    assert [type(row) for row in rows] == [Started, Seen, Planned, Acting, Happened, Finished]
    assert all(row.task_id == TASK for row in rows)
    planned = rows[2]
    assert isinstance(planned, Planned)
    assert (planned.action, planned.arguments, planned.target) == ("tap", '{"at":{"x":5,"y":6}}', "Wi-Fi")


@pytest.mark.parametrize("name", sorted(EXAMPLES["planned_step.v1"]))
def test_every_action_has_a_name_and_arguments(name: str) -> None:
    slot = Slot(device=world.DEVICE, task=TASK, kind="planned", turn=0)
    step = EXAMPLES["planned_step.v1"][name]
    assert isinstance(step, PlannedStep)
    row = read(world.stored(slot, step))
    assert isinstance(row, Planned)
    assert row.action == tool_name(step.action)
    assert "type" not in msgspec.json.decode(row.arguments)


def test_a_decision_s_rationale_is_the_text_before_its_call() -> None:
    row = read(world.decided(TASK, 3, call=1, said="It is off."))
    assert isinstance(row, Decided)
    assert (row.turn, row.call, row.outcome, row.tool_name) == (3, 1, "tool_call", "tap")
    assert (row.rationale, row.thinking, row.error) == ("It is off.", "A switch.", None)


def test_a_fault_is_a_decision_with_its_code_as_outcome() -> None:
    row = read(world.faulty(TASK, 3))
    assert isinstance(row, Decided)
    assert (row.outcome, row.error, row.tool_name, row.correctable) == (
        "no_tool_call",
        "no tool was called",
        None,
        True,
    )


def test_an_unknown_outcome_is_neither_success_nor_absence() -> None:
    row = read(world.event(TASK, 0, success=None))
    assert isinstance(row, Happened)
    assert row.success is None
    assert row.event_at == datetime.fromtimestamp(world.START_MS / 1000, UTC)


def test_an_event_of_the_oldest_form_is_a_row() -> None:
    data = msgspec.msgpack.encode({"action": {"type": "tap", "at": {"x": 1, "y": 2}}, "success": True})
    wrapped = {"kind": "world_event.v1", "body": msgspec.Raw(data), "task": TASK, "device": "sim-1", "turn": 0}
    row = read((f"task.sim-1.{TASK}.0.event", msgspec.msgpack.encode(wrapped)))
    assert isinstance(row, Happened)
    assert (row.rationale, row.done_page) == (None, None)
    assert row.event_at.year == 2026  # when it was stored


def test_a_task_that_never_started_has_a_goal_and_no_device() -> None:
    slot = slots.finished("none", TASK)
    row = read(world.stored(slot, TaskFinished(status="failed", turns=0, finished_at_ms=1, by="w", goal="fly")))
    assert isinstance(row, Finished)
    assert (row.device, row.goal) == (None, "fly")


@pytest.mark.parametrize("ms", [0, -1, 2**62])
def test_a_time_that_no_calendar_has_is_none(ms: int) -> None:
    row = read(
        world.stored(slots.finished("sim-1", TASK), TaskFinished(status="failed", turns=0, finished_at_ms=ms, by=""))
    )
    assert isinstance(row, Finished)
    assert row.finished_at is None


def test_a_message_that_was_published_again_elsewhere_is_not_believed() -> None:
    _, data = world.planned(TASK, 0)
    with pytest.raises(SubjectMismatch):
        read((f"task.sim-1.{TASK}.1.planned", data))
    with pytest.raises(SubjectMismatch):
        read((f"task.sim-1.{TASK}.0.scene", data))
    with pytest.raises(SubjectMismatch):
        read((subjects.decision(TASK, 0, 0), data))
    _, record = world.decided(TASK, 0, call=0)
    with pytest.raises(SubjectMismatch):
        read((subjects.decision(TASK, 0, 1), record))


def test_a_kind_of_a_newer_version_is_told_from_noise() -> None:
    newer = msgspec.msgpack.encode({"kind": "world_event.v2", "body": {}})
    with pytest.raises(UnknownKind):
        read((f"task.sim-1.{TASK}.0.event", newer))
    with pytest.raises(Undecodable):
        read((f"task.sim-1.{TASK}.0.event", b"\xc1noise"))


def test_arguments_nested_too_deep_are_a_fault_of_the_message() -> None:
    deep: dict[str, object] = {}
    for _ in range(800):
        deep = {"a": deep}
    with pytest.raises(Undecodable):
        read(world.recorded(TASK, 0, 0, ToolCallDecision(tool="tap", arguments=deep)))


def test_nul_and_lone_surrogates_are_replaced_in_text_and_in_jsonb() -> None:
    assert cleaning.text("a\x00b\ud800c\udfffd") == "a�b�c�d"
    assert cleaning.text(None) is None
    assert cleaning.json({"k\x00": ["\ud83d", {"n": "\x00"}]}) == '{"k�":["�",{"n":"�"}]}'
    row = read(world.event(TASK, 0, success=False, message="a\x00b"))
    assert isinstance(row, Happened)
    assert row.message == "a�b"


@given(st.text(st.characters(codec=None) | st.characters(categories=["Cs", "Cc"])))
@example("\x00")
@example("\ud800")
def test_whatever_the_text_postgres_can_hold_what_becomes_of_it(text: str) -> None:
    stored = cleaning.text(text).encode()
    assert b"\x00" not in stored
    assert len(cleaning.text(text)) == len(text)
    assert "\\u0000" not in cleaning.json({"t": text}).replace("\\\\", "")


def test_a_batch_has_each_key_once_and_in_order() -> None:
    rows = [read(world.event(TASK, turn, success=success)) for turn, success in ((2, True), (1, True), (2, False))]
    [(sql, arrays)] = batches(rows)
    assert sql.startswith("insert into steps (task_id, turn, done_action")
    turns = arrays[Happened.__struct_fields__.index("turn")]
    successes = arrays[Happened.__struct_fields__.index("success")]
    assert (turns, successes) == ([1, 2], [True, False])


def test_a_statement_of_each_row_type_writes_all_of_its_columns() -> None:
    for type_ in UPSERTS:
        sql = statement(type_)
        assert sql.count("::") == len(type_.__struct_fields__)


def test_the_kinds_of_the_subjects_table_are_those_that_become_rows() -> None:
    assert {subject.rpartition(".")[2] for subject, _ in world.whole_task(TASK)} == set(slots.KINDS)
