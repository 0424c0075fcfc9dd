"""The executor's decisions: what an event says, how a task ends, who is late."""

import math
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_executor import decide
from apex_executor.decide import Late, Limits
from apex_executor.outcomes import Failure, Outcome
from apex_schemas.actions import DescribeScreen, FinishTask, Look, Tap
from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.scene import Element, Scene, Screen, ScreenshotRef
from apex_schemas.slots import Kind
from apex_schemas.steps import PlannedStep, Target, Timings, WorldEvent

TAP = Tap(at=Point(x=1, y=2))
TARGET = Target(element="e1", role="button", label="Save", bounds=Bounds(left=0, top=0, right=4, bottom=4))
KINDS: tuple[Kind, ...] = ("started", "event", "scene", "planned", "acting")
LIMITS = Limits(perception=90, planner=300, executor=150)
TOLD = (
    "screen_changed",
    "page",
    "target",
    "purpose",
    "expected_outcome",
    "rationale",
    "thinking",
    "ungrounded",
    "fingerprint",
    "tokens_used",
)
seconds = st.floats(min_value=0, max_value=1e6, allow_nan=False)
limit = st.floats(min_value=0.5, max_value=3_600)


def step(action: Any = TAP, **fields: Any) -> PlannedStep:
    return PlannedStep(
        action=action, page="A > B", target=TARGET, purpose="p", expected_outcome="e", rationale="r", thinking="t",
        ungrounded=True, fingerprint="f", tokens_used=7, screen_changed=False, **fields,
    )  # fmt: skip


def scene(elements: int, **fields: Any) -> Scene:
    listed = tuple(Element(id=f"e{number}", role="text") for number in range(elements))
    return Scene(app="a", page="A", screen=Screen(size=Size(width=1, height=1)), elements=listed, **fields)


@pytest.mark.parametrize(
    "event",
    [
        decide.event_of_outcome(step(), Outcome(success=True), session="s", timings=Timings(act_ms=5), now_ms=7),
        decide.event_of_failure(step(), Failure("OFF_SCREEN", False, False, "m"), session="s", now_ms=7),
        decide.event_of_refusal(step(), "STALE_SCENE", "m", session="s", now_ms=7),
        decide.event_unknown(step(), session="s", now_ms=7),
        decide.event_without_act(step(Look(code="c", reason="r")), None, session="s", now_ms=7),
        decide.event_without_act(step(DescribeScreen()), scene(1), session="s", now_ms=7),
    ],
    ids=["outcome", "failure", "refusal", "unknown", "look", "description"],
)
def test_every_event_tells_its_decision_unchanged(event: WorldEvent) -> None:
    for name in TOLD:
        assert getattr(event, name) == getattr(step(), name), name
    assert (event.session, event.happened_at_ms) == ("s", 7)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(success=True), (True, None, None)),
        (Outcome(success=False, code="TEXT_DIFFERS", message="m"), (False, "TEXT_DIFFERS", "m")),
        (Outcome(success=True, code="UNREADABLE", message="m"), (True, "UNREADABLE", "m")),
    ],
)
def test_outcome_is_told_as_observed(outcome: Outcome, said: tuple[Any, ...]) -> None:
    timings = Timings(wait_ms=1, verify_ms=2, act_ms=3, read_back_ms=4)
    event = decide.event_of_outcome(step(), outcome, session="s", timings=timings, now_ms=0)
    assert (event.success, event.code, event.message) == said
    assert event.timings == timings


@pytest.mark.parametrize(("acted", "success"), [(False, False), (None, None), (True, None)])
def test_failure_is_told_as_failed_only_where_nothing_was_done(acted: bool | None, success: bool | None) -> None:
    event = decide.event_of_failure(step(), Failure("C", acted, True, "m"), session=None, now_ms=0)
    assert (event.success, event.code, event.message) == (success, "C", "m")


def test_unknown_and_refused_are_not_the_same() -> None:
    assert decide.event_unknown(step(), session=None, now_ms=0).success is None
    assert decide.event_of_refusal(step(), "C", "m", session=None, now_ms=0).success is False


def test_look_tells_its_reason_and_is_no_success() -> None:
    event = decide.event_without_act(step(Look(code="SCENE_TOO_OLD", reason="why")), None, session=None, now_ms=0)
    assert (event.success, event.code, event.message, event.scene_summary) == (False, "SCENE_TOO_OLD", "why", None)


