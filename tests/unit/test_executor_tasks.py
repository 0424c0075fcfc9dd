"""The end of a device's task, where the log cannot be read as a whole yet."""

import asyncio
from types import SimpleNamespace
from typing import Any

from apex_executor.tasks import Tasks
from apex_schemas.errors import LogTorn
from apex_schemas.task import TaskFinished

END = SimpleNamespace(
    body=TaskFinished(status="cancelled", turns=0, finished_at_ms=1, by="client"), timestamp_ns=1, sequence=2
)


class LaggingLog:
    """A replica that has the end of a task already, and not yet its beginning."""

    def __init__(self) -> None:
        self.asked = 0

    async def ended(self, _: str, **__: Any) -> Any:
        return END

    async def started_entry(self, _: str, task: str) -> Any:
        self.asked += 1
        raise LogTorn(task, 1, 0)


async def test_device_is_let_go_later_when_the_beginning_of_its_ended_task_cannot_be_read_yet() -> None:
    tasks, log = object.__new__(Tasks), LaggingLog()
    lease = SimpleNamespace(claim=SimpleNamespace(task="1" * 32))
    vars(tasks).update(
        _log=log,
        _alias="sim-1",
        _freeing=asyncio.Lock(),
        _lease=lease,
        _device=SimpleNamespace(one_at_a_time=asyncio.Lock()),
    )
    await tasks.let_go_if_ended()
    assert log.asked == 1
    assert lease.claim is not None
