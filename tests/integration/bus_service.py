"""A service small enough to see how a process begins and ends: `python bus_service.py endless` (or ends, …)."""

import asyncio
import logging
import sys
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec

from apex_bus.connection import Bus
from apex_bus.consume import Delivery, Done, Verdict, consume
from apex_bus.micro import serve
from apex_bus.run import run
from apex_bus.settings import load
from apex_schemas.consumers import SHARED_CONSUMERS, Consumer
from apex_schemas.subjects import Identity

CANCEL = next(each for each in SHARED_CONSUMERS if each.name == "CANCEL")
MISSING = Consumer(name="MISSING", stream="REQUESTS", filters=("cancel.*",), identity=Identity.EXECUTOR)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    count: int = 1


async def handle(_: Delivery) -> Verdict:
    return Done()


async def ends() -> None:
    await asyncio.sleep(0.01)


async def fails() -> None:
    raise ZeroDivisionError


async def forbidden(bus: Bus) -> None:
    await bus.client.publish("task.not.mine.0.scene", b"x")
    await asyncio.Event().wait()


async def compose(bus: Bus, environ: Mapping[str, str]) -> list[Coroutine[Any, Any, Any]]:
    load(Settings, environ, prefix="LAB_")
    match sys.argv[1]:
        case "endless":
            return [consume(bus, CANCEL, handle), serve(bus, "lab")]
        case "drifts":
            return [consume(bus, MISSING, handle), serve(bus, "lab")]
        case "ends":
            return [ends(), serve(bus, "lab")]
        case "fails":
            return [fails(), serve(bus, "lab")]
        case "forbidden":
            return [forbidden(bus)]
        case "hangs":
            logging.getLogger(__name__).info("composing")
            await asyncio.Event().wait()
            raise AssertionError
        case other:
            raise ValueError(other)


if __name__ == "__main__":
    sys.exit(run(Identity.EXECUTOR, compose))
