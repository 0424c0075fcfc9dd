"""The protocol in virtual time: the real code on a log and phones that misbehave, by hundreds of seeds.

And a test of this tester: with one rule of the protocol taken away it finds what that rule is there to prevent.
"""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

import pytest
from chaos import virtual_clock
from chaos.virtual_log import NEVER, Faults
from chaos.virtual_phone import VirtualSession
from chaos.virtual_world import World, simulated

from apex_bus.tasklog import Entry, Filled, TaskLog, entry_of
from apex_executor.turns import Turns
from apex_schemas.slots import Slot
from apex_schemas.steps import ActIntent

SEEDS = int(os.environ.get("APEX_TEST_SEEDS", "160"))
BROKEN_SEEDS = 450


def played(seed: int, faults: Faults | None = None, *, cancelled: float = 0.3) -> World:
    logging.disable(logging.CRITICAL)
    try:
        with simulated():
            world = World(seed, faults or Faults(), cancelled=cancelled)
            virtual_clock.run(world.run())
            return world
    finally:
        logging.disable(logging.NOTSET)


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
        if len(lives) > 1 and not any(life.dead or life.paused_until for life in lives[:-1]):
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


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_nothing_is_lost_doubled_or_late_whatever_is_lost_repeated_killed_and_paused(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + 20):
        world = played(seed)
        assert not wrong(world), f"seed {seed}: {wrong(world)}"
        seen.update(crashes=world.crashes, pauses=world.pauses, server=world.server_crashes)
        seen.update(acts=sum(len(phone.acts) for phone in world.phones.values()))
        seen.update(unknown=sum(each.subject.endswith(".event") and entry_of(each).body.success is None
                                for each in world.log.stored))  # fmt: skip
    assert min(seen.values()) > 0, f"nothing was tried: {seen}"


def test_world_without_faults_ends_every_task_with_every_act_once() -> None:
    quiet = Faults(until=0)
    world = played(1, quiet)
    assert not wrong(world)
    assert world.ended_s < 120
    assert world.crashes == world.pauses == 0


Fill = Callable[..., Any]
_fill: Fill = TaskLog.fill


@contextmanager
def no_intent() -> Iterator[None]:
    """`acting` is written, and what the log says to that is not heeded."""

    async def fill(self: TaskLog, slot: Slot, body: Any, **more: Any) -> Any:
        outcome = await _fill(self, slot, body, **more)
        return Filled(0) if isinstance(body, ActIntent) else outcome

    with mock.patch.object(TaskLog, "fill", fill):
        yield


@contextmanager
def ack_in_place_of_slot() -> Iterator[None]:
    """Whether an act is to be done is told by how often its message was delivered."""

    async def fill(self: TaskLog, slot: Slot, body: Any, **more: Any) -> Any:
        outcome = await _fill(self, slot, body, **more)
        if isinstance(body, ActIntent):
            world: World = self._bus.world  # type: ignore[attr-defined]
            return Filled(0) if world.delivered.get(slot.sibling("planned").subject, 1) == 1 else outcome
        return outcome

    with mock.patch.object(TaskLog, "fill", fill):
        yield


@contextmanager
def no_deadline_check() -> Iterator[None]:
    with mock.patch.object(VirtualSession, "checked", False):
        yield


@contextmanager
def plans_fenced_by_themselves() -> Iterator[None]:
    """As it was: a plan is stored after the end of its task, and its act, fenced by the plan, is done."""
    fence = Slot.fence

    async def fill(self: TaskLog, slot: Slot, body: Any, *, after: int = 0, **more: Any) -> Any:
        return await _fill(self, slot, body, after=0 if slot.kind == "planned" else after, **more)

    def own(slot: Slot) -> str:
        return slot.subject if slot.kind == "planned" else fence(slot)

    with mock.patch.object(TaskLog, "fill", fill), mock.patch.object(Slot, "fence", own):
        yield


@contextmanager
def starts_fenced_by_themselves() -> Iterator[None]:
    """A task could start on two devices, and after it was ended in the queue."""
    fence = Slot.fence

    def own(slot: Slot) -> str:
        return slot.subject if slot.kind == "started" else fence(slot)

    with mock.patch.object(Slot, "fence", own):
        yield


@contextmanager
def outcome_before_the_session_is_gone() -> Iterator[None]:
    """As it was: an act whose answer does not come is unknown at once, though its session could not be ended."""

    async def once(self: Turns, session: str, server: str, **_: Any) -> None:
        await self._actor.fence(session, server)

    with mock.patch.object(Turns, "_over", once):
        yield


HARSH = Faults(until=200, pause_in_act=0.3, longest_pause_s=90, crash=0.006, crash_every_s=40, pause_every_s=70)
PAUSED = Faults(
    until=300, pause=0.0005, pause_in_act=0.5, longest_pause_s=120, fence_fails=1.0, crash=0,
    crash_every_s=NEVER, pause_every_s=200,
)  # fmt: skip
"""Drivers that sleep right before their act, at phones whose sessions nobody can end."""
CUT = Faults(until=200, cut_in_act=0.4, fence_fails=0.6, longest_act_s=9)
"""Phones that cannot be reached for a while, with an act under way there."""

BROKEN: dict[str, tuple[Callable[[], AbstractContextManager[None]], str, Faults, float]] = {
    "no intent": (no_intent, "touched 2 times", HARSH, 0),
    "ack in place of slot": (ack_in_place_of_slot, "touched 2 times", HARSH, 0),
    "no deadline check": (no_deadline_check, "touched after its outcome", PAUSED, 0),
    "plans fenced by themselves": (plans_fenced_by_themselves, "was begun after the end", HARSH, 0.8),
    "starts fenced by themselves": (starts_fenced_by_themselves, "was started 2 times|has 2 ends", HARSH, 0.8),
    "outcome before the session is gone": (outcome_before_the_session_is_gone, "touched after its outcome", CUT, 0),
}


@pytest.mark.parametrize("name", BROKEN)
def test_simulation_finds_a_protocol_that_is_broken(name: str) -> None:
    broken, symptom, faults, cancelled = BROKEN[name]
    with broken():
        for seed in range(BROKEN_SEEDS):
            found = wrong(played(seed, faults, cancelled=cancelled))
            if any(part in each for each in found for part in symptom.split("|")):
                return
    pytest.fail(f"{BROKEN_SEEDS} seeds did not find what is broken")


@pytest.mark.parametrize(
    ("faults", "cancelled"), [(HARSH, 0.8), (PAUSED, 0), (CUT, 0.3)], ids=["harsh", "paused", "cut"]
)
def test_faults_that_break_the_broken_forms_do_not_break_the_real_one(faults: Faults, cancelled: float) -> None:
    for seed in range(20):
        assert not wrong(played(seed, faults, cancelled=cancelled)), seed