@pytest.mark.parametrize(("elements", "kept", "omitted"), [(3, 3, 2), (80, 80, 2), (200, 80, 122)])
def test_description_carries_the_scene_cut_to_size_and_counts_the_rest(elements: int, kept: int, omitted: int) -> None:
    picture = ScreenshotRef(subject="shot.x", sha256="0", bytes=1, size=Size(width=1, height=1))
    seen = scene(elements, omitted=2, screenshot=picture)
    event = decide.event_without_act(step(DescribeScreen()), seen, session=None, now_ms=0)
    assert event.success is True
    assert event.scene_summary is not None
    assert len(event.scene_summary.elements) == kept
    assert (event.scene_summary.omitted, event.scene_summary.screenshot) == (omitted, None)


def test_description_without_a_scene_is_no_success() -> None:
    event = decide.event_without_act(step(DescribeScreen()), None, session=None, now_ms=0)
    assert (event.success, event.scene_summary) == (False, None)


def test_act_is_never_told_as_a_turn_without_one() -> None:
    with pytest.raises(AssertionError, match="Tap touches the phone"):
        decide.event_without_act(step(), None, session=None, now_ms=0)


@pytest.mark.parametrize(
    ("success", "status", "failure", "stage"), [(True, "succeeded", None, None), (False, "failed", "why", "planner")]
)
def test_end_by_the_model_keeps_claim_and_finding_apart(
    success: bool, status: str, failure: str | None, stage: str | None
) -> None:
    action = FinishTask(success=success, reason="why", answer="ApexLab", evidence="Connected")
    planned = step(action, evidence_found=False)
    end = decide.finished_by_model(planned, action, turn=4, goal="g", by="w", now_ms=9)
    assert (end.status, end.reason, end.failure_reason, end.stage) == (status, "why", failure, stage)
    assert (end.claimed, end.evidence, end.evidence_found, end.answer) == (success, "Connected", False, "ApexLab")
    assert (end.turns, end.goal, end.by, end.finished_at_ms) == (5, "g", "w", 9)


@given(
    newest=st.sampled_from(KINDS),
    waited=seconds,
    running=seconds,
    timeout=limit,
    limits=st.builds(Limits, limit, limit, limit),
)
def test_task_is_ended_when_a_limit_is_over_and_never_before(
    newest: Kind, waited: float, running: float, timeout: float, limits: Limits
) -> None:
    stage_limit = getattr(limits, decide._STAGE[newest])
    verdict = decide.late(newest, waited_s=waited, running_s=running, timeout_s=timeout, limits=limits)
    if waited < stage_limit and running < timeout:
        assert isinstance(verdict, float)
        assert math.isfinite(verdict)
        assert verdict > 0
        # Not later than the first limit, so that nobody sleeps over it.
        assert verdict <= stage_limit - waited
        assert verdict <= timeout - running
    else:
        assert isinstance(verdict, Late)
        assert verdict.stage == decide._STAGE[newest]


@pytest.mark.parametrize(
    ("newest", "stage", "limit"),
    [
        ("started", "perception", 90),
        ("event", "perception", 90),
        ("scene", "planner", 300),
        ("planned", "executor", 150),
        ("acting", "executor", 150),
    ],
)
def test_late_one_is_named_with_its_limit(newest: Kind, stage: str, limit: int) -> None:
    verdict = decide.late(newest, waited_s=limit, running_s=0, timeout_s=9_999, limits=LIMITS)
    assert isinstance(verdict, Late)
    assert verdict.stage == stage
    assert verdict.reason.startswith(f"{stage} gave no answer within {limit} s")


def test_whole_task_that_takes_too_long_is_told_as_such() -> None:
    verdict = decide.late("scene", waited_s=1, running_s=60, timeout_s=60, limits=LIMITS)
    assert verdict == Late("planner", "not done within 60 s; it was waiting for planner")


@given(waited=seconds, running=seconds)
def test_finished_task_is_never_late(waited: float, running: float) -> None:
    assert decide.late("finished", waited_s=waited, running_s=running, timeout_s=5, limits=LIMITS) == math.inf


def test_every_kind_of_slot_has_a_stage_that_it_waits_for() -> None:
    assert set(decide._STAGE) == set(get_args(Kind)) - {"finished"}
    assert set(decide._STAGE.values()) == set(Limits._fields)


@pytest.mark.parametrize(
    ("newest", "turn", "turns"),
    [("started", 0, 0), ("scene", 0, 1), ("planned", 3, 4), ("acting", 3, 4), ("event", 3, 4)],
)
def test_turns_are_those_that_were_begun(newest: Kind, turn: int, turns: int) -> None:
    assert decide.turns_of(newest, turn) == turns
