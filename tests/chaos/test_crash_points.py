"""The walk: one process is killed, or paused beyond every lease, or the nats-server is killed, in each gap before and
after each call of that process to log, phone, provider and other services, one gap a run, and the task comes to the
same right end every time. In virtual time, the real services; and a test of this tester, which finds what is broken.
"""

import functools
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import NamedTuple

import pytest
from chaos import virtual_broken, virtual_clock
from chaos.virtual_account import account, entries, paid_again
from chaos.virtual_log import Faults
from chaos.virtual_whole import AnyOf, Then, Transport, WholeWorld, whole

Pair = tuple[str, str]
SEED = 3
SEVERAL = 300
TROUBLED = 40
MOST_GAPS = {"executor-1": 170, "perception-1": 90, "planner-1": 90, "endpoint-1": 60}
PROCESSES = tuple(MOST_GAPS)


class Walk(NamedTuple):
    """A process that is walked through. It must have been struck between the two effects of each of `pairs`, among
    what it does of `chains`: what lasts, or is heard by others. `pays`: it is the one that calls the provider."""

    process: str
    chains: tuple[tuple[str, ...], ...]
    pairs: frozenset[Pair]
    pays: bool = False
    transport: Transport = "cloud-proxy"


WALKS = {
    "executor": Walk(
        "executor-1",
        (("started", "acting", "touch", "event", "finished"), ("device", "answer")),
        frozenset({
            ("started", "acting"), ("acting", "touch"), ("touch", "event"), ("event", "acting"), ("event", "finished"),
            ("device", "answer"), ("answer", "device"),
        }),
    ),
    "perception": Walk(
        "perception-1",
        (("shot", "scene", "session"),),
        frozenset({("shot", "scene"), ("scene", "shot"), ("scene", "session"), ("session", "shot")}),
    ),
    "planner": Walk(
        "planner-1",
        (("planner-decision", "planned"),),
        frozenset({
            ("planner-decision", "planner-decision"), ("planner-decision", "planned"), ("planned", "planner-decision"),
        }),
    ),
    "endpoint": Walk(
        "endpoint-1",
        (("claim", "call"), ("call", "decision"), ("decision", "answer"), ("answer", "claim"), ("progress", "claim")),
        frozenset({("claim", "call"), ("call", "decision"), ("decision", "answer"), ("answer", "claim"),
                   ("claim", "progress"), ("progress", "claim")}),
        pays=True,
    ),
    "planner that calls the provider itself": Walk(
        "planner-1",
        (("claim", "call"), ("call", "decision"), ("decision", "planned"), ("planned", "claim")),
        frozenset({("claim", "call"), ("call", "decision"), ("decision", "planned"), ("planned", "claim")}),
        pays=True,
        transport="direct",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def played(walk: Walk, gap: int, then: Then, *, copies: int) -> WholeWorld:
    """A run in which the process is struck in a gap; in none with 0."""
    faults = Faults(until=0, longest_pause_s=60)
    at = (walk.process, gap) if gap else None
    with whole():
        world = WholeWorld(SEED, faults, copies=copies, at=at, then=then, transport=walk.transport)
        virtual_clock.run(world.run())
        return world


@functools.cache
def undisturbed(walk: Walk, copies: int) -> WholeWorld:
    world = played(walk, 0, "crash", copies=copies)
    assert not account(world)
    assert paid_again(world) == 0
    return world


def gaps_between(world: WholeWorld, process: str, chain: tuple[str, ...]) -> dict[int, Pair]:
    """Which two effects of a process a gap lies between."""
    return {
        gap: (before.what, after.what)
        for before, after in pairwise(world.effects(f"{process}-1", chain))
        for gap in range(before.gap + 1, after.gap + 1)
    }


def struck_between(world: WholeWorld, walk: Walk, gap: int, *, copies: int) -> set[Pair]:
    """The pairs between which a run was struck. What a dead process did last tells that it really was."""
    calm, found = undisturbed(walk, copies), set[Pair]()
    for chain in walk.chains:
        pair = gaps_between(calm, walk.process, chain).get(gap)
        last = [each.what for each in world.effects(f"{walk.process}-1", chain)][-1:]
        if pair is not None and (world.then != "crash" or last == [pair[0]]):
            found.add(pair)
    return found


def may_pay_again(walk: Walk, gap: int, then: Then, *, copies: int) -> bool:
    """A call that is lost before its record; and one that outlasts the claim it is made under."""
    begins = "claim" if then == "pause" else "call"
    within = gaps_between(undisturbed(walk, copies), walk.process, (begins, "decision")).get(gap, ("", ""))
    return walk.pays and then != "server" and within[0] == begins


def wrong_end(world: WholeWorld, walk: Walk, gap: int, then: Then, *, copies: int) -> list[str]:
    found = account(world)
    if (struck := world.crashes + world.pauses + world.server_crashes) != 1:
        found.append(f"struck {struck} times")
    unknown = sum(event.body.success is None for event in entries(world, "event"))
    if unknown > (walk.process == "executor-1"):
        found.append(f"{unknown} outcomes unknown")
    if (again := paid_again(world)) > may_pay_again(walk, gap, then, copies=copies):
        found.append(f"paid again {again} times")
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("then", ["crash", "pause", "server"])
@pytest.mark.parametrize("name", WALKS)
def test_task_comes_to_the_same_right_end_whichever_gap_its_process_dies_or_sleeps_in(
    name: str, then: Then, copies: int
) -> None:
    walk = WALKS[name]
    total, struck = undisturbed(walk, copies).gaps[walk.process], Counter[Pair]()
    unknown = again = 0
    for gap in range(1, total + 1):
        world = played(walk, gap, then, copies=copies)
        found = wrong_end(world, walk, gap, then, copies=copies)
        assert not found, f"{then} of {walk.process} in gap {gap} of {total}: {found}"
        struck.update(struck_between(world, walk, gap, copies=copies))
        unknown += sum(event.body.success is None for event in entries(world, "event"))
        again += paid_again(world)
    assert total > 20
    assert walk.pairs <= struck.keys(), f"no gap lay between {walk.pairs - struck.keys()}"
    if then == "crash":
        assert unknown > 0 or name != "executor", "no gap lay between acting and event"
        assert again > 0 or not walk.pays, "no gap lay between a call and its record"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("then", ["crash", "pause", "server"])
def test_task_comes_to_its_right_end_when_two_to_four_gaps_are_struck_anywhere(then: Then) -> None:
    rng, struck = random.Random(4), Counter[int]()
    for _ in range(SEVERAL):
        seed, copies, names = rng.randrange(10**6), rng.choice((1, 2)), rng.choices(PROCESSES, k=rng.choice((2, 3, 4)))
        at = AnyOf((name, rng.randint(1, MOST_GAPS[name])) for name in names)
        with whole():
            world = WholeWorld(seed, Faults(until=0, longest_pause_s=25), copies=copies, at=at, then=then)
            virtual_clock.run(world.run())
        where = f"seed {seed}, {copies} copies, {sorted(at)}"
        assert not account(world), f"{where}: {account(world)}"
        # Servers that are killed one after another may be away for longer than a claim lasts.
        assert paid_again(world) <= (1 if then == "server" else names.count("endpoint-1")), where
        struck[world.crashes + world.pauses + world.server_crashes] += 1
    assert sum(n for times, n in struck.items() if times > 1) > SEVERAL / 3, struck


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("transport", ["cloud-proxy", "direct"])
def test_task_comes_to_its_right_end_whatever_is_lost_repeated_late_killed_and_paused(transport: Transport) -> None:
    seen: Counter[str] = Counter()
    for seed in range(TROUBLED):
        with whole():
            world = WholeWorld(seed, Faults(), copies=1 + seed % 2, transport=transport)
            virtual_clock.run(world.run())
        assert not account(world), f"seed {seed}: {account(world)}"
        seen.update(crashes=world.crashes, pauses=world.pauses, server=world.server_crashes)
    assert min(seen.values()) > TROUBLED, seen


Broken = Callable[[], AbstractContextManager[None]]
BROKEN: dict[str, tuple[Broken, str, int, str]] = {
    "picture after scene": (
        virtual_broken.picture_after_scene, "perception", 1, "names a picture that is not there",
    ),
    "acknowledged before the scene": (
        virtual_broken.acknowledged_before_the_scene, "perception", 1, "the task did not succeed",
    ),
    "healing that waits for its answer": (
        virtual_broken.healing_that_waits_for_its_answer, "executor", 2, "cannot be seen",
    ),
    "record after answer": (
        virtual_broken.record_after_answer, "endpoint", 1, "decided without a record",
    ),
    "calls without a look at the record": (
        virtual_broken.calls_without_a_look_at_the_record, "endpoint", 1, "paid again",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_walk_finds_a_service_that_is_broken(name: str) -> None:
    broken, process, copies, symptom = BROKEN[name]
    walk = WALKS[process]
    total = undisturbed(walk, copies).gaps[walk.process]
    with broken():
        assert not any(symptom in each for each in account(played(walk, 0, "crash", copies=copies))), "found by any run"
        for gap in range(1, total + 1):
            world = played(walk, gap, "crash", copies=copies)
            if any(symptom in each for each in wrong_end(world, walk, gap, "crash", copies=copies)):
                return
    pytest.fail(f"{total} gaps did not find what is broken")
