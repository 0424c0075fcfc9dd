"""The walk through the decision-log: its process is killed in each gap before and after a commit and an
acknowledgement, one gap a life; in the end every message is in Postgres, once.
"""

import asyncio
import json
import sys
from pathlib import Path

import components
import decision_log_world as world
import pytest

from apex_bus.connection import Bus, connect
from apex_bus.provision import consumer_config, provision
from apex_bus.settings import BusSettings
from apex_decision_log import migrate
from apex_decision_log.service import DECISIONS, TASKS
from apex_lab.chaos import gather, postgres_account
from apex_lab.chaos.evidence import Evidence
from apex_lab.embedded.nats import nats_server
from apex_lab.embedded.postgres import postgres_server
from apex_schemas.subjects import Identity

_DIES = """
import functools, os, runpy, sys
from apex_bus.consume import Delivery
from apex_decision_log.store import Store

left = int(sys.argv[1])

def gap():
    global left
    left -= 1
    if left == 0:
        os._exit(9)

def between(method):
    @functools.wraps(method)
    async def call(*arguments):
        gap()
        result = await method(*arguments)
        gap()
        return result
    return call

Store.write = between(Store.write)
Delivery.ack = between(Delivery.ack)
sys.argv = ["apex_decision_log"]
runpy.run_module("apex_decision_log", run_name="__main__")
"""
_MOST_GAPS = 60
_NEVER = 1_000_000
_SECONDS = 60.0


async def _ack_soon(bus: Bus) -> None:
    """Let what a dead process held come again after a second instead of fifteen."""
    for consumer in (TASKS, DECISIONS):
        config = {**consumer_config(consumer), "ack_wait": 1_000_000_000}
        body = json.dumps({"stream_name": consumer.stream, "config": config}).encode()
        assert "error" not in await bus.api(f"CONSUMER.CREATE.{consumer.stream}.{consumer.name}", body)


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_every_message_is_in_postgres_once_whichever_gap_the_decision_log_dies_in(tmp_path: Path) -> None:
    components.nats()
    components.postgres()
    async with nats_server(tmp_path / "nats") as nats, postgres_server(tmp_path / "postgres") as postgres:
        await migrate.upgrade(postgres.dsn)
        bus = await connect(Identity.PROVISIONER, BusSettings(url=nats.url))
        await provision(bus, (world.DEVICE,))
        await _ack_soon(bus)
        environ = {
            "APEX_NATS_URL": nats.url,
            "DECISION_LOG_DATABASE_URL": postgres.dsn,
            "APEX_HEALTH_FILE": str(tmp_path / "health"),
        }
        deaths = 0
        for gap in range(1, _MOST_GAPS):
            task = world.task_id(gap)
            for subject, data in (*world.whole_task(task), world.decided(task, 0)):
                await bus.publish(subject, data)
            if not await _dies(gap, environ, bus, tmp_path / "decision-log.log"):
                break
            deaths = gap
            assert not await _dies(_NEVER, environ, bus, tmp_path / "decision-log.log")
        assert deaths >= 8, "a gap before and after commit and acknowledgement for each of two streams at least"
        evidence = Evidence(
            asked=(), stored=await gather.task_log(bus), decisions=await gather.decisions(bus), acts=(), calls=(),
            made=(), tables=await gather.tables(postgres.dsn), phones={}, workers={}, ended_ms=0,
        )  # fmt: skip
        await bus.close()
    assert len(evidence.decisions) == deaths + 1
    assert not {name: where for name, where in postgres_account.compare(evidence).items() if where}


async def _dies(gap: int, environ: dict[str, str], bus: Bus, log: Path) -> bool:
    """Start a decision-log that dies in its nth gap. False when it has no such gap: it then has stored everything."""
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _DIES, str(gap), env=environ, stdout=out, stderr=out
        )
    try:
        deadline = asyncio.get_running_loop().time() + _SECONDS
        while process.returncode is None:
            if await gather.caught_up(bus):
                return False
            assert asyncio.get_running_loop().time() < deadline, f"gap {gap}: neither dead nor done; see {log}"
            await asyncio.sleep(0.1)
        assert process.returncode == 9, f"gap {gap}: see {log}"
        return True
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
