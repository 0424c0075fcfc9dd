"""The account: what must be zero, and what is counted, from the evidence alone. Pure.

An act belongs to the decision in whose time it fell: from `acting` to its `event`, on that device. One that falls
into no such time came too late, whatever it was.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from apex_lab.chaos import postgres_account
from apex_lab.chaos.evidence import Act, Asked, Call, Evidence, Made, Stored
from apex_lab.chaos.turns import Deed, deeds_of, touches_allowed, touches_needed
from apex_schemas.slots import Kind
from apex_schemas.task import TaskFinished

_EXPLAINS: Final = ("kill", "pause")
_RECORDED_WITHIN_MS: Final = 5_000
"""How long an answer may take to be on record, on a busy machine and with the log in reach."""


class Report(Struct, frozen=True, kw_only=True):
    """`zeros` must all be 0; `counts` are for the reader; `examples` say where a zero was none."""

    zeros: dict[str, int]
    counts: dict[str, Any]
    kills_by_stage: dict[str, dict[str, int]]
    recovery_s: dict[str, float]
    examples: dict[str, list[str]]

    @property
    def wrong(self) -> list[str]:
        """What does not hold; an account of a run in which nothing could have gone wrong proves nothing."""
        wrong = [f"{name}: {count}" for name, count in self.zeros.items() if count]
        if not self.counts["kills_between_acting_and_event"]:
            wrong.append("no kill fell between acting and event, so nothing was proven; let it run longer")
        if self.counts["tasks_as_undisturbed"] * 2 < self.counts["tasks_asked"]:
            wrong.append("most tasks did not end as they do without trouble; see how they ended")
        return wrong


def account(evidence: Evidence) -> Report:
    """Compare all witnesses."""
    found: dict[str, list[str]] = {}
    deeds = deeds_of(evidence.stored)
    touched = _attribute(evidence.acts, deeds, evidence.stored, found)
    ends = _of_kind(evidence.stored, "finished")
    begun = {each.slot.task for each in _of_kind(evidence.stored, "started") if each.slot}
    ended = {each.slot.task: each for each in ends if each.slot}
    asked = {each.task: each for each in evidence.asked}
    found["tasks_lost"] = [task for task in asked if task not in begun and task not in ended]
    found["tasks_hung"] = [task for task in begun if task not in ended]
    found["devices_left_busy"] = list(evidence.busy)
    found["slots_with_two_messages"] = _repeated(each.subject for each in evidence.stored)
    found["steps_with_two_outcomes"] = _two_outcomes(evidence.stored)
    found["unreadable_messages"] = [each.subject for each in evidence.stored if each.slot is None]
    found["acts_twice_for_one_decision"] = _twice(deeds, touched)
    found["successes_without_a_touch"] = _untouched(deeds, touched)
    found["contacts_not_once"] = _contacts(evidence, ended)
    found["switches_not_as_reported"] = _switches(evidence, ended)
    found["calls_paid_twice_without_a_kill"], lost_calls = _paid_twice(evidence)
    found |= postgres_account.compare(evidence)
    unknown = [deed for deed in deeds if deed.event is not None and deed.event.success is None]
    turns = len({each.subject.rpartition(".")[0] for each in evidence.decisions})
    counts: dict[str, Any] = {
        "tasks_asked": len(asked),
        "tasks_begun": len(begun),
        "tasks_finished": len(ended),
        "ends": dict(Counter(each.body.status for each in ended.values())),
        "tasks_as_undisturbed": sum(
            each.body.status == asked[task].expected for task, each in ended.items() if task in asked
        ),
        "ends_otherwise_than_undisturbed": _otherwise(asked, ended),
        "acts": len(evidence.acts),
        "decisions_to_act": len(deeds),
        "unknown_outcomes": len(unknown),
        "unknown_outcomes_that_had_touched": sum(bool(touched[id(deed)]) for deed in unknown),
        "acts_in_hand_when_their_task_was_ended": sum(
            deed.finished_ms is not None and act.at_ms > deed.finished_ms for deed in deeds for act in touched[id(deed)]
        ),
        "provider_calls": len(evidence.calls),
        "provider_calls_per_turn": round(len(evidence.calls) / max(1, turns), 3),
        "provider_calls_lost_before_their_record": lost_calls,
        "dead_letters": evidence.dead_letters,
        "processes_that_ended_by_themselves": evidence.crashes,
        "trouble": dict(Counter(each.kind for each in evidence.made)),
        "kills_between_acting_and_event": kills_in_act(evidence.made, deeds, evidence.workers),
    }
    return Report(
        zeros={name: len(where) for name, where in found.items()},
        counts=counts,
        kills_by_stage=_kills_by_stage(evidence.made, evidence.stored),
        recovery_s=_recovery(evidence.made, evidence.stored),
        examples={name: where[:5] for name, where in found.items() if where},
    )


def _of_kind(stored: Iterable[Stored], kind: Kind) -> list[Stored]:
    return [each for each in stored if each.slot is not None and each.slot.kind == kind]


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _two_outcomes(stored: Sequence[Stored]) -> list[str]:
    """A task that started or ended twice, a turn with two plans, intents or events, on whichever devices."""
    places = Counter((each.slot.task, each.slot.turn, each.slot.kind) for each in stored if each.slot is not None)
    return [f"{kind} {turn} of {task}" for (task, turn, kind), times in places.items() if times > 1]


def _attribute(
    acts: Sequence[Act], deeds: Sequence[Deed], stored: Sequence[Stored], found: dict[str, list[str]]
) -> dict[int, list[Act]]:
    """Acts by the deed in whose time they fell; the others are too late."""
    by_device: dict[str, list[Deed]] = defaultdict(list)
    for deed in deeds:
        by_device[deed.device].append(deed)
    freed: dict[str, list[int]] = defaultdict(list)
    for each in _of_kind(stored, "started"):
        if each.slot is not None:
            freed[each.slot.device].append(each.at_ms)
    touched: dict[int, list[Act]] = {id(deed): [] for deed in deeds}
    late: list[str] = []
    foreign: list[str] = []
    for act in acts:
        inside = [
            deed for deed in by_device[act.phone] if deed.acting_ms <= act.at_ms <= _until(deed, freed[act.phone])
        ]
        mine = next((deed for deed in inside if deed.session == act.session), None)
        if mine is not None:
            touched[id(mine)].append(act)
        elif inside:
            foreign.append(f"{act.kind} {act.n} of {act.phone} by session {act.session}")
        else:
            late.append(f"{act.kind} {act.n} of {act.phone} at {act.at_ms}, {_before(act, by_device[act.phone])}")
    found["acts_later_than_their_outcome"] = late
    found["acts_by_another_session"] = foreign
    return touched


def _until(deed: Deed, begun: Sequence[int]) -> float:
    """When a deed's time is over: at its event; without one, when the device was free for the next task."""
    if deed.event_ms is not None:
        return deed.event_ms
    return next((at_ms for at_ms in begun if at_ms > deed.acting_ms), float("inf"))


