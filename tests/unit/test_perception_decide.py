"""When a Scene is wanted, when a screen has settled, when a picture is worth taking."""

import pytest

from apex_bus.errors import SettingsError
from apex_perception.decide import (
    ReadAgain,
    Settled,
    after_reads,
    is_on_task,
    next_turn,
    patience_s,
    wants_picture,
)
from apex_perception.settings import load_settings
from apex_schemas.actions import FinishTask, LaunchApp, Look, Tap
from apex_schemas.devices import Claim, DeviceRecord
from apex_schemas.geometry import Point
from apex_schemas.steps import WorldEvent
from apex_schemas.task import TaskRequest, TaskStarted

STARTED = TaskStarted(
    request=TaskRequest(goal="g"), pool="any", request_sequence=1, request_digest="d", started_at_ms=1
)
TAP = WorldEvent(action=Tap(at=Point(x=1, y=1)), success=True)


def look(*reads: str, elapsed: float = 0.01, before: str | None = None, patience: float = 0.0) -> Settled | ReadAgain:
    return after_reads(reads, elapsed_s=elapsed, before=before, patience=patience, cap_s=5.0)


def test_a_start_asks_for_turn_0_an_event_for_the_next_and_the_end_for_none() -> None:
    assert next_turn(STARTED, 0) == 0
    assert next_turn(TAP, 4) == 5
    assert next_turn(WorldEvent(action=FinishTask(success=True, reason="r"), success=True), 4) is None


def test_only_the_task_in_the_record_is_looked_at() -> None:
    record = DeviceRecord(
        worker="w", epoch=1, claim=Claim(task="a", request=b"", request_sequence=1, pool="any", attempt="x")
    )
    assert is_on_task(record, "a")
    assert not is_on_task(record, "b")
    assert not is_on_task(DeviceRecord(worker="w", epoch=1), "a")
    assert not is_on_task(None, "a")


def test_two_equal_reads_settle_at_once_and_one_never_does() -> None:
    assert look("a") == ReadAgain(0.0)
    assert look("a", elapsed=99) == ReadAgain(0.0)
    assert look("a", "a") == Settled(True)
    assert look("b", "a", "a") == Settled(True)


def test_a_moving_screen_is_read_until_the_cap_and_then_said_to_be_unsettled() -> None:
    pauses = [look(*"abcdefghijkl"[:n]) for n in range(2, 12)]
    waits = [pause.pause_s for pause in pauses if isinstance(pause, ReadAgain)]
    assert len(waits) == len(pauses)
    assert waits == sorted(waits)
    assert max(waits) <= 0.25
    assert look("a", "b", elapsed=5.0) == Settled(False)


def test_an_unchanged_screen_after_an_act_is_given_time_to_begin_to_change() -> None:
    assert isinstance(look("a", "a", before="a", patience=0.3), ReadAgain)
    assert look("a", "a", before="a", patience=0.3, elapsed=0.3) == Settled(True)
    assert look("b", "b", before="a", patience=0.3) == Settled(True)


def test_a_screen_with_nothing_to_use_is_given_seconds_to_become_another() -> None:
    def bare(elapsed: float) -> Settled | ReadAgain:
        return after_reads(["a", "a"], elapsed_s=elapsed, before=None, patience=0.0, cap_s=5.0, bare=True)

    assert isinstance(bare(0.5), ReadAgain)
    assert bare(2.5) == Settled(True)


def test_patience_is_for_acts_that_may_have_an_effect_only() -> None:
    assert patience_s(STARTED) == 0
    assert patience_s(WorldEvent(action=Look(code="c", reason="r"), success=True)) == 0
    assert patience_s(WorldEvent(action=TAP.action, success=False)) == 0
    unknown = WorldEvent(action=TAP.action, success=None)
    assert patience_s(unknown) == patience_s(TAP) > 0
    assert patience_s(WorldEvent(action=LaunchApp(app="a"), success=True)) > patience_s(TAP)


@pytest.mark.parametrize(
    ("mode", "little", "taken"),
    [("always", False, True), ("never", True, False), ("auto", True, True), ("auto", False, False)],
)
def test_a_picture_is_taken_as_the_mode_says(mode: str, little: bool, taken: bool) -> None:
    settings = load_settings({"AI_PLANNER_SCREENSHOT": mode})
    assert wants_picture(settings.screenshot, tree_says_little=little) is taken


def test_a_setting_that_is_not_allowed_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="PERCEPTION_CONCURRENCY"):
        load_settings({"PERCEPTION_CONCURRENCY": "0"})
    with pytest.raises(SettingsError, match="AI_PLANNER_SCREENSHOT"):
        load_settings({"AI_PLANNER_SCREENSHOT": "sometimes"})
