"""The walk: one process is killed, or paused beyond every lease, in each gap before and after each of its calls to log,
phone and provider, one gap a run, and the task comes to the same right end every time. In virtual time, the real code.
"""

import functools
import logging
from collections.abc import Iterator
from typing import Literal

import pytest
from chaos import virtual_clock
from chaos.test_virtual_time import wrong
from chaos.virtual_log import Faults
from chaos.virtual_world import World, simulated

from apex_bus.tasklog import Entry, entry_of

PROCESSES = ("executor-1", "planner-1", "perception-1")
Then = Literal["crash", "pause"]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def played(at: tuple[str, int] | None, then: Then, *, copies: int) -> World:
    faults = Faults(until=0, longest_pause_s=60)
    with simulated():
        world = World(3, faults, tasks=1, cancelled=0, devices=("d-1",), copies=copies, at=at, then=then)
        virtual_clock.run(world.run())
        return world


@functools.cache
def gaps(process: str, copies: int) -> int:
    """How many gaps an undisturbed run has, up to the end of its task."""
    world = played(None, "crash", copies=copies)
    assert not wrong(world)
    return world.points[process]


def _entries(world: World, kind: str) -> list[Entry]:
    return [entry_of(each) for each in world.log.stored if each.subject.endswith(f".{kind}")]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("then", ["crash", "pause"])
@pytest.mark.parametrize("process", PROCESSES)
def test_task_comes_to_the_same_right_end_whichever_gap_its_process_dies_or_sleeps_in(
    process: str, then: Then, copies: int
) -> None:
    total, in_act, paid_again = gaps(process, copies), 0, 0
    assert total > 20
    for n in range(1, total + 1):
        world = played((process, n), then, copies=copies)
        where = f"{then} of {process} in gap {n} of {total}"
        assert world.crashes + world.pauses == 1, where
        assert not wrong(world), (where, wrong(world))
        (end,) = _entries(world, "finished")
        assert end.body.status == "succeeded", (where, end.body)
        unknown = [event for event in _entries(world, "event") if event.body.success is None]
        assert len(unknown) <= 1, where
        assert not unknown or process.startswith("executor"), where
        in_act += bool(unknown)
        again = sum(len(lives) - 1 for lives in world.paid.values())
        assert again <= (1 if process.startswith("planner") else 0), where
        paid_again += again
    if process.startswith("executor") and then == "crash":
        assert in_act > 0, "no gap lay between acting and event"
    if process.startswith("planner") and then == "crash":
        assert paid_again > 0, "no gap lay between a call and its record"
