"""Waiting, the one act that touches no phone: what has been waited is always known, and it can be cut short.

Consumes seconds and two questions; emits an Outcome. Owns nothing: the turn that waits holds the device meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from apex_executor.outcomes import Outcome

_NAP_S: Final = 0.1
_LOOK_S: Final = 0.5


async def wait(
    seconds: float, *, most_s: float, held: Callable[[], bool], ended: Callable[[], Awaitable[bool]]
) -> Outcome:
    """Wait for so long; less where that is longer than an act may take, or where the device is no longer `held` or the
    task has `ended` meanwhile: then what was waited is told as CUT_SHORT."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    end = began + min(seconds, most_s)
    look_at = began + _LOOK_S
    why = "an act may take no longer here" if most_s < seconds else ""
    while (left := end - loop.time()) > 0:
        await asyncio.sleep(min(_NAP_S, left))
        if not held():
            why = "its executor gave the device up"
            break
        if loop.time() >= look_at:
            look_at = loop.time() + _LOOK_S
            if await ended():
                why = "the task has ended"
                break
    if not why:
        return Outcome(success=True)
    return Outcome(False, "CUT_SHORT", f"waited {loop.time() - began:.1f} s of {seconds:g}: {why}")
