"""Cancellation at the edge of the NATS client, which mishandles it in two ways; nothing else of ours may meet them.

Its calls can swallow a cancellation (Python 3.11's `wait_for` does when the answer is there already; its flusher
always does), so that a loop which is told to end goes on for ever. And a flush that is given up, cancelled or timed
out, breaks the connection when the server's late PONG finds it gone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any, Final, TypeVar

import nats.errors

log = logging.getLogger(__name__)

T = TypeVar("T")

_going_on: Final[set["asyncio.Task[None]"]] = set()


async def heeded(call: Awaitable[T]) -> T:
    """Await a call of the client, and raise the cancellation that it swallowed."""
    task = asyncio.current_task()
    asked = task.cancelling() if task else 0
    try:
        return await call
    finally:
        if task is not None and task.cancelling() > asked:
            raise asyncio.CancelledError


async def finished(work: Coroutine[Any, Any, None], *, within_s: float) -> None:
    """Wait for `work`, which is never cancelled: what takes longer goes on alone. An error of NATS is only logged."""
    task = asyncio.create_task(_noted(work))
    _going_on.add(task)
    task.add_done_callback(_going_on.discard)
    await asyncio.wait({task}, timeout=within_s)
    if task.done():
        task.result()


async def _noted(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except (nats.errors.Error, TimeoutError) as error:
        log.info("the connection could not be tidied up: %s", str(error) or type(error).__name__)
