"""Ten thousand requests wait in the pools of four phones: each pool is served in order, memory stays bounded, and what
the queue is said to be is what it is.

APEX_TEST_STARTS begins more of them: docs/RELIABILITY.md has the figures of all.
"""

import asyncio
import json
import logging
import os
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import components
import pytest
from chaos.resources import cpu_share, resident_mib
from integration.executor_rig import Rig, executor_rig, until
from nats.aio.msg import Msg

from apex_bus.connection import flushed
from apex_bus.errors import Transient
from apex_cli.client import Client
from apex_lab.chaos import gather
from apex_lab.embedded.nats import nats_server
from apex_schemas import envelope
from apex_schemas.ids import new_attempt
from apex_schemas.queries import WaitingRequests
from apex_schemas.slots import parse_slot
from apex_schemas.task import TaskFinished, TaskStarted

log = logging.getLogger(__name__)

QUEUED = 10_000
STARTS = int(os.environ.get("APEX_TEST_STARTS", "2000"))
PHONES = ("sim-1", "sim-2", "sim-3", "sim-4")
SHARES = {"any": 8_800, "android": 400, **dict.fromkeys(PHONES, 100), "too late": 400}
TOLD = 500
MOST_GROWTH_MIB = 60.0


class Start(NamedTuple):
    device: str
    pool: str
    sequence: int
    task: str


@pytest.mark.slow
@pytest.mark.timeout(1_200)
async def test_ten_thousand_requests_of_several_pools_are_begun_in_the_order_of_each_and_memory_is_bounded(
    tmp_path: Path,
) -> None:
    components.nats()
    async with nats_server(tmp_path / "nats") as server, executor_rig(server.url, tmp_path, *PHONES) as rig:
        await rig.services(up=False)  # nobody pulls before all are there
        process = await rig.start(LEASE_SECONDS="15")
        await until(rig.statuses, what="the executor")
        before = resident_mib(process.pid)
        late = await _ask_for_all(rig)
        waiting = {
            pool: [seq for seq, task in asked if task not in late] for pool, asked in (await _asked(rig)).items()
        }
        await _all_seen(rig)
        await _ended_unbegun(rig, late)
        log.info("grown by %.1f MiB with %d requests", resident_mib(process.pid) - before, QUEUED)
        share = await cpu_share(process.pid, 16)
        log.info("%.0f %% of a core for %d waiting requests", share * 100, QUEUED)
        assert share < 0.5, "a queue that waits costs little"
        await _begin(rig, min(STARTS, QUEUED - len(late) - len(PHONES)))
        starts = await _starts(rig)
        _in_order(starts, waiting)
        assert not {start.task for start in starts} & late
        await _told_as_it_is(rig, starts, late)
        grown = resident_mib(process.pid) - before
        log.info("grown by %.1f MiB after %d starts", grown, len(starts))
        assert grown < MOST_GROWTH_MIB


@pytest.mark.parametrize(
    "begun",
    [
        [("sim-1", "any", 2), ("sim-1", "any", 1)] + [("sim-2", "any", n) for n in range(7, 11)],
        [("sim-1", "sim-1", 101), ("sim-1", "sim-1", 100)],
        [("sim-1", "any", 1), ("sim-1", "sim-1", 100)],
        [("sim-1", "any", 1), ("sim-2", "any", 1)],
    ],
    ids=["more overtaken than hands", "own pool out of order", "any before own", "twice"],
)
def test_another_order_would_be_seen(begun: list[tuple[str, str, int]]) -> None:
    starts = [Start(*each, task=str(each[2])) for each in begun]
    waiting = {"any": list(range(1, 20)), "sim-1": [100, 101]}
    with pytest.raises(AssertionError):
        _in_order(starts, {pool: waiting[pool] for pool in {start.pool for start in starts}})


async def _ask_for_all(rig: Rig) -> set[str]:
    """Requests of all pools, mixed. Returns those that nobody may begin any more."""
    mixed = [pool for pool, share in SHARES.items() for _ in range(share)]
    rng = random.Random(10_000)
    rng.shuffle(mixed)
    late: set[str] = set()

    async def ask(pool: str) -> None:
        if pool == "too late":
            late.add(await rig.ask(pool=rng.choice(("any", "android", *PHONES)), not_after=1.0))
        else:
            await rig.ask(pool=pool)

    for n in range(0, QUEUED, 100):
        await asyncio.gather(*map(ask, mixed[n : n + 100]))
    return late


async def _asked(rig: Rig) -> dict[str, list[tuple[int, str]]]:
    """Sequence and task of each pool's requests, in order."""
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for subject, sequence, _, data in await gather.messages(rig.bus, "REQUESTS"):
        found[subject.removeprefix("request.")].append((sequence, json.loads(data)["task"]))
    return found


