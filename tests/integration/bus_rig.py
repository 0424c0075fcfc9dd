"""What the tests of the bus share: a provisioned server, connections that end with the test, polling, raw calls."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from apex_bus.connection import Bus, connect
from apex_bus.provision import consumer_config, provision
from apex_bus.settings import BusSettings
from apex_schemas.consumers import Consumer
from apex_schemas.ids import new_task_id
from apex_schemas.slots import Slot
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

DEVICE = "pixel"
OTHER = "galaxy"


@contextlib.asynccontextmanager
async def connected(url: str, identity: Identity = Identity.EXECUTOR) -> AsyncGenerator[Bus]:
    bus = await connect(identity, BusSettings(url=url), timeout_s=30)
    try:
        yield bus
    finally:
        await bus.close()


@contextlib.asynccontextmanager
async def provisioned(url: str, *, store_mib: int = 7_616) -> AsyncGenerator[Bus]:
    """A connection to a server that has every stream and the consumers of two devices."""
    async with connected(url) as bus:
        await provision(bus, (DEVICE, OTHER), store_mib=store_mib)
        yield bus


def slot(kind: Any, turn: int | None, *, task: str | None = None, device: str = DEVICE) -> Slot:
    return Slot(device=device, task=task or new_task_id(), kind=kind, turn=turn)


def start(task: str, goal: str = "turn on Wi-Fi") -> TaskStarted:
    request = TaskRequest(goal=goal, task=task)
    return TaskStarted(request=request, pool="any", request_sequence=1, request_digest="d", started_at_ms=1)


def end(status: Any = "cancelled") -> TaskFinished:
    return TaskFinished(status=status, turns=0, finished_at_ms=2, by="test")


async def until(condition: Callable[[], bool], what: str, *, within_s: float = 30) -> float:
    """Poll a condition; how many seconds it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.01)
    return time.monotonic() - began


async def until_answered(ask: Callable[[], Awaitable[bool]], what: str, *, within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not await ask():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.05)


async def add_consumer(bus: Bus, consumer: Consumer) -> Consumer:
    """Make a consumer that the table does not have, as provisioning makes those of the table."""
    body = {"stream_name": consumer.stream, "config": consumer_config(consumer), "action": "create"}
    answer = await bus.api(f"CONSUMER.CREATE.{consumer.stream}.{consumer.name}", json.dumps(body).encode())
    assert "error" not in answer, answer
    return consumer


async def pending(bus: Bus, consumer: Consumer) -> tuple[int, int]:
    """Messages delivered and not acknowledged, and messages not delivered yet."""
    info = await bus.api(f"CONSUMER.INFO.{consumer.stream}.{consumer.name}")
    return info["num_ack_pending"], info["num_pending"]


@contextlib.asynccontextmanager
async def running(*loops: Any) -> AsyncGenerator[list["asyncio.Task[Any]"]]:
    """Loops that are cancelled at the end; one that ended by an error fails the test."""
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 15)
    for result in ended:
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
            raise result
