"""How demo and `up` run: until they are done or told to end, and with errors that are sentences and exit codes."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from apex_bus.errors import BusError
from apex_cli.errors import BadInput, CommandError
from apex_lab.embedded.errors import EmbeddedError, NoUserForPostgres, PortUnusable, WheelMissing
from apex_lab.stack.errors import ProviderUnset, StackError

Result = TypeVar("Result")
_EXPECTED = (StackError, EmbeddedError, BusError, OSError)


def sentence(work: Callable[[], Result]) -> Result:
    """Do the work; what the stack finds wrong becomes a CommandError."""
    try:
        return work()
    except _EXPECTED as error:
        raise _of(error) from error


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end. Ctrl-C, SIGTERM and SIGHUP cancel the work, which then ends all that it started.

    Raises KeyboardInterrupt after a signal, CommandError for what the stack finds wrong.
    """
    try:
        return asyncio.run(_until_signal(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except _EXPECTED as error:
        raise _of(error) from error
    except BaseExceptionGroup as group:
        expected, others = group.split(_EXPECTED)
        if expected is None or others is not None:
            raise
        raise CommandError("\n".join(str(error) for error in _leaves(expected))) from group


class Lacking(CommandError):
    """This machine lacks what the stack is made of."""

    exit_code = 6


def _of(error: Exception) -> CommandError:
    match error:
        case WheelMissing() | NoUserForPostgres():
            return Lacking(str(error))
        case PortUnusable() | ProviderUnset():
            return BadInput(str(error))
        case _:
            return CommandError(str(error))


async def _until_signal(work: Coroutine[Any, Any, Result]) -> Result:
    loop = asyncio.get_running_loop()
    working = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, working.cancel)
    return await working


def _leaves(group: BaseExceptionGroup[Exception]) -> list[BaseException]:
    return [
        leaf
        for error in group.exceptions
        for leaf in (_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    ]
