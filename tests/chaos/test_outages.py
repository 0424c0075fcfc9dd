"""Postgres away under load: nothing is lost, memory stays bounded.

APEX_TEST_AWAY_SECONDS makes the outage longer: docs/RELIABILITY.md has the figures of ten minutes.
"""

import asyncio
import logging
import os
import time
from pathlib import Path

import components
import pytest
from chaos.resources import resident_mib

from apex_lab.chaos import gather, postgres_account
from apex_lab.chaos.evidence import Evidence
from apex_lab.chaos.load import Load
from apex_lab.chaos.run import _all_ended, _until
from apex_lab.stack import Stack
from apex_schemas.subjects import Identity

log = logging.getLogger(__name__)

AWAY_SECONDS = float(os.environ.get("APEX_TEST_AWAY_SECONDS", "40"))
MOST_GROWTH_MIB = 60.0


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