async def _all_seen(rig: Rig) -> None:
    async def none_unseen() -> bool:
        return (await rig.bus.api("CONSUMER.INFO.REQUESTS.INTAKE"))["num_pending"] == 0

    await until(none_unseen, within_s=240, what="the intake has seen all requests")


async def _ended_unbegun(rig: Rig, late: set[str]) -> None:
    async def all_ended() -> bool:
        ended = {parse_slot(each[0]).task for each in await gather.messages(rig.bus, "TASKS")}
        return ended == late

    await until(all_ended, within_s=120, what="the end of every request that came too late, and of no other")


async def _begin(rig: Rig, wanted: int) -> None:
    """Let phones begin tasks, and end each as its client would, until so many have begun; the last ones go on."""
    begun: asyncio.Queue[Msg] = asyncio.Queue()
    await rig.bus.client.subscribe("task.*.*.0.started", cb=begun.put)
    await flushed(rig.bus.client)
    await rig.services(up=True)
    began, ending = time.monotonic(), set[asyncio.Task[None]]()
    for n in range(wanted):
        message = await asyncio.wait_for(begun.get(), 60)
        if n < wanted - len(PHONES):
            task = asyncio.create_task(_end(rig, message.subject))
            ending.add(task)
            task.add_done_callback(ending.discard)
    await asyncio.gather(*ending)
    log.info("%d starts in %.0f s", wanted, time.monotonic() - began)

    async def all_busy() -> bool:
        return [status.state for status in await rig.statuses()] == ["busy"] * len(PHONES)

    await until(all_busy, what="each phone has a task")


async def _end(rig: Rig, subject: str) -> None:
    slot = parse_slot(subject)
    entry = await until(lambda: rig.log.read(slot), what=f"the stored {subject}")
    end = TaskFinished(status="cancelled", turns=0, finished_at_ms=1, by="its client", failure_reason="cancelled")
    await rig.log.fill(slot.sibling("finished"), end, attempt=new_attempt(), after=entry.sequence)


async def _starts(rig: Rig) -> list[Start]:
    found: list[Start] = []
    for subject, _, _, data in await gather.messages(rig.bus, "TASKS"):
        if subject.endswith(".started"):
            slot, body = parse_slot(subject), envelope.decode(data).body
            assert isinstance(body, TaskStarted)
            found.append(Start(slot.device, body.pool, body.request_sequence, slot.task))
    return found


def _in_order(starts: Sequence[Start], waiting: dict[str, list[int]]) -> None:
    """One pull at a time, own pool before platform before any. A phone's own pool is begun exactly in order; in a pool
    of several, what was overtaken was in the hand of another phone, and each has one hand."""
    assert len({start.task for start in starts}) == len(starts), "no task begins twice"
    for phone in PHONES:
        ranks = [(phone, "android", "any").index(start.pool) for start in starts if start.device == phone]
        assert ranks == sorted(ranks), phone
    for pool, sequences in waiting.items():
        begun = [start.sequence for start in starts if start.pool == pool]
        hands = 1 if pool in PHONES else len(PHONES)
        overtaken, left = set[int](), iter(sequences)
        for sequence in begun:
            if sequence in overtaken:
                overtaken.remove(sequence)
                continue
            for each in left:
                if each == sequence:
                    break
                overtaken.add(each)
            assert len(overtaken) < hands, f"{sequence} of {pool} before {sorted(overtaken)}"
        assert begun, pool
    log.info("%d of %d starts overtook one", _overtakings(starts), len(starts))


def _overtakings(starts: Sequence[Start]) -> int:
    newest: dict[str, int] = defaultdict(int)
    count = 0
    for start in starts:
        count += start.sequence < newest[start.pool]
        newest[start.pool] = max(newest[start.pool], start.sequence)
    return count


async def _told_as_it_is(rig: Rig, starts: Sequence[Start], late: set[str]) -> None:
    """`apex queue`: the first that wait, in order, and how many more do."""
    gone = {start.task for start in starts} | late
    asked = sorted(each for pool in (await _asked(rig)).values() for each in pool)
    wait = [task for _, task in asked if task not in gone]
    client = Client(rig.bus, "here")

    async def told() -> WaitingRequests | None:
        try:
            known = await client.waiting()
        except Transient:
            return None
        whole = known is not None and known.complete and len(known.waiting) + known.omitted == len(wait)
        return known if whole else None

    known = await until(told, within_s=120, what=f"the queue of {len(wait)}")
    assert [each.task for each in known.waiting] == wait[:TOLD]
    assert known.omitted == max(0, len(wait) - TOLD)
