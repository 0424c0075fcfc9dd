"""The disk under nats-server, and the one under PostgreSQL, takes nothing more while tasks run: it is said, nothing is
lost, no phone is touched twice, and all goes on once the disk is mended and the server restarted.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import components
import pytest
from chaos import disk

from apex_bus.connection import Bus
from apex_bus.errors import Transient, Unacknowledged
from apex_lab.chaos import gather
from apex_lab.chaos.account import account
from apex_lab.chaos.evidence import Evidence
from apex_lab.chaos.load import Load
from apex_lab.stack import Stack
from apex_schemas import subjects
from apex_schemas.subjects import Identity

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("stack-disk")]
SECONDS = 180.0
BEGUN = 6


@contextlib.asynccontextmanager
async def loaded(directory: Path) -> AsyncGenerator[tuple[Stack, Load]]:
    """A system with two phones at work. Afterwards every task that was taken has ended, and the account holds."""
    components.nats()
    components.postgres()
    disk.required()
    async with Stack(directory, phones=2) as stack, stack.client() as client:
        load = Load(client, seed=4, ahead=4)
        asking = asyncio.create_task(load.keep_asking())
        try:
            await until(lambda: _counted(len(load.asked) >= BEGUN), "tasks are running")
            yield stack, load
            load.end()
            await asking
        finally:
            asking.cancel()

        async def all_ended() -> bool:
            await load.look()
            return not load.unfinished

        await until(all_ended, "every task has ended")
        await _holds(stack, load)


async def _holds(stack: Stack, load: Load) -> None:
    async with stack.bus(Identity.PROVISIONER) as bus, stack.client() as client:
        await until(lambda: gather.caught_up(bus), "Postgres has it all")

        async def all_free() -> bool:
            return all(status.task is None for status in await client.devices())

        await until(all_free, "the phones are free")
        evidence = Evidence(
            asked=load.asked, stored=await gather.task_log(bus), decisions=await gather.decisions(bus),
            acts=await gather.acts(stack), calls=(), made=(), tables=await gather.tables(stack.database_url),
            phones=await gather.states(stack), workers=gather.workers(stack), ended_ms=time.time_ns() // 1_000_000,
            busy=tuple(status.device for status in await client.devices() if status.task is not None),
        )  # fmt: skip
    report = account(evidence)
    assert not {name: count for name, count in report.zeros.items() if count}, report
    assert report.counts["acts"] > 0


async def _counted(holds: bool) -> bool:
    return holds


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        with contextlib.suppress(Transient):
            if await condition():
                return
        assert time.monotonic() < deadline, f"not within {SECONDS:.0f} s: {what}"
        await asyncio.sleep(0.2)


def said(stack: Stack, service: str, text: str, since: int) -> Callable[[], Awaitable[bool]]:
    """Whether a service's log has a text behind a place in it."""

    async def look() -> bool:
        return text.encode() in (stack.logs / f"{service}.log").read_bytes()[since:]

    return look


def length(stack: Stack, service: str) -> int:
    return (stack.logs / f"{service}.log").stat().st_size


async def submit(stack: Stack) -> tuple[int | None, str]:
    """`apex submit`, and what it says on standard error."""
    seed = str(stack.wiring.seeds[Identity.CLIENT])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "apex_cli", "submit", "turn on Wi-Fi",
        env={"APEX_NATS_URL": stack.nats.url, "APEX_NATS_SEED_FILE": seed}, stdout=-1, stderr=-1,
    )  # fmt: skip
    _, error = await process.communicate()
    return process.returncode, error.decode()


async def refused(bus: Bus) -> bool:
    """Whether a request is not taken; of a kind that is no task, so that the account is not disturbed."""
    try:
        await bus.publish(subjects.cancel("0" * 32), b"", timeout_s=1)
    except Unacknowledged:
        return True
    return False


async def test_tasks_go_on_where_they_were_when_the_disk_of_nats_takes_nothing_for_a_while(tmp_path: Path) -> None:
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
        await until(lambda: _counted(len(load.asked) >= asked + BEGUN), "tasks are taken again")


async def test_tasks_go_on_and_the_record_is_completed_when_the_disk_of_postgres_takes_nothing_for_a_while(
    tmp_path: Path,
) -> None:
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
        await until(lambda: _counted(len(load.asked) >= asked + BEGUN), "tasks do not wait for the database")
        await stack.postgres.start()
