"""The server itself refuses a second write of a slot, by whatever means it comes; and what a full store does."""

import json
from typing import Any

import msgspec
import pytest
from integration.bus_rig import connected, provisioned, slot, start
from integration.conftest import Nats

from apex_bus.connection import Bus, Refused, flushed
from apex_bus.errors import StoreFull
from apex_bus.provision import provision, stream_config
from apex_bus.tasklog import Filled, TaskLog
from apex_schemas.ids import new_task_id
from apex_schemas.slots import started
from apex_schemas.streams import STREAMS
from apex_schemas.subjects import decision

PLACES = [slot("planned", 0).subject, decision(new_task_id(), 0, 0)]
SECOND_WRITES: dict[str, tuple[bytes, dict[str, str] | None]] = {
    "no headers": (b"second", None),
    "an empty message": (b"", None),
    "a fence that matches nothing": (
        b"second",
        {"Nats-Expected-Last-Subject-Sequence": "0", "Nats-Expected-Last-Subject-Sequence-Subject": "other.subject"},
    ),
    "a fence in lower case": (b"second", {"nats-expected-last-subject-sequence": "0"}),
    "the right sequence": (b"second", {"Nats-Expected-Last-Subject-Sequence": "1"}),
    "a roll-up of the subject": (b"second", {"Nats-Rollup": "sub"}),
    "a roll-up of everything": (b"second", {"Nats-Rollup": "all"}),
    "a time to live": (b"second", {"Nats-TTL": "1s"}),
    "a schedule": (b"second", {"Nats-Schedule": "@at 2030-01-01T00:00:00Z", "Nats-Schedule-Target": "task.x"}),
    "an atomic batch": (
        b"second",
        {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"},
    ),
}


async def _content(bus: Bus, subject: str) -> bytes:
    stored = await bus.get("TASKS" if subject.startswith("task") else "DECISIONS", subject)
    assert stored is not None
    return stored.data


@pytest.mark.parametrize("subject", PLACES, ids=["TASKS", "DECISIONS"])
async def test_second_write_of_a_slot_is_refused_by_whatever_means(nats_server: Nats, subject: str) -> None:
    async with provisioned(nats_server.url) as bus:
        await bus.publish(subject, b"first")
        for means, (data, headers) in SECOND_WRITES.items():
            with pytest.raises(Refused):
                await bus.publish(subject, data, headers=headers)
            assert await _content(bus, subject) == b"first", means
        await bus.client.publish(subject, b"without asking for an acknowledgement")
        assert await _content(bus, subject) == b"first"


@pytest.mark.parametrize("subject", PLACES, ids=["TASKS", "DECISIONS"])
async def test_slot_can_be_neither_deleted_nor_purged_nor_its_stream_opened_for_it(
    nats_server: Nats, subject: str
) -> None:
    async with provisioned(nats_server.url) as bus:
        name = "TASKS" if subject.startswith("task") else "DECISIONS"
        await bus.publish(subject, b"first")
        for call, body in (
            (f"STREAM.PURGE.{name}", {"filter": subject}),
            (f"STREAM.PURGE.{name}", {}),
            (f"STREAM.MSG.DELETE.{name}", {"seq": 1}),
            (f"STREAM.UPDATE.{name}", {**_config(name), "deny_purge": False}),
            (f"STREAM.UPDATE.{name}", {**_config(name), "deny_delete": False}),
        ):
            assert "error" in await bus.api(call, json.dumps(body).encode()), (call, body)
        assert await _content(bus, subject) == b"first"


async def test_acknowledgement_of_a_message_sent_on_as_a_reply_writes_no_slot_twice(nats_server: Nats) -> None:
    """A client may have the server publish for it, by naming a foreign reply subject; the slot holds all the same."""
    async with provisioned(nats_server.url) as bus:
        subject = slot("planned", 0).subject
        await bus.publish(subject, b"first")
        await bus.client.publish("request.any", b"{}", reply=subject)
        await flushed(bus.client)
        assert await _content(bus, subject) == b"first"


async def test_full_log_refuses_new_slots_keeps_the_old_and_goes_on_once_there_is_room(nats_server: Nats) -> None:
    async with connected(nats_server.url) as bus:
        await provision(bus, (), store_mib=8)
        log, filled, task = TaskLog(bus), list[str](), new_task_id()

        async def fill_up() -> None:
            nonlocal task
            for task in (new_task_id() for _ in range(200)):
                big = msgspec.structs.replace(start(task), request_digest="d" * 60_000)
                assert isinstance(await log.fill(started("pixel", task), big, attempt="a"), Filled)
                filled.append(task)

        with pytest.raises(StoreFull) as full:
            await fill_up()
        assert full.value.stream == "TASKS"
        assert len(filled) > 10
        assert bus.trouble is not None, "health turns red"
        assert "stream TASKS is full" in bus.trouble
        for again in (filled[0], filled[-1]):  # an own write is known as such on a full stream too
            body = start(again)
            assert isinstance(await log.fill(started("pixel", again), body, attempt="a"), Filled)
        roomy = {**_config("TASKS"), "max_bytes": 64 * 2**20}
        assert "error" not in await bus.api("STREAM.UPDATE.TASKS", json.dumps(roomy).encode())
        assert isinstance(await log.fill(started("pixel", task), start(task), attempt="a"), Filled)
        assert bus.trouble is None
        for each in filled:
            assert await log.read(started("pixel", each)) is not None


@pytest.mark.parametrize("subject", ["shot.t.0.a", "dead.executor"])
async def test_full_stream_that_may_forget_drops_its_oldest(nats_server: Nats, subject: str) -> None:
    async with connected(nats_server.url) as bus:
        await provision(bus, (), store_mib=8)
        for n in range(40):
            await bus.publish(subject, bytes([n]) * 60_000)
        name = "SHOTS" if subject.startswith("shot") else "DEAD"
        newest = await bus.get(name, subject)
        assert newest is not None
        assert newest.data[0] == 39
        info = await bus.api(f"STREAM.INFO.{name}")
        assert info["state"]["bytes"] <= info["config"]["max_bytes"]


def _config(name: str) -> dict[str, Any]:
    stream = next(each for each in STREAMS if each.name == name)
    return stream_config(stream, replicas=1, store_mib=7_616)
