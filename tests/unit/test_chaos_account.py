"""The account finds each thing that must not be: evidence that is in order, and one falsehood put into it at a time."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from apex_lab.chaos.account import account
from apex_lab.chaos.evidence import Act, Asked, Call, Decision, Evidence, Made, Stored, Tables
from apex_schemas.actions import Tap
from apex_schemas.geometry import Point, Size
from apex_schemas.scene import Scene, Screen
from apex_schemas.slots import Slot, finished, started
from apex_schemas.steps import ActIntent, PlannedStep, WorldEvent
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

TASK, DEVICE, SESSION = "a" * 32, "sim-1", "s-1"
TAP = Tap(at=Point(x=1, y=1))
CHANGES: dict[str, Callable[[Evidence], Evidence]] = {}


def slot(kind: Any, turn: int = 0) -> Slot:
    return Slot(device=DEVICE, task=TASK, kind=kind, turn=turn)


def stored(place: Slot, body: Any, at_ms: int) -> Stored:
    return Stored(place.subject, at_ms, at_ms, place, body)


def in_order() -> Evidence:
    """One task of one tap, killed at in between, and everything as it should be."""
    begin = TaskStarted(
        request=TaskRequest(goal="g", task=TASK), pool="any", request_sequence=1, request_digest="d", started_at_ms=1
    )
    scene = Scene(app="a", page="p", screen=Screen(size=Size(width=1, height=1)))
    end = TaskFinished(status="succeeded", turns=1, finished_at_ms=1, by="w")
    return Evidence(
        asked=(Asked(task=TASK, goal="g", expected="succeeded", at_ms=50, contact="Zoë", switch=("wifi", True)),),
        stored=(
            stored(started(DEVICE, TASK), begin, 100),
            stored(slot("scene"), scene, 200),
            stored(slot("planned"), PlannedStep(action=TAP, page="p"), 300),
            stored(slot("acting"), ActIntent(action=TAP, session=SESSION, deadline_ms=1, worker="w"), 400),
            stored(slot("event"), WorldEvent(action=TAP, success=True), 500),
            stored(finished(DEVICE, TASK), end, 600),
        ),
        decisions=(Decision(f"decision.{TASK}.0.0", 7),),
        acts=(Act(DEVICE, 1, 450, SESSION, "tap"),),
        calls=(Call(7, 210, 290, "planner-decision"),),
        made=(Made("kill", "executor", 460, 460),),
        tables=Tables(
            tasks=((TASK, "succeeded"),),
            steps=((TASK, 0, "tap", True, "tap", True),),
            scenes=((TASK, 0),),
            decisions=((TASK, 0, 0),),
        ),
        phones={
            DEVICE: {
                "apps": {
                    "com.android.contacts": {"contacts": [{"name": "Zoë"}]},
                    "com.android.settings": {"wifi": True},
                }
            }
        },
        workers={"w": "executor"},
        ended_ms=700,
    )


def change(name: str) -> Callable[[Callable[[Evidence], dict[str, Any]]], None]:
    def note(change: Callable[[Evidence], dict[str, Any]]) -> None:
        CHANGES[name] = lambda evidence: structs.replace(evidence, **change(evidence))

    return note


def without(evidence: Evidence, *kinds: str) -> tuple[Stored, ...]:
    return tuple(each for each in evidence.stored if each.slot is not None and each.slot.kind not in kinds)


def acts(*times: int, session: str = SESSION) -> dict[str, Any]:
    return {"acts": tuple(Act(DEVICE, n, at_ms, session, "tap") for n, at_ms in enumerate(times, start=1))}


change("acts_twice_for_one_decision")(lambda _: acts(450, 470))
change("acts_later_than_their_outcome")(lambda _: acts(450, 510))
change("acts_by_another_session")(lambda _: acts(450, session="s-0"))
change("successes_without_a_touch")(lambda _: acts())
change("tasks_lost")(lambda it: {"asked": (*it.asked, structs.replace(it.asked[0], task="b" * 32, contact=None))})
change("tasks_hung")(lambda it: {"stored": without(it, "finished")})
change("devices_left_busy")(lambda _: {"busy": (DEVICE,)})
change("slots_with_two_messages")(lambda it: {"stored": (*it.stored, it.stored[2])})
change("steps_with_two_outcomes")(
    lambda it: {
        "stored": (
            *it.stored,
            stored(Slot(device="sim-2", task=TASK, kind="event", turn=0), WorldEvent(action=TAP, success=None), 550),
        )
    }
)
change("unreadable_messages")(lambda it: {"stored": (*it.stored, Stored("task.x", 9, 650, None, None))})
change("contacts_not_once")(
    lambda it: {"phones": {**it.phones, "sim-2": {"apps": {"com.android.contacts": {"contacts": [{"name": "Zoë"}]}}}}}
)
change("switches_not_as_reported")(
    lambda it: {"phones": {DEVICE: {"apps": {**it.phones[DEVICE]["apps"], "com.android.settings": {"wifi": False}}}}}
)
change("calls_paid_twice_without_a_kill")(lambda it: {"calls": (*it.calls, Call(8, 210, 295, "planner-decision-2"))})
change("decisions_missing_in_postgres")(lambda it: {"tables": structs.replace(it.tables, decisions=())})
change("decisions_only_in_postgres")(lambda _: {"decisions": (), "calls": ()})
change("decisions_doubled_in_postgres")(
    lambda it: {"tables": structs.replace(it.tables, decisions=it.tables.decisions * 2)}
)
change("scenes_missing_in_postgres")(lambda it: {"tables": structs.replace(it.tables, scenes=())})
change("steps_doubled_in_postgres")(lambda it: {"tables": structs.replace(it.tables, steps=it.tables.steps * 2)})
change("tasks_doubled_in_postgres")(lambda it: {"tables": structs.replace(it.tables, tasks=it.tables.tasks * 2)})
change("ends_missing_in_postgres")(lambda it: {"tables": structs.replace(it.tables, tasks=((TASK, "running"),))})
for row, name in (
    ((TASK, 0, "swipe", True, "tap", True), "plans_missing_in_postgres"),
    ((TASK, 0, "tap", False, "tap", True), "intents_missing_in_postgres"),
    ((TASK, 0, "tap", True, "tap", None), "events_missing_in_postgres"),
):
    change(name)(lambda it, row=row: {"tables": structs.replace(it.tables, steps=(row,))})


def test_evidence_in_order_gives_zeros_everywhere_and_counts_what_took_place() -> None:
    report = account(in_order())
    assert not report.wrong
    assert not any(report.zeros.values())
    assert report.counts["kills_between_acting_and_event"] == 1
    assert report.counts["provider_calls_per_turn"] == 1
    assert report.kills_by_stage == {"executor": {"acting": 1}}
    assert report.recovery_s["max"] == pytest.approx(0.04)


def test_every_zero_has_a_falsehood_that_it_is_tried_with() -> None:
    assert set(account(in_order()).zeros) == set(CHANGES)


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_falsehood_is_found_under_its_own_name(name: str) -> None:
    report = account(CHANGES[name](in_order()))
    assert report.zeros[name] >= 1, report
    assert report.examples[name]
    assert report.wrong


@pytest.mark.parametrize("at_ms", [399, 500, 650])
def test_run_without_a_kill_in_an_act_proves_nothing(at_ms: int) -> None:
    report = account(structs.replace(in_order(), made=(Made("kill", "executor", at_ms, at_ms),)))
    assert [each for each in report.wrong if "no kill" in each]


def test_kill_of_another_executor_is_no_kill_in_the_act() -> None:
    report = account(structs.replace(in_order(), made=(Made("kill", "executor-2", 460, 460),)))
    assert report.counts["kills_between_acting_and_event"] == 0


@pytest.mark.parametrize(
    ("trouble", "explains"),
    [
        (Made("kill", "planner-decision-2", 290, 290), True),
        (Made("kill", "planner-decision", 290, 290), False),
        (Made("kill", "planner-decision-2", 90_000, 90_000), False),
        (Made("pause", "planner-decision-2", 100, 20_000), True),
        (Made("cut", "planner-decision-2", 290, 290), False),
        (Made("nats", "nats", 290, 290), False),
    ],
)
def test_call_without_a_record_is_explained_by_a_kill_or_pause_of_who_made_it_alone(
    trouble: Made, explains: bool
) -> None:
    evidence = in_order()
    lost = structs.replace(
        evidence, calls=(*evidence.calls, Call(8, 210, 295, "planner-decision-2")), made=(*evidence.made, trouble)
    )
    report = account(lost)
    assert report.counts["provider_calls_lost_before_their_record"] == 1
    assert report.zeros["calls_paid_twice_without_a_kill"] == (0 if explains else 1)


def test_act_in_hand_when_its_task_is_cancelled_is_counted_and_no_late_act() -> None:
    evidence = in_order()
    cancelled = [
        each if each.slot and each.slot.kind != "finished" else each._replace(at_ms=420) for each in evidence.stored
    ]
    report = account(structs.replace(evidence, stored=tuple(cancelled)))
    assert report.zeros["acts_later_than_their_outcome"] == 0
    assert report.counts["acts_in_hand_when_their_task_was_ended"] == 1


def test_act_without_an_event_after_the_next_task_has_begun_is_too_late() -> None:
    evidence = in_order()
    begin = evidence.stored[0].body
    following = stored(started(DEVICE, "b" * 32), begin, 440)
    report = account(structs.replace(evidence, stored=(*without(evidence, "event"), following)))
    assert report.zeros["acts_later_than_their_outcome"] == 1
