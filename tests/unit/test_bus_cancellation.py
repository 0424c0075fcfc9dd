"""Cancellations that the client would swallow, and work that must not be cancelled."""

import asyncio

import nats.errors
import pytest

from apex_bus.cancellation import finished, heeded


async def test_cancellation_that_a_call_swallows_is_raised_behind_it() -> None:
    async def swallows() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "an answer"
        raise AssertionError

    task = asyncio.create_task(heeded(swallows()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancellation_that_meets_the_answer_on_its_way_is_raised() -> None:
    answer = asyncio.get_running_loop().create_future()

    async def asks() -> str:
        return await heeded(asyncio.wait_for(answer, 60))

    task = asyncio.create_task(asks())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    answer.set_result("an answer")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_call_of_a_task_that_was_cancelled_before_goes_through() -> None:
    """What tidies up after a cancellation still needs its calls."""

    async def tidies() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return await heeded(asyncio.sleep(0, "tidied"))
        raise AssertionError

    task = asyncio.create_task(tidies())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "tidied"


async def test_call_that_fails_or_returns_does_so_unchanged() -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    assert await heeded(asyncio.sleep(0, "x")) == "x"
    with pytest.raises(ZeroDivisionError):
        await heeded(fails())


async def test_time_limit_around_a_call_stays_a_time_limit() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await heeded(asyncio.sleep(60))


async def test_work_goes_on_to_its_end_when_whoever_waits_is_cancelled_or_has_no_more_time() -> None:
    for cancelled in (True, False):
        go, done = asyncio.Event(), asyncio.Event()

        async def work(go: asyncio.Event = go, done: asyncio.Event = done) -> None:
            await go.wait()
            done.set()

        waiting = asyncio.create_task(finished(work(), within_s=60 if cancelled else 0.01))
        await asyncio.sleep(0)
        if cancelled:
            waiting.cancel()
        await asyncio.wait({waiting}, timeout=20)
        assert waiting.cancelled() is cancelled
        assert not done.is_set()
        go.set()
        await asyncio.wait_for(done.wait(), 20)


@pytest.mark.parametrize(
    "error", [nats.errors.FlushTimeoutError(), nats.errors.ConnectionClosedError(), TimeoutError()]
)
async def test_connection_that_cannot_be_tidied_up_is_not_an_error(error: Exception) -> None:
    async def fails() -> None:
        raise error

    await finished(fails(), within_s=20)


async def test_bug_in_the_work_is_raised() -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await finished(fails(), within_s=20)
