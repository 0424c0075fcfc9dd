"""The envelope around every message, and the World that is folded from events."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_schemas import actions, envelope, slots
from apex_schemas.decision import DecisionRecord, ToolCallDecision
from apex_schemas.errors import LogTorn, SubjectMismatch, TooLarge, Undecodable, UnknownKind, WireError
from apex_schemas.slots import KINDS, Kind, Slot
from apex_schemas.steps import DecisionKey, PlannedStep, WorldEvent
from apex_schemas.task import CancelRequest, TaskRequest, TaskStarted
from apex_schemas.world import fold

TASK = "4bf92f3577b34da6a3ce929d0e0e4736"
LOOK = actions.Look(code="TEST", reason="a test")
STEP = PlannedStep(action=LOOK, page="Settings")
BEGIN = TaskStarted(request=TaskRequest(goal="g"), pool="any", request_sequence=1, request_digest="d", started_at_ms=1)
NAN, INFINITY = float("nan"), float("inf")


def record(arguments: dict[str, Any]) -> DecisionRecord:
    reply = ToolCallDecision(tool="tap", arguments=arguments)
    key = DecisionKey(task=TASK, turn=0, call=0)
    return DecisionRecord(key=key, system_prompt="", user_prompt="", tools=(), reply=reply)


def wrapped(kind: str, body: Any, **more: Any) -> bytes:
    return msgspec.msgpack.encode({"kind": kind, "body": body, **more})


def test_message_comes_back_as_it_was_sent() -> None:
    data = envelope.encode(STEP, task=TASK, device="pixel", turn=0, attempt="a")
    message = envelope.decode(data)
    assert (message.kind, message.body, message.attempt) == ("planned_step.v1", STEP, "a")
    envelope.check_subject(message, "s", task=TASK, device="pixel", turn=0)


def test_message_in_json_is_read_like_one_in_msgpack() -> None:
    data = msgspec.json.encode({"kind": "cancel_request.v1", "body": {"reason": "enough"}, "task": TASK})
    assert envelope.decode(data).body == CancelRequest(reason="enough")


@pytest.mark.parametrize("kind", ["planned_step.v2", "", "Planned_step.v1", "scene"])
def test_kind_that_is_not_known_is_said_to_be_so_before_its_body_is_read(kind: str) -> None:
    with pytest.raises(UnknownKind) as error:
        envelope.decode(wrapped(kind, {"anything": [1]}))
    assert error.value.kind == kind


@pytest.mark.parametrize("body", [{}, {"action": {"type": "fly"}, "page": "p"}, None, 7, [], "x"])
def test_body_of_another_shape_than_its_kind_is_refused(body: Any) -> None:
    with pytest.raises(Undecodable):
        envelope.decode(wrapped("planned_step.v1", body))


def test_fields_that_a_newer_version_added_are_ignored() -> None:
    body = {**msgspec.to_builtins(CancelRequest(reason="r")), "new": {"a": 1}}
    assert envelope.decode(wrapped("cancel_request.v1", body, new=2)).body == CancelRequest(reason="r")


def test_message_that_is_too_large_is_neither_sent_nor_read() -> None:
    with pytest.raises(TooLarge, match=r"a cancel_request\.v1 message has 6,"):
        envelope.encode(CancelRequest(reason="x" * envelope.MAX_MESSAGE_BYTES))
    with pytest.raises(TooLarge):
        envelope.decode(bytes(envelope.MAX_MESSAGE_BYTES + 1))


@pytest.mark.parametrize("number", [NAN, INFINITY, -INFINITY])
@pytest.mark.parametrize(
    "nest", [lambda n: {"x": n}, lambda n: {"a": [1, {"b": (n,)}]}, lambda n: {"a": {"b": {"c": n}}}]
)
def test_number_in_arguments_that_is_not_finite_is_refused_however_deep(number: float, nest: Any) -> None:
    with pytest.raises(Undecodable, match="not finite"):
        envelope.decode(envelope.encode(record(nest(number))))


def test_arguments_with_finite_numbers_come_back() -> None:
    arguments = {"x": 1.5, "y": [0, -3, {"z": 1e300}], "text": "NaN"}
    assert envelope.decode(envelope.encode(record(arguments))).body.reply.arguments == arguments


@pytest.mark.parametrize("path", ["planned_at_ms", "plan_ms"])
def test_number_outside_arguments_that_is_not_finite_is_refused(path: str) -> None:
    with pytest.raises(Undecodable):
        envelope.decode(wrapped("planned_step.v1", {**msgspec.to_builtins(STEP), path: NAN}))


@pytest.mark.parametrize(
    "data",
    [
        b"\x91" * 10_000 + b"\xc0",
        b'{"kind": "decision_record.v1", "body": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        wrapped("decision_record.v1", msgspec.Raw(b"\x81\xa1x" * 10_000 + b"\xc0")),
        b"",
        b"{",
        b"\xc1",
        b'{"kind": "cancel_request.v1", "body": {"reason": "\xff"}}',
    ],
)
def test_bytes_that_are_broken_or_nested_without_end_are_refused(data: bytes) -> None:
    with pytest.raises(Undecodable):
        envelope.decode(data)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_a_wire_error(data: bytes) -> None:
    with contextlib.suppress(WireError):
        assert envelope.decode(data).kind in envelope.KINDS


@pytest.mark.parametrize(
    "differs",
    [{"task": "0" * 31 + "1"}, {"device": "galaxy"}, {"turn": 1}, {"task": None}, {"device": None}, {"turn": None}],
    ids=str,
)
def test_envelope_that_contradicts_its_subject_is_not_believed(differs: dict[str, Any]) -> None:
    place: dict[str, Any] = {"task": TASK, "device": "pixel", "turn": 0}
    message = envelope.decode(envelope.encode(STEP, **{**place, **differs}))
    with pytest.raises(SubjectMismatch):
        envelope.check_subject(message, "s", **place)


@given(st.integers(0, 30), st.sets(st.integers(0, 29)))
def test_world_is_all_events_before_its_turn_in_order_or_torn(turn: int, missing: set[int]) -> None:
    """Events of this turn and later ones change nothing."""
    events = {n: WorldEvent(action=LOOK, success=True, page=f"p{n}") for n in range(35) if n not in missing}
    gaps = len([n for n in missing if n < turn])
    if gaps:
        with pytest.raises(LogTorn) as torn:
            fold(TASK, BEGIN, events, turn=turn)
        assert (torn.value.task, torn.value.expected, torn.value.found) == (TASK, turn, turn - gaps)
    else:
        world = fold(TASK, BEGIN, events, turn=turn)
        assert [event.page for event in world.history] == [f"p{n}" for n in range(turn)]
        assert world.turn == turn
        assert world.current_page == (f"p{turn - 1}" if turn else None)


def test_page_of_the_world_is_that_of_the_last_step_that_has_one() -> None:
    events = {n: WorldEvent(action=LOOK, success=True, page=page) for n, page in enumerate(["a", "b", None])}
    assert fold(TASK, BEGIN, events, turn=3).current_page == "b"


def _slot(kind: Kind) -> Slot:
    return slots.finished("pixel", TASK) if kind == "finished" else Slot(device="pixel", task=TASK, kind=kind, turn=0)


def test_every_kind_of_slot_holds_a_kind_of_message_of_its_own() -> None:
    assert tuple(envelope.HOLDS) == KINDS
    assert len(set(envelope.HOLDS.values())) == len(KINDS)
    assert set(envelope.HOLDS.values()) < set(envelope.KINDS.values())


@pytest.mark.parametrize("body", [STEP, BEGIN, CancelRequest()], ids=["planned", "started", "none of the log"])
@pytest.mark.parametrize("kind", KINDS)
def test_message_fills_the_slots_of_its_own_kind_alone(body: Any, kind: Kind) -> None:
    slot = _slot(kind)
    message = envelope.decode(envelope.encode(body, task=TASK, device="pixel", turn=slot.turn, attempt="a"))
    if type(body) is envelope.HOLDS[kind]:
        assert envelope.check_slot(message, slot.subject) == slot
        return
    with pytest.raises(SubjectMismatch, match=f"belongs to another kind of slot, being a {message.kind}; it is not"):
        envelope.check_slot(message, slot.subject)


def test_message_on_what_is_no_slot_and_one_of_another_slot_are_refused() -> None:
    message = envelope.decode(envelope.encode(STEP, task=TASK, device="pixel", turn=0, attempt="a"))
    for subject in ("task.pixel", f"task.pixel.{TASK}.0.scenes", f"task.pixel.{TASK}.1.planned", "request.any"):
        with pytest.raises(SubjectMismatch):
            envelope.check_slot(message, subject)
