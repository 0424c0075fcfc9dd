"""Postgres away under load, and ten thousand requests in the queue: nothing is lost, memory stays bounded.

APEX_TEST_AWAY_SECONDS makes the outage longer: docs/RELIABILITY.md has the figures of ten minutes.
"""

import asyncio
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

import components
import pytest
from integration.executor_rig import executor_rig, until

from apex_lab.chaos import gather, postgres_account
from apex_lab.chaos.evidence import Evidence
from apex_lab.chaos.load import Load
from apex_lab.chaos.run import _all_ended, _until
from apex_lab.embedded.nats import nats_server
from apex_lab.stack import Stack
from apex_schemas import slots
from apex_schemas.actions import FinishTask
from apex_schemas.subjects import Identity

log = logging.getLogger(__name__)

AWAY_SECONDS = float(os.environ.get("APEX_TEST_AWAY_SECONDS", "40"))
QUEUED = 10_000
MOST_GROWTH_MIB = 60.0


def resident_mib(pid: int | None) -> float:
    assert pid is not None
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.xdist_group("stack-outage")
async def test_postgres_away_under_load_loses_nothing_and_is_caught_up_with(tmp_path: Path) -> None:
    components.nats()
    components.postgres()
    async with Stack(tmp_path / "stack", phones=3) as stack, stack.client() as client:
        await stack.postgres.kill()
        before = resident_mib(stack.child("decision-log").pid)
        load = Load(client, seed=1, ahead=6)
        asking = asyncio.create_task(load.keep_asking())
        await asyncio.sleep(AWAY_SECONDS)
        load.end()
        await asking
        await _until(lambda: _all_ended(load), 300)
        assert not load.unfinished, "tasks do not wait for the database"
        grown = resident_mib(stack.child("decision-log").pid) - before
        assert grown < MOST_GROWTH_MIB, f"{grown:.0f} MiB"
        await stack.postgres.start()
        async with stack.bus(Identity.PROVISIONER) as bus:
            began = time.monotonic()
            await _until(lambda: gather.caught_up(bus), 300)
            took_s = time.monotonic() - began
            assert await gather.caught_up(bus)
            evidence = Evidence(
                asked=load.asked, stored=await gather.task_log(bus), decisions=await gather.decisions(bus), acts=(),
                calls=(), made=(), tables=await gather.tables(stack.database_url), phones={}, workers={}, ended_ms=0,
            )  # fmt: skip
        counted = len(evidence.stored) + len(evidence.decisions), len(load.asked)
        log.info("away %.0f s, caught up in %.1f s, grown by %.1f MiB", AWAY_SECONDS, took_s, grown)
        log.info("%d messages of %d tasks", *counted)
        assert len(evidence.stored) > 100
        assert not {name: where for name, where in postgres_account.compare(evidence).items() if where}


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_ten_thousand_queued_requests_are_taken_in_order_with_bounded_memory(tmp_path: Path) -> None:
    components.nats()
    async with nats_server(tmp_path / "nats") as server, executor_rig(server.url, tmp_path) as rig:
        tasks: list[str] = []
        process = await rig.start()
        await until(rig.statuses, what="the executor")
        before = resident_mib(process.pid)
        for _ in range(QUEUED // 100):
            tasks += await asyncio.gather(*(rig.ask() for _ in range(100)))
        in_order = sorted(tasks, key=(await _sequences(rig)).__getitem__)
        for task in in_order[:10]:
            assert (await rig.started(task)).task == task
            await rig.plan(task, 0, FinishTask(success=True, reason="done"))
            await rig.finished(task)
        starts = [each async for each in _started(rig)]
        assert starts[:10] == in_order[:10]

        async def all_seen() -> bool:
            info = await rig.bus.api("CONSUMER.INFO.REQUESTS.INTAKE")
            return info["num_pending"] == 0

        await until(all_seen, within_s=120, what="the intake has seen all requests")
        grown = resident_mib(process.pid) - before
        log.info("grown by %.1f MiB with %d requests", grown, QUEUED)
        assert grown < MOST_GROWTH_MIB
        await _still_idle(process.pid)


async def _sequences(rig: Any) -> dict[str, int]:
    return {json.loads(data)["task"]: seq for _, seq, _, data in await gather.messages(rig.bus, "REQUESTS")}


async def _started(rig: Any) -> Any:
    for subject, _, _, _ in await gather.messages(rig.bus, "TASKS"):
        if subject.endswith(".started"):
            yield slots.parse_slot(subject).task


async def _still_idle(pid: int) -> None:
    """A queue that waits costs little: less than half a core once everything was seen."""

    def cpu_s() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    began, used = time.monotonic(), cpu_s()
    await asyncio.sleep(20)  # a whole round of looks at the queue
    share = (cpu_s() - used) / (time.monotonic() - began)
    log.info("%.0f %% of a core for %d waiting requests", share * 100, QUEUED)
    assert share < 0.5
