"""The protocol in virtual time: the real code on a log and phones that misbehave, by thousands of seeds.

And a test of this tester: with one rule of the protocol taken away it finds what that rule is there to prevent.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator

import pytest
from chaos import virtual_clock
from chaos.virtual_log import Faults
from chaos.virtual_rules import BROKEN, CUT, HARSH, LAGGING, PAUSED
from chaos.virtual_world import World, simulated

from apex_bus.tasklog import Entry, entry_of

SEEDS = int(os.environ.get("APEX_TEST_SEEDS", "2000"))
SEEDS_A_TEST = 100
BROKEN_SEEDS = 450


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def played(seed: int, faults: Faults | None = None, *, cancelled: float = 0.3) -> World:
    with simulated():
        world = World(seed, faults or Faults(), cancelled=cancelled)
        virtual_clock.run(world.run())
        return world


def wrong(world: World) -> list[str]:
    """What must not be, found in the log, on the phones and at the provider."""
    slots = [entry_of(each) for each in world.log.stored if each.subject.startswith("task.")]
    by_kind: dict[str, list[Entry]] = {}
    for entry in slots:
        by_kind.setdefault(entry.slot.kind, []).append(entry)
    found: list[str] = list(world.failures)
    for task in world.numbers:
        starts = [each for each in by_kind.get("started", []) if each.slot.task == task]
        ends = [each for each in by_kind.get("finished", []) if each.slot.task == task]
        if len(starts) > 1:
            found.append(f"{task} was started {len(starts)} times")
        if len(ends) != 1:
            found.append(f"{task} has {len(ends)} ends")
        for acting in (each for each in by_kind.get("acting", []) if each.slot.task == task):
            if ends and acting.sequence > ends[0].sequence:
                found.append(f"{acting.slot.subject} was begun after the end")
    if not world.free:
        found.append("a device is still on a task")
    found += _acts(world, by_kind)
    for key, lives in world.paid.items():
        if len(lives) > 1 and not any(life.dead or life.paused_until for life in lives):
            found.append(f"turn {key.turn} was paid {len(lives)} times without a kill or pause")
    return found


def _acts(world: World, by_kind: dict[str, list[Entry]]) -> list[str]:
    times: dict[tuple[int, int], list[float]] = {}
    for phone in world.phones.values():
        for at, number, turn in phone.acts:
            times.setdefault((number, turn), []).append(at)
    found = [
        f"task {number} turn {turn}: touched {len(at)} times" for (number, turn), at in times.items() if len(at) > 1
    ]
    for event in by_kind.get("event", []):
        number, _ = world.numbers[event.slot.task]
        at = times.get((number, event.slot.turn or 0), [])
        stored_at = event.timestamp_ns / 1e9 - virtual_clock.EPOCH_S
        if any(each > stored_at + 1e-6 for each in at):
            found.append(f"{event.slot.subject}: touched after its outcome {event.body.success}")
        if event.body.success is True and not at:
            found.append(f"{event.slot.subject}: success without a touch")
        if event.body.success is False and at:
            found.append(f"{event.slot.subject}: said to be not done, and was")
    return found


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_nothing_is_lost_doubled_or_late_whatever_is_lost_repeated_killed_and_paused(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, min(SEEDS, first + SEEDS_A_TEST)):
        world = played(seed)
        assert not wrong(world), f"seed {seed}: {wrong(world)}"
        seen.update(crashes=world.crashes, pauses=world.pauses, server=world.server_crashes)
        seen.update(acts=sum(len(phone.acts) for phone in world.phones.values()))
        seen.update(unknown=sum(each.subject.endswith(".event") and entry_of(each).body.success is None
                                for each in world.log.stored))  # fmt: skip
    assert min(seen.values()) > 0, f"nothing was tried: {seen}"


def test_equal_seeds_give_equal_runs() -> None:
    def told(world: World) -> list[object]:
        return [*world.log.stored, *[phone.acts for phone in world.phones.values()], world.points, world.ended_s]

    first, other = told(played(7)), told(played(8))
    assert told(played(7)) == first != other
    assert len(first) > 50


def test_world_without_faults_ends_every_task_with_every_act_once() -> None:
    quiet = Faults(until=0)
    world = played(1, quiet)
    assert not wrong(world)
    assert world.ended_s < 120
    assert world.crashes == world.pauses == 0


@pytest.mark.parametrize("name", BROKEN)
def test_simulation_finds_a_protocol_that_is_broken(name: str) -> None:
    form, symptom, faults, cancelled = BROKEN[name]
    with form():
        for seed in range(BROKEN_SEEDS):
            found = wrong(played(seed, faults, cancelled=cancelled))
            if any(part in each for each in found for part in symptom.split("|")):
                return
    pytest.fail(f"{BROKEN_SEEDS} seeds did not find what is broken")


@pytest.mark.parametrize(
    ("faults", "cancelled"),
    [(HARSH, 0.8), (PAUSED, 0), (CUT, 0.3), (LAGGING, 0.9)],
    ids=["harsh", "paused", "cut", "lagging"],
)
def test_faults_that_break_the_broken_forms_do_not_break_the_real_one(faults: Faults, cancelled: float) -> None:
    for seed in range(50):
        assert not wrong(played(seed, faults, cancelled=cancelled)), seed
