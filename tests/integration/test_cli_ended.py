"""How a client learns of an end, read back from a real server: what cannot be read is told as a failure."""

import pytest
from integration.bus_rig import end, provisioned, slot
from integration.conftest import Nats

from apex_bus.tasklog import TaskLog
from apex_cli import lookup
from apex_cli.client import Client
from apex_schemas import envelope
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.task import CancelRequest


async def test_task_that_has_not_ended_has_no_end_and_one_that_has_tells_it(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        client, place = Client(bus, "here"), slot("finished", None)
        assert await client.ended(place.task) is None
        await TaskLog(bus).fill(place, end("cancelled"), attempt=new_attempt())
        told = await client.ended(place.task)
    assert told is not None
    assert (told.slot, told.body.status) == (place, "cancelled")


@pytest.mark.parametrize("other_kind", [False, True])
async def test_end_that_cannot_be_read_is_told_as_a_failure_to_whoever_follows_or_looks_for_it(
    nats_server: Nats, other_kind: bool
) -> None:
    task = new_task_id()
    body = envelope.encode(CancelRequest(), task=task, device="sim-1") if other_kind else b"noise"
    async with provisioned(nats_server.url) as bus:
        client = Client(bus, "here")
        async with client.following(task) as happenings:
            await bus.publish(f"task.sim-1.{task}.end.finished", body)
            seen = [happening.body.status async for happening in happenings]
        found = await lookup.find(client, task)
    assert seen == ["failed"]
    assert found.status == "failed"
    assert "cannot be read" in lookup.told(found)
