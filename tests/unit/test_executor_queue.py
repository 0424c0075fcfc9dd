"""What an executor tells of the queue: those that wait, in order, and honestly how many more; whatever it has seen."""

import time
from typing import Any, cast

import pytest

from apex_bus.tasklog import TaskLog
from apex_executor import queue as told_of
from apex_executor.queue import Queue
from apex_executor.requests import Asked
from apex_schemas.queries import WaitingRequests
from apex_schemas.task import TaskRequest


class Log:
    """The task log, as far as it is asked here."""

    def __init__(self, begun: set[str]) -> None:
        self.begun, self.reads = begun, 0

    async def newest(self, device: str | None, task: str) -> Any:
        self.reads += 1
        return "a slot" if task in self.begun else None


def seen(count: int, *, begun: int) -> tuple[Queue, Log]:
    """A queue that has looked at `count` requests, of which others have begun the first `begun`."""
    log = Log({f"{n:032x}" for n in range(begun)})
    queue = Queue(cast(TaskLog, log))
    for n in range(count):
        asked = Asked(TaskRequest(goal=f"goal {n}"), f"{n:032x}", "digest", time.time() + 60)
        queue.see(asked, pool="any", sequence=n + 1, age_s=1)
    return queue, log


def placed(told: WaitingRequests) -> list[int]:
    return [each.sequence for each in told.waiting]


async def test_first_five_hundred_are_told_and_the_rest_is_counted() -> None:
    queue, _ = seen(1_234, begun=0)
    told = await queue.told()
    assert placed(told) == list(range(1, 501))
    assert told.omitted == 734


async def test_what_others_have_begun_is_passed_over_and_neither_hides_nor_counts_for_what_waits() -> None:
    queue, log = seen(2_000, begun=1_300)
    told = await queue.told()
    assert placed(told) == list(range(1_301, 1_801))
    assert told.omitted == 200
    log.begun |= {f"{n:032x}" for n in range(2_000)}
    assert (await queue.told()).waiting == ()
    reads = log.reads
    assert await queue.told() == WaitingRequests(complete=False)
    assert log.reads == reads, "what has begun is forgotten"


async def test_look_that_ended_early_does_not_claim_to_have_seen_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_of, "_ROUND", 0.0)
    queue, _ = seen(2_000, begun=1_300)
    monkeypatch.setattr(told_of, "_LOOKING_S", 0.0)
    told = await queue.told()
    assert (told.waiting, told.omitted, told.complete) == ((), 1_500, False)
    monkeypatch.setattr(told_of, "_LOOKING_S", 60.0)
    told = await queue.told()
    assert (len(told.waiting), told.omitted, told.complete) == (500, 200, True)


async def test_request_that_this_executor_has_not_met_again_for_many_rounds_is_told_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue, _ = seen(3, begun=0)
    monkeypatch.setattr(told_of, "_OLD", -1.0)
    assert (await queue.told()).waiting == ()


@pytest.mark.parametrize(("count", "pause_s"), [(1, 15), (3_750, 15), (10_000, 40)])
def test_long_queue_is_looked_at_less_often(count: int, pause_s: float) -> None:
    assert seen(count, begun=0)[0].pause_s == pause_s
