"""A whole system with two phones at work, for whoever breaks something under it; and what has to hold afterwards."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path

import components

from apex_bus.errors import Transient
from apex_lab.chaos import gather
from apex_lab.chaos.account import Report, account
from apex_lab.chaos.evidence import Asked, Evidence
from apex_lab.chaos.load import Load
from apex_lab.chaos.provider import Calls
from apex_lab.stack import Stack
from apex_schemas.subjects import Identity

SECONDS = 180.0
BEGUN = 6


@contextlib.asynccontextmanager
async def loaded(directory: Path) -> AsyncGenerator[tuple[Stack, Load]]:
    """A system at work. Afterwards every task that was taken has ended, and the account holds."""
    components.nats()
    components.postgres()
    async with Stack(directory, phones=2) as stack, at_work(stack, seed=4) as load:
        yield stack, load


@contextlib.asynccontextmanager
async def at_work(
    stack: Stack, *, seed: int, others: Sequence[Asked] = (), with_calls: bool = False
) -> AsyncGenerator[Load]:
    """Let tasks run on a system, beside `others`. Afterwards all have ended, and the account holds, that of what was
    paid included `with_calls`."""
    async with stack.client() as client:
        load = Load(client, seed=seed, ahead=4, first=len(others) + 1)
        asking = asyncio.create_task(load.keep_asking())
        try:
            await until(lambda: counted(len(load.asked) >= BEGUN), "tasks are running")
            yield load
            load.end()
            await asking
        finally:
            asking.cancel()

        async def all_ended() -> bool:
            await load.look()
            ends = [await client.ended(each.task) for each in others]
            return not load.unfinished and None not in ends

        await until(all_ended, "every task has ended")
        await holds(stack, (*others, *load.asked), with_calls=with_calls)


async def holds(stack: Stack, asked: tuple[Asked, ...], *, with_calls: bool) -> Report:
    """Wait until all is on record, and compare the witnesses."""
    calls = Calls(stack.wiring.model.base_url or "", {})
    async with stack.bus(Identity.PROVISIONER) as bus, stack.client() as client:
        await until(lambda: gather.caught_up(bus), "Postgres has it all")

        async def all_free() -> bool:
            return all(status.task is None for status in await client.devices())

        await until(all_free, "the phones are free")
        if with_calls:
            await calls.read()
        evidence = Evidence(
            asked=asked, stored=await gather.task_log(bus), decisions=await gather.decisions(bus),
            acts=await gather.acts(stack), calls=calls.all, made=(), tables=await gather.tables(stack.database_url),
            phones=await gather.states(stack), workers=gather.workers(stack), ended_ms=time.time_ns() // 1_000_000,
            busy=tuple(status.device for status in await client.devices() if status.task is not None),
        )  # fmt: skip
    report = account(evidence)
    assert not report.examples, report
    assert report.counts["acts"] > 0
    return report


async def counted(holds: bool) -> bool:
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
    code, _, error = await apex(stack, "submit", "turn on Wi-Fi")
    return code, error


async def apex(stack: Stack, *arguments: str) -> tuple[int | None, str, str]:
    """A command as a client gives it: exit code, standard output and standard error."""
    seed = str(stack.wiring.seeds[Identity.CLIENT])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "apex_cli", *arguments,
        env={"APEX_NATS_URL": stack.nats.url, "APEX_NATS_SEED_FILE": seed}, stdout=-1, stderr=-1,
    )  # fmt: skip
    out, error = await process.communicate()
    return process.returncode, out.decode(), error.decode()