def _before(act: Act, deeds: Sequence[Deed]) -> str:
    last = next((deed for deed in reversed(deeds) if deed.acting_ms <= act.at_ms), None)
    return "before any decision" if last is None else f"after {last.name}, whose event came at {last.event_ms}"


def _twice(deeds: Sequence[Deed], touched: dict[int, list[Act]]) -> list[str]:
    return [
        f"{deed.name}: {dict(done)}"
        for deed in deeds
        if (done := Counter(act.kind for act in touched[id(deed)])) - touches_allowed(deed.action)
    ]


def _untouched(deeds: Sequence[Deed], touched: dict[int, list[Act]]) -> list[str]:
    return [
        deed.name
        for deed in deeds
        if deed.event is not None
        and deed.event.success is True
        and touches_needed(deed.action) - Counter(act.kind for act in touched[id(deed)])
    ]


def _contacts(evidence: Evidence, ended: dict[str, Stored]) -> list[str]:
    """Contacts that are there twice, or not at all though their task is said to have succeeded."""
    there: Counter[str] = Counter()
    for state in evidence.phones.values():
        there.update(one["name"] for one in state["apps"]["com.android.contacts"]["contacts"])
    wrong: list[str] = []
    for asked in evidence.asked:
        if asked.contact is not None:
            end = ended.get(asked.task)
            must = end is not None and end.body.status == "succeeded"
            if there[asked.contact] > 1 or (must and there[asked.contact] != 1):
                wrong.append(f"{asked.contact}: {there[asked.contact]} times, task {asked.task}")
    return wrong


