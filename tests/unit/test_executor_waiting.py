"""A wait is told for what it was: whole, or cut short by its deadline, the loss of its device, the end of its task."""

import asyncio
import itertools

import pytest

from apex_executor import waiting
from apex_executor.outcomes import Outcome


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_NAP_S", 0.005)
    monkeypatch.setattr(waiting, "_LOOK_S", 0.01)


async def never() -> bool:
    return False


def held() -> bool:
    return True


async def test_wait_within_the_time_of_an_act_is_whole() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await waiting.wait(0.05, most_s=60, held=held, ended=never) == Outcome(success=True)
    assert loop.time() - began >= 0.05


async def test_wait_past_the_deadline_of_an_act_ends_with_it_and_says_so() -> None:
    outcome = await waiting.wait(30, most_s=0.05, held=held, ended=never)
    assert (outcome.success, outcome.code) == (False, "CUT_SHORT")
    assert (outcome.message or "").endswith("of 30: an act may take no longer here")


async def test_wait_ends_when_the_device_is_given_up() -> None:
    answers = itertools.chain([True, True], itertools.repeat(False))
    outcome = await waiting.wait(30, most_s=60, held=lambda: next(answers), ended=never)
    assert (outcome.success, outcome.code) == (False, "CUT_SHORT")
    assert (outcome.message or "").endswith("its executor gave the device up")


async def test_wait_ends_when_its_task_does() -> None:
    answers = iter([False, True])

    async def ended() -> bool:
        return next(answers)

    outcome = await waiting.wait(30, most_s=60, held=held, ended=ended)
    assert (outcome.success, outcome.code) == (False, "CUT_SHORT")
    assert (outcome.message or "").endswith("the task has ended")
