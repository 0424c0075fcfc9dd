"""A driver that is told to end, ends, whatever happens in the same moment."""

import asyncio

from apex_bus.connection import Bus
from apex_bus.tasklog import TaskLog
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_executor.worker import Worker
from apex_schemas.subjects import Identity


async def test_driver_that_is_cancelled_in_the_moment_of_a_change_does_not_go_on() -> None:
    bus = Bus.__new__(Bus)  # what is tried here asks no server
    bus.identity, bus.worker = Identity.EXECUTOR, "executor-here-1"
    worker = Worker(bus, TaskLog(bus), DeviceConfig(alias="sim-1", url="http://phone"), ExecutorSettings())
    waiting = asyncio.create_task(worker._change(60))
    for _ in range(3):
        await asyncio.sleep(0)
    worker._changed.set()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
