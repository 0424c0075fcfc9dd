"""A chaos run from its start to its account: trouble while tasks are asked for, then quiet until all has ended."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from nats.aio.msg import Msg

from apex_bus.connection import Bus
from apex_bus.errors import Transient, Unreachable
from apex_lab.chaos import gather
from apex_lab.chaos.account import Report, account, kills_in_act
from apex_lab.chaos.drivers import Drivers
from apex_lab.chaos.errors import CannotRead
from apex_lab.chaos.evidence import Evidence
from apex_lab.chaos.linked import SERVICES, Linked
from apex_lab.chaos.load import Load
from apex_lab.chaos.provider import Calls
from apex_lab.chaos.trouble import Rates, Troublemaker
from apex_lab.chaos.turns import deeds_of
from apex_schemas.subjects import Identity

QUIET_SECONDS: Final = 420.0
"""After the trouble: longer than a task may take, so that what has not ended by then hangs."""
CAUGHT_UP_SECONDS: Final = 120.0
FREE_SECONDS: Final = 90.0
_LOOK_SECONDS: Final = 5.0
_ENVIRONMENT: Final = {"executor": {"EXECUTOR_LEASE_SECONDS": "4"}}


class Plan(Struct, frozen=True, kw_only=True):
    """What to do. `copies` are instances of each service."""

    minutes: float
    seed: int
    phones: int = 5
    copies: int = 2
    rates: Rates = Rates()


async def run(plan: Plan, directory: Path, report: Callable[[str], None]) -> Report:
    """Raises StackError or EmbeddedError when the stack itself cannot go on, ChaosError when there is no account."""
    crashes: list[str] = []

    def told(text: str) -> None:
        if " ended with code " in text:
            crashes.append(text)
        report(text)

    stack = Linked(
        directory,
        phones=plan.phones,
        copies=dict.fromkeys(SERVICES, plan.copies),
        environment=_ENVIRONMENT,
        fresh=True,
        report=told,
    )
    async with stack:
        failures = [child.failed for child in stack.children.values()]
        running = asyncio.ensure_future(_trouble_and_account(stack, plan, report, crashes))
        await asyncio.wait({running, *failures}, return_when=asyncio.FIRST_COMPLETED)
        for failure in failures:
            if failure.done():
                running.cancel()
                await failure
        return await running


async def _trouble_and_account(stack: Linked, plan: Plan, report: Callable[[str], None], crashes: list[str]) -> Report:
    async with stack.bus(Identity.CLIENT) as bus, stack.bus(Identity.EXECUTOR) as peer, stack.client() as client:
        planned = asyncio.Queue[str]()
        await _hear(bus, planned)
        drivers = Drivers(peer, lambda: gather.workers(stack))
        load = Load(client, seed=plan.seed, ahead=plan.phones * 2)
        trouble = Troublemaker(stack, seed=plan.seed, rates=plan.rates, planned=planned, drivers=drivers)
        ports = {links["model"].port: name for name, links in stack.links.items() if "model" in links}
        calls = Calls(stack.wiring.model.base_url or "", ports)
        async with asyncio.TaskGroup() as group:
            following = group.create_task(calls.follow())
            asking = group.create_task(load.keep_asking())
            making = group.create_task(trouble.run())
            await _wait(plan.minutes * 60, lambda: _progress(report, load, trouble))
            await _until_struck(stack, trouble, plan.minutes * 60, report)
            report("the trouble ends; waiting for the tasks")
            load.end()
            trouble.stop()
            await asyncio.wait({asking, making})
            ended_ms = time.time_ns() // 1_000_000
            await _until(lambda: _all_ended(load), QUIET_SECONDS)
            following.cancel()
        await calls.read()
        return account(await _evidence(stack, load, trouble, calls, crashes, ended_ms, report))


async def _evidence(
    stack: Linked,
    load: Load,
    trouble: Troublemaker,
    calls: Calls,
    crashes: list[str],
    ended_ms: int,
    report: Callable[[str], None],
) -> Evidence:
    async with stack.bus(Identity.PROVISIONER) as bus, stack.client() as client:
        report("waiting for Postgres to have it all")
        await _until(lambda: gather.caught_up(bus), CAUGHT_UP_SECONDS)
        await _until(lambda: _all_free(client), FREE_SECONDS)
        report("comparing the witnesses")
        return Evidence(
            asked=load.asked,
            stored=await gather.task_log(bus),
            decisions=await gather.decisions(bus),
            acts=await gather.acts(stack),
            calls=calls.all,
            made=tuple(trouble.made),
            tables=await gather.tables(stack.database_url),
            phones=await gather.states(stack),
            workers=gather.workers(stack),
            ended_ms=ended_ms,
            busy=tuple(status.device for status in await client.devices() if status.task is not None),
            dead_letters=await gather.dead_letters(bus),
            crashes=len(crashes),
        )


async def _hear(bus: Bus, planned: asyncio.Queue[str]) -> None:
    """Put the device of each decision into the queue."""

    async def heard(msg: Msg) -> None:
        planned.put_nowait(msg.subject.split(".")[1])

    await bus.client.subscribe("task.*.*.*.planned", cb=heard)  # pyright: ignore[reportUnknownMemberType]


async def _all_ended(load: Load) -> bool:
    await load.look()
    return not load.unfinished


async def _all_free(client: Any) -> bool:
    return all(status.task is None for status in await client.devices())


async def _until(condition: Callable[[], Awaitable[bool]], seconds: float) -> None:
    """Return when it holds, or after so many seconds: the account then tells what did not."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if await condition():
                return
        except Transient:
            pass  # not an answer yet
        await asyncio.sleep(0.5)


async def _wait(seconds: float, say: Callable[[], None]) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        await asyncio.sleep(min(left, 20))
        say()


async def _until_struck(stack: Linked, trouble: Troublemaker, seconds: float, report: Callable[[str], None]) -> None:
    """Go on until a kill has fallen into an act, for so long at most: before that the run proves nothing."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            async with stack.bus(Identity.PROVISIONER) as bus:
                deeds = deeds_of(await gather.task_log(bus))
        except (Transient, Unreachable, CannotRead):
            deeds = ()  # the server is down by our own doing
        if kills_in_act(trouble.made, deeds, gather.workers(stack)):
            return
        report("no kill is seen to have fallen into an act yet; the trouble goes on")
        await asyncio.sleep(_LOOK_SECONDS)


def _progress(report: Callable[[str], None], load: Load, trouble: Troublemaker) -> None:
    done = len(load.asked) - len(load.unfinished)
    report(f"{done} of {len(load.asked)} tasks have ended, {len(trouble.made)} troubles")
