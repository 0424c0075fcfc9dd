"""Subjects: what a slot is called, read back from its name, and by which string it is fenced."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_schemas import subjects
from apex_schemas.consumers import consumers
from apex_schemas.errors import SubjectMismatch
from apex_schemas.ids import derived_task_id, is_device, is_pool, is_task_id, new_attempt, new_task_id
from apex_schemas.slots import KINDS, Slot, finished, parse_slot, started
from apex_schemas.streams import STREAMS
from apex_schemas.subjects import TABLE

TASK = "4bf92f3577b34da6a3ce929d0e0e4736"
devices = st.from_regex(r"[a-z0-9-]{1,32}", fullmatch=True).filter(is_device)
tasks = st.from_regex(r"[0-9a-f]{32}", fullmatch=True).filter(is_task_id)
slots = st.one_of(
    st.builds(
        Slot,
        device=devices,
        task=tasks,
        kind=st.sampled_from([kind for kind in KINDS if kind != "finished"]),
        turn=st.integers(0, 10**6),
    ),
    st.builds(finished, st.one_of(devices, st.just("none")), tasks),
)


def matches(pattern: str, subject: str) -> bool:
    """As the server matches: `*` is one token, `>` one or more at the end."""
    wanted, found = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        return len(found) >= len(wanted) and matches(".".join(wanted[:-1]), ".".join(found[: len(wanted) - 1]))
    return len(wanted) == len(found) and all(a in ("*", b) for a, b in zip(wanted, found, strict=True))


@given(slots)
def test_slot_is_read_back_from_its_subject(slot: Slot) -> None:
    assert parse_slot(slot.subject) == slot


@given(slots)
def test_subject_of_a_slot_belongs_to_one_stream_and_one_row_of_the_table(slot: Slot) -> None:
    assert [each.name for each in STREAMS if any(matches(p, slot.subject) for p in each.subjects)] == ["TASKS"]
    rows = [row for row in TABLE if matches(row.pattern, slot.subject)]
    if slot.kind == "started" and slot.turn != 0:
        assert rows == []
    else:
        [row] = rows
        assert row.pattern.split(".")[-1] == slot.kind


@given(slots)
def test_fence_of_a_slot_matches_the_slot_itself(slot: Slot) -> None:
    assert matches(slot.fence(), slot.subject)


@given(slots, devices)
def test_fence_is_one_string_for_all_who_race_for_the_same(slot: Slot, other: str) -> None:
    """A replicated leader compares fences literally."""
    rival = Slot(device=other, task=slot.task, kind=slot.kind, turn=slot.turn)
    match slot.kind:
        case "started":
            assert slot.fence() == rival.fence() == finished("none", slot.task).fence()
        case "planned" | "acting":
            assert slot.fence() == finished(slot.device, slot.task).fence()
        case "finished":
            assert (slot.fence() == started(slot.device, slot.task).fence()) == (slot.device == "none")
        case _:
            assert slot.fence() == slot.subject


@given(st.text(max_size=80))
def test_text_is_a_slot_or_refused_and_never_anything_else(text: str) -> None:
    with contextlib.suppress(SubjectMismatch):
        assert parse_slot(text).subject == text


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "task",
        f"task.pixel.{TASK}.0",
        f"task.pixel.{TASK}.0.scene.x",
        f"tusk.pixel.{TASK}.0.scene",
        f"task..{TASK}.0.scene",
        f"task.*.{TASK}.0.scene",
        f"task.>.{TASK}.0.scene",
        f"task.any.{TASK}.0.scene",
        f"task.none.{TASK}.0.started",
        f"task.Pixel.{TASK}.0.scene",
        f"task.pixel.{TASK.upper()}.0.scene",
        f"task.pixel.{'0' * 32}.0.scene",
        f"task.pixel.{TASK}0.0.scene",
        "task.pixel.*.0.scene",
        f"task.pixel.{TASK}.00.scene",
        f"task.pixel.{TASK}.-1.scene",
        f"task.pixel.{TASK}.+1.scene",
        f"task.pixel.{TASK}.1_0.scene",
        f"task.pixel.{TASK}.٣.scene",
        f"task.pixel.{TASK}.².scene",
        f"task.pixel.{TASK}..scene",
        f"task.pixel.{TASK}.end.scene",
        f"task.pixel.{TASK}.0.finished",
        f"task.pixel.{TASK}.0.Scene",
        f"task.pixel.{TASK}.0.scenes",
        f" task.pixel.{TASK}.0.scene",
        f"task.pixel.{TASK}.0.scene\n",
        f"task.pixel\n.{TASK}.0.scene",
        f"task.pixel.{TASK}\n.0.scene",
        f"task.pixel.{TASK}.0\n.scene",
    ],
)
def test_subject_that_is_no_slot_is_refused(subject: str) -> None:
    with pytest.raises(SubjectMismatch):
        parse_slot(subject)


def test_sibling_keeps_the_task_and_counts_turns() -> None:
    slot = Slot(device="pixel", task=TASK, kind="event", turn=4)
    assert slot.sibling("scene", later=1).subject == f"task.pixel.{TASK}.5.scene"
    assert slot.sibling("finished", later=1) == finished("pixel", TASK)


@given(st.one_of(st.text(max_size=40), st.from_regex(r"[a-z0-9-]{1,33}", fullmatch=True)))
def test_name_of_a_device_or_pool_is_always_one_token(name: str) -> None:
    for accepts in (is_device, is_pool):
        if accepts(name):
            assert name == name.strip()
            assert not set(name) & set(".*> \t\r\n")
    if is_device(name):
        assert is_pool(name)
        assert name not in ("any", "android", "ios", "none")


@pytest.mark.parametrize("text", ["a\n", f"{'a' * 32}\n"])
def test_name_with_a_line_break_behind_it_is_none(text: str) -> None:
    assert not is_device(text)
    assert not is_pool(text)
    assert not is_task_id(text)


@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_task_id_that_is_made_for_a_request_is_one_and_the_same_each_time(timestamp: int, sequence: int) -> None:
    made = derived_task_id(timestamp, sequence)
    assert is_task_id(made)
    assert made == derived_task_id(timestamp, sequence) != derived_task_id(timestamp, sequence + 1)


def test_new_ids_are_ids_and_differ() -> None:
    assert is_task_id(new_task_id())
    assert len({new_attempt() for _ in range(1_000)} | {new_task_id() for _ in range(1_000)}) == 2_000


def test_every_consumer_of_an_installation_has_its_own_name_and_filters_within_its_stream() -> None:
    all_consumers = consumers(("pixel", "galaxy"))
    assert len({each.name for each in all_consumers}) == len(all_consumers)
    for consumer in all_consumers:
        stream = next(each for each in STREAMS if each.name == consumer.stream)
        for pattern in consumer.filters:
            assert pattern.split(".")[0] in {subject.split(".")[0] for subject in stream.subjects}, pattern


def test_subjects_that_code_takes_from_here_are_of_the_table() -> None:
    made = (
        subjects.request("any"), subjects.cancel(TASK), subjects.device("pixel"), subjects.claim(TASK, 0),
        subjects.shot(TASK, 0, "a"), subjects.decision(TASK, 0, 0), subjects.dead("planner"),
        subjects.session("pixel"), subjects.PLANNER_DECISION, subjects.QUERY_TASKS,
    )  # fmt: skip
    for subject in made:
        assert sum(matches(row.pattern, subject) for row in TABLE) == 1, subject
