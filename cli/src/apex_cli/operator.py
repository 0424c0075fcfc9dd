"""Commands that are the operator's: the same server as for a client, with the operator's key.

Consumes APEX_NATS_* or a running `apex up`, beside whose client's key the operator's lies.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from apex_bus.connection import Bus, connect
from apex_bus.errors import BusError, NotPermitted, StoreFull, Unreachable
from apex_cli.client import CONNECT_SECONDS, Client
from apex_cli.errors import NoRoom, NotReachable
from apex_cli.place import Place, clone, find, running_stack
from apex_schemas.subjects import Identity

Result = TypeVar("Result")

_NEEDED: Final = "the server does not take us for the operator; set APEX_NATS_SEED_FILE to the operator's seed,"


class Operator(NamedTuple):
    """A connection with the operator's rights, and what a client may do over it. `found` says how it was found."""

    bus: Bus
    client: Client
    found: str


def operator_place() -> Place:
    """As a client's, but with the operator's key where a running `apex up` has one."""
    root = clone()
    place = find(os.environ, root)
    settings = place.settings
    own = bool(os.environ.get("APEX_NATS_URL") or os.environ.get("APEX_NATS_SEED_FILE"))
    if not own and running_stack(root) is not None and settings.seed_file:
        seed = Path(settings.seed_file).with_name(f"{Identity.OPERATOR}.nk")
        settings = msgspec.structs.replace(settings, seed_file=str(seed))
    return Place(settings=settings, identity=Identity.OPERATOR, found=place.found)


def run(work: Callable[[Operator], Awaitable[Result]]) -> Result:
    """Connect as the operator, do the work, close. Raises NoRoom, or NotReachable for whatever else the bus finds."""
    place = operator_place()

    async def whole() -> Result:
        bus = await connect(Identity.OPERATOR, place.settings, timeout_s=CONNECT_SECONDS)
        try:
            working = asyncio.ensure_future(work(Operator(bus, Client(bus, place.found), place.found)))
            await asyncio.wait({working, bus.fatal}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                working.cancel()
                await bus.fatal
            return await working
        finally:
            await bus.close()

    try:
        return asyncio.run(whole())
    except NotPermitted as error:
        raise NotReachable(_NEEDED, place.found) from error
    except Unreachable as error:
        raise NotReachable("no NATS server answers", place.found) from error
    except StoreFull as error:
        raise NoRoom(str(error).partition(";")[0], place.found) from error
    except (BusError, OSError) as error:
        raise NotReachable(f"{str(error).split(';')[0]},", place.found) from error
