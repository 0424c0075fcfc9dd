"""Races on one real server, a thousand rounds each: an end against an act, and an end against a plan."""

import asyncio
from collections import Counter

import pytest
from chaos.conftest import DEVICES, Secured

from apex_bus.tasklog import Filled, TaskLog
from apex_schemas.actions import Tap
from apex_schemas.geometry import Point
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.slots import Slot, finished, started
from apex_schemas.steps import ActIntent, PlannedStep
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

ROUNDS = 1_000
TAP = Tap(at=Point(x=1, y=1))
END = TaskFinished(status="cancelled", turns=1, finished_at_ms=1, by="client")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["planned", "acting"])
async def test_end_against_what_would_happen_next_has_one_winner_in_every_round(secured: Secured, kind: str) -> None:
    outcomes: Counter[int] = Counter()
    free = asyncio.Semaphore(30)
    async with secured.bus(Identity.EXECUTOR) as executor, secured.bus(Identity.PLANNER) as planner:
        mine, yours = TaskLog(executor), TaskLog(planner)

        async def race(n: int) -> None:
            async with free:
                task = new_task_id()
                begin = TaskStarted(
                    request=TaskRequest(goal="g", task=task), pool="any", request_sequence=n, request_digest="d",
                    started_at_ms=1,
                )  # fmt: skip
                base = await mine.fill(started(DEVICES[0], task), begin, attempt=new_attempt())
                assert isinstance(base, Filled)
                place = Slot(device=DEVICES[0], task=task, kind="planned", turn=0)
                step = PlannedStep(action=TAP, page="p")
                end = finished(DEVICES[0], task)
                if kind == "acting":
                    base = await yours.fill(place, step, attempt=new_attempt(), after=base.sequence)
                    assert isinstance(base, Filled)
                    intent = ActIntent(action=TAP, session="s", deadline_ms=1)
                    next_ = mine.fill(place.sibling("acting"), intent, attempt=new_attempt(), after=base.sequence)
                    ending = yours.fill(end, END, attempt=new_attempt(), after=base.sequence)
                else:
                    next_ = yours.fill(place, step, attempt=new_attempt(), after=base.sequence)
                    ending = mine.fill(end, END, attempt=new_attempt(), after=base.sequence)
                pair = (next_, ending) if n % 2 else (ending, next_)
                outcomes[sum(isinstance(each, Filled) for each in await asyncio.gather(*pair))] += 1

        await asyncio.gather(*(race(n) for n in range(ROUNDS)))
    assert outcomes == {1: ROUNDS}
