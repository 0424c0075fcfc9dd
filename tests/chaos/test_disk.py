"""The disk under nats-server, and the one under PostgreSQL, takes nothing more while tasks run: it is said, nothing is
lost, no phone is touched twice, and all goes on once the disk is mended and the server restarted.
"""

from pathlib import Path

import pytest
from chaos import disk
from chaos.loaded import counted, length, loaded, said, submit, until

from apex_bus.connection import Bus
from apex_bus.errors import Unacknowledged
from apex_schemas import subjects
from apex_schemas.subjects import Identity

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("stack-disk")]
BEGUN = 6


async def refused(bus: Bus) -> bool:
    """Whether a request is not taken; of a kind that is no task, so that the account is not disturbed."""
    try:
        await bus.publish(subjects.cancel("0" * 32), b"", timeout_s=1)
    except Unacknowledged:
        return True
    return False


async def test_tasks_go_on_where_they_were_when_the_disk_of_nats_takes_nothing_for_a_while(tmp_path: Path) -> None:
    disk.required()
    async with loaded(tmp_path / "stack") as (stack, load), stack.bus(Identity.CLIENT) as bus:
        since = length(stack, "executor")
        disk.unwritable(stack.nats.pid)
        await until(lambda: refused(bus), "nothing is stored")
        code, error = await submit(stack)
        assert code == 3, error
        assert "its store cannot be written" in error, error
        await until(said(stack, "executor", "its store cannot be written", since), "the executor says why it waits")
        disk.writable(stack.nats.pid)
        await stack.nats.restart()  # it does not try again by itself, as of 2.15
        asked = len(load.asked)
        await until(lambda: counted(len(load.asked) >= asked + BEGUN), "tasks are taken again")


async def test_tasks_go_on_and_the_record_is_completed_when_the_disk_of_postgres_takes_nothing_for_a_while(
    tmp_path: Path,
) -> None:
    disk.required()
    async with loaded(tmp_path / "stack") as (stack, load):
        since = length(stack, "decision-log")
        disk.unwritable(stack.postgres.pid)
        await until(
            said(stack, "decision-log", "DECISION_LOG_TASKS waits", since), "the decision-log says that it waits"
        )

        async def has_ended() -> bool:
            return not stack.postgres.process.running

        await until(has_ended, "PostgreSQL gives up, which it does in order not to lose what it has promised")
        asked = len(load.asked)
        await until(lambda: counted(len(load.asked) >= asked + BEGUN), "tasks do not wait for the database")
        await stack.postgres.start()
