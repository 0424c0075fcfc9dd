"""What a client has the server store in place of a record: nobody believes it, nothing ends for it, no task is lost.

A client names a record's subject as the place for the acknowledgement of its own request; permissions cannot stop it.
"""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio
from integration.bus_rig import provisioned
from integration.conftest import Nats
from integration.executor_rig import DEVICE, Rig, executor_rig, until
from integration.test_perception_service import Stage, stage

from apex_bus.connection import Bus, Stored
from apex_bus.records import Record
from apex_planner.ledger import BusLedger
from apex_schemas import envelope, subjects
from apex_schemas.actions import Tap
from apex_schemas.devices import DeviceRecord
from apex_schemas.errors import WireError
from apex_schemas.geometry import Point
from apex_schemas.ids import new_task_id
from apex_schemas.slots import Slot
from apex_schemas.steps import DecisionKey

__all__ = ["stage"]


@pytest_asyncio.fixture
async def rig(nats_server: Nats, tmp_path: Path) -> AsyncGenerator[Rig]:
    async with executor_rig(nats_server.url, tmp_path) as rig:
        yield rig


def is_none(stored: Stored) -> bool:
    try:
        envelope.decode(stored.data)
    except WireError:
        return True
    return False


async def write_over(bus: Bus, stream: str, subject: str) -> None:
    """As any client can: the server stores its acknowledgement of a request there."""
    old = await bus.get(stream, subject)
    await bus.client.publish("request.any", b'{"goal": "x", "not_after": 1}', reply=subject)

    async def over() -> bool:
        stored = await bus.get(stream, subject)
        return stored is not None and (old is None or stored.sequence != old.sequence)

    await until(over, what="the record is written over")


async def test_write_on_a_record_that_was_written_over_is_refused_and_goes_on_from_what_is_there(
    nats_server: Nats,
) -> None:
    async with provisioned(nats_server.url) as bus:
        record = Record(bus, "DEVICES", subjects.device("pixel"))
        last = await record.write(DeviceRecord(worker="w", epoch=1), attempt="a", last=0)
        assert last is not None
        await write_over(bus, "DEVICES", record.subject)
        assert await record.write(DeviceRecord(worker="w", epoch=1), attempt="b", last=last) is None
        stored = await record.read()
        assert stored is not None
        assert is_none(stored)
        assert await record.write(DeviceRecord(worker="w", epoch=2), attempt="c", last=stored.sequence) is not None


async def test_executor_whose_record_is_written_over_goes_on_with_its_task(rig: Rig) -> None:
    process = await rig.start()
    task = await rig.ask()
    await rig.started(task)
    for turn in range(3):
        await write_over(rig.bus, "DEVICES", subjects.device(DEVICE))
        await rig.plan(task, turn, Tap(at=Point(x=270, y=600)))
        assert (await rig.event(task, turn)).success is True
    assert len(await rig.acts()) == 3
    assert process.returncode is None


async def test_perception_waits_until_the_record_is_written_again(stage: Stage) -> None:
    task = new_task_id()
    session = await stage.session()
    await stage.hold(task, session)
    await write_over(stage.bus, "DEVICES", subjects.device("sim-1"))
    async with stage.perception():
        await stage.begin(task)

        async def met() -> bool:
            info = await stage.bus.api("CONSUMER.INFO.TASKS.PERCEPTION")
            return info["num_redelivered"] > 0

        await until(met, what="perception has met the record")
        await stage.hold(task, session)
        assert (await stage.scene(task, 0)).elements
    assert await stage.bus.get("DEAD", "dead.perception") is None
    assert await stage.log.read(Slot(device="sim-1", task=task, turn=None, kind="finished")) is None


async def test_claim_that_was_written_over_is_held_by_its_holder_and_by_nobody_else(nats_server: Nats) -> None:
    key = DecisionKey(task=new_task_id(), turn=0, call=0)
    async with provisioned(nats_server.url) as bus, provisioned(nats_server.url) as other:
        async with BusLedger(bus, claim_s=3).claim(key) as ours:
            assert ours
            await write_over(bus, "CLAIMS", subjects.claim(key.task, 0))
            claim = Record(bus, "CLAIMS", subjects.claim(key.task, 0))

            async def again() -> bool:
                stored = await claim.read()
                return stored is not None and not is_none(stored)

            await until(again, what="the claim is written again")
            async with BusLedger(other, claim_s=3).claim(key) as theirs:
                assert not theirs


async def test_claim_is_taken_where_something_else_was_stored_before(nats_server: Nats) -> None:
    key = DecisionKey(task=new_task_id(), turn=0, call=0)
    async with provisioned(nats_server.url) as bus:
        await write_over(bus, "CLAIMS", subjects.claim(key.task, 0))
        async with asyncio.timeout(20), BusLedger(bus, claim_s=3).claim(key) as ours:
            assert ours
