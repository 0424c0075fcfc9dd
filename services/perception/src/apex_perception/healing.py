"""A session that works again, asked of the executor that drives the device.

Whoever is asked may die with the request, or not drive the device yet, and then nobody answers; but whoever drives it
next opens a session of its own. So the device's record is looked at all the while: what it names ends the wait.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from apex_bus.connection import Bus
from apex_bus.errors import Transient
from apex_perception.errors import SessionDead
from apex_schemas import subjects
from apex_schemas.devices import DeviceRecord, SessionHandle, SessionReply, SessionRequest

_LOOK_EVERY_S: Final = 1.0


async def heal(
    bus: Bus,
    device: str,
    dead: SessionHandle,
    record: Callable[[str], Awaitable[DeviceRecord | None]],
    *,
    within_s: float,
) -> None:
    """Return when the device has another session than `dead`. Raises SessionDead with the reason when it gets none."""
    asked = asyncio.create_task(_ask(bus, device, dead, within_s))
    try:
        while not (await asyncio.wait((asked,), timeout=_LOOK_EVERY_S))[0]:
            now = await record(device)
            if now is not None and now.session is not None and now.session.id != dead.id:
                return
        await asked
    finally:
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)


async def _ask(bus: Bus, device: str, dead: SessionHandle, within_s: float) -> None:
    request = msgspec.msgpack.encode(SessionRequest(dead_session=dead.id))
    try:
        answer = await bus.request(subjects.session(device), request, timeout_s=within_s)
        reply = msgspec.msgpack.decode(answer, type=SessionReply)
    except (Transient, msgspec.MsgspecError) as error:
        raise SessionDead(device, f"nobody could be asked for a new session ({error})") from error
    if reply.session is None:
        raise SessionDead(device, reply.reason or "its executor could not make a new session")