def _switches(evidence: Evidence, ended: dict[str, Stored]) -> list[str]:
    """Switches that do not stand as the last task about them, which succeeded, left them."""
    last: dict[tuple[str, str], tuple[int, bool | None, str]] = {}
    for asked in evidence.asked:
        end = ended.get(asked.task)
        if asked.switch is None or end is None or end.slot is None:
            continue
        name, wanted = asked.switch
        place = (end.slot.device, name)
        if end.at_ms > last.get(place, (0, None, ""))[0]:
            last[place] = (end.at_ms, wanted if end.body.status == "succeeded" else None, asked.task)
    return [
        f"{name} of {device}, task {task}"
        for (device, name), (_, wanted, task) in last.items()
        if wanted is not None and evidence.phones[device]["apps"]["com.android.settings"][name] is not wanted
    ]


def _otherwise(asked: dict[str, Asked], ended: dict[str, Stored]) -> dict[str, int]:
    reasons: Counter[str] = Counter()
    for task, end in ended.items():
        body: TaskFinished = end.body
        known = asked.get(task)
        if known is not None and body.status not in (known.expected, "cancelled"):
            reasons[f"{body.status}: {(body.failure_reason or body.reason)[:100]}"] += 1
    return dict(reasons)


def _paid_twice(evidence: Evidence) -> tuple[list[str], int]:
    """Calls whose answer is in no record, and that no kill or pause of their process between call and record
    explains; and how many there were in all. A process has a minute to store a record."""
    recorded = {each.serial for each in evidence.decisions}
    lost = [call for call in evidence.calls if call.serial not in recorded]
    return [f"call {call.serial} of {call.process}" for call in lost if not _explained(call, evidence.made)], len(lost)


def _explained(call: Call, made: Sequence[Made]) -> bool:
    freed_ms = [each.until_ms for each in made if _kept_from_recording(call, each)]
    until = max([call.ended_ms, *freed_ms]) + _RECORDED_WITHIN_MS
    return any(
        each.kind in _EXPLAINS and each.target == call.process and each.at_ms <= until
        and each.until_ms >= call.began_ms
        for each in made
    )  # fmt: skip


def _kept_from_recording(call: Call, trouble: Made) -> bool:
    """Whether the log was out of the process's reach when its call had been answered: it goes on trying then."""
    reach = trouble.kind == "nats" or (trouble.target == call.process and trouble.kind in ("cut", "delay", "freeze"))
    return reach and trouble.at_ms <= call.ended_ms + _RECORDED_WITHIN_MS and trouble.until_ms >= call.began_ms


def kills_in_act(made: Sequence[Made], deeds: Sequence[Deed], workers: dict[str, str]) -> int:
    """Kills of the executor that had the act in hand: after `acting`, before any `event`."""
    return sum(
        workers.get(deed.worker) == kill.target and deed.acting_ms <= kill.at_ms < (deed.event_ms or float("inf"))
        for kill in made
        if kill.kind == "kill" and kill.target.startswith("executor")
        for deed in deeds
    )


def _kills_by_stage(made: Sequence[Made], stored: Sequence[Stored]) -> dict[str, dict[str, int]]:
    """For each kill the newest slot of every task that ran at that time, by who was killed."""
    tasks = _histories(stored)
    stages: dict[str, Counter[str]] = defaultdict(Counter)
    for each in made:
        if each.kind in ("kill", "nats", "postgres"):
            name = each.target if each.kind != "kill" else each.target.rstrip("-0123456789")
            at = [stage for history in tasks.values() if (stage := _stage(history, each.at_ms))]
            stages[name].update(at or ["no task"])
    return {name: dict(counted) for name, counted in sorted(stages.items())}


def _histories(stored: Sequence[Stored]) -> dict[str, list[Stored]]:
    tasks: dict[str, list[Stored]] = defaultdict(list)
    for each in stored:
        if each.slot is not None:
            tasks[each.slot.task].append(each)
    return tasks


def _stage(history: Sequence[Stored], at_ms: int) -> str | None:
    newest = next((each for each in reversed(history) if each.at_ms <= at_ms), None)
    return None if newest is None or newest.slot is None or newest.slot.kind == "finished" else newest.slot.kind


def _recovery(made: Sequence[Made], stored: Sequence[Stored]) -> dict[str, float]:
    """From each trouble to the next slot of each task that ran at that time."""
    waits: list[int] = []
    for history in _histories(stored).values():
        for each in made:
            if _stage(history, each.at_ms) is not None:
                after = next((one.at_ms for one in history if one.at_ms > each.at_ms), None)
                waits += [] if after is None else [after - each.at_ms]
    waits.sort()
    if not waits:
        return {"p50": 0.0, "max": 0.0}
    return {
        "p50": waits[len(waits) // 2] / 1_000,
        "p95": waits[len(waits) * 95 // 100] / 1_000,
        "max": waits[-1] / 1_000,
    }
