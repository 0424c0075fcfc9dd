"""While the task log is full nobody can write, so nobody is late."""

from typing import Any, cast

import pytest

from apex_bus.connection import Bus
from apex_bus.consume import Delivery, Later
from apex_bus.errors import StoreFull
from apex_bus.tasklog import Entry, Filled, TaskLog
from apex_executor.settings import ExecutorSettings
from apex_executor.watch import FirstSights, Watch
from apex_schemas import envelope, slots
from apex_schemas.ids import new_task_id
from apex_schemas.slots import Slot
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

BEGUN = TaskStarted(request=TaskRequest(goal="g"), pool="any", request_sequence=1, request_digest="", started_at_ms=1)


class Log:
    """A task log with one task, on which nothing can be written while it is full."""

    def __init__(self, slot: Slot) -> None:
        self.slot, self.full = slot, True
        self.ends: list[TaskFinished] = []

    async def newest(self, device: str | None, task: str) -> Entry:
        return Entry(self.slot, BEGUN, 1, 1, "a")

    async def read(self, slot: Slot) -> None:
        return None

    async def fill(self, slot: Slot, body: TaskFinished, **_: Any) -> Filled:
        if self.full:
            raise StoreFull("TASKS", "maximum bytes exceeded")
        self.ends.append(body)
        return Filled(2)


class Connection:
    worker = "w"

    def on_reconnect(self, wake: Any) -> None:
        pass


class Started:
    sequence, timestamp_ns = 1, 1

    def __init__(self, slot: Slot) -> None:
        self.headers: dict[str, str] = {}
        self.subject = slot.subject
        self.data = envelope.encode(BEGUN, task=slot.task, device=slot.device, turn=slot.turn, attempt="a")


async def test_stage_that_was_late_while_the_log_was_full_has_its_whole_time_again_once_there_is_room() -> None:
    slot, now = slots.started("pixel", new_task_id()), [0.0]
    log = Log(slot)
    watch = Watch(cast(Bus, Connection()), cast(TaskLog, log), ExecutorSettings(perception_limit_seconds=90))
    watch._sights = FirstSights(lambda: now[0])
    delivery = cast(Delivery, Started(slot))
    assert isinstance(await watch.on_started(delivery), Later)
    now[0] = 95
    with pytest.raises(StoreFull):
        await watch.on_started(delivery)
    log.full, now[0] = False, 100
    await watch.on_started(delivery)
    now[0] = 185
    await watch.on_started(delivery)
    assert not log.ends
    now[0] = 191
    await watch.on_started(delivery)
    assert [end.stage for end in log.ends] == ["perception"]
