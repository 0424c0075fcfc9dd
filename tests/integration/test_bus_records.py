"""Records that are changed by compare-and-set alone, on a real server."""

import asyncio

import pytest
from integration.bus_rig import connected, provisioned, until_answered
from integration.conftest import Nats

from apex_bus.connection import Bus
from apex_bus.errors import LogUnavailable
from apex_bus.records import Record
from apex_schemas import envelope, subjects
from apex_schemas.decision import PlannerClaim
from apex_schemas.devices import DeviceRecord
from apex_schemas.ids import new_task_id

BODY = DeviceRecord(worker="w1", epoch=1)


def _device(bus: Bus) -> Record:
    return Record(bus, "DEVICES", subjects.device("pixel"))


def _claim(bus: Bus) -> Record:
    return Record(bus, "CLAIMS", subjects.claim(new_task_id(), 0))


async def test_record_is_replaced_by_who_knows_its_sequence_and_by_nobody_else(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        record = _device(bus)
        assert await record.read() is None
        first = await record.write(BODY, attempt="a", last=0)
        assert first is not None
        assert await record.write(BODY, attempt="b", last=0) is None
        second = await record.write(BODY, attempt="c", last=first)
        assert second is not None
        assert await record.write(BODY, attempt="d", last=first) is None
        stored = await record.read()
        assert stored is not None
        assert (stored.sequence, envelope.decode(stored.data).attempt) == (second, "c")


async def test_record_that_two_write_at_once_has_one_winner_each_time(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus, connected(nats_server.url) as other:
        last = 0
        for n in range(50):
            written = await asyncio.gather(
                _device(bus).write(BODY, attempt=f"a{n}", last=last),
                _device(other).write(BODY, attempt=f"b{n}", last=last),
            )
            [last] = [sequence for sequence in written if sequence is not None]


async def test_own_write_whose_acknowledgement_was_lost_is_known_by_its_attempt(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        record = _device(bus)
        sequence = await bus.publish(record.subject, envelope.encode(BODY, attempt="mine"))
        assert await record.write(BODY, attempt="mine", last=0) == sequence


async def test_write_without_answer_that_was_stored_counts(nats_server: Nats, monkeypatch: pytest.MonkeyPatch) -> None:
    async with provisioned(nats_server.url) as bus:
        record, publish = _device(bus), bus.publish

        async def unanswered(*args: object, **more: object) -> int:
            await publish(*args, **more)  # type: ignore[arg-type]
            raise LogUnavailable("lost on its way back")

        with monkeypatch.context() as patch:
            patch.setattr(bus, "publish", unanswered)
            assert await record.write(BODY, attempt="mine", last=0) == 1


async def test_write_without_answer_and_effect_is_open_and_may_be_repeated(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        record, publish = _device(bus), bus.publish

        async def lost(*_: object, **__: object) -> int:
            raise LogUnavailable("lost on its way there")

        bus.publish = lost  # type: ignore[method-assign, assignment]
        with pytest.raises(LogUnavailable):
            await record.write(BODY, attempt="mine", last=0)
        bus.publish = publish  # type: ignore[method-assign]
        assert await record.write(BODY, attempt="mine", last=0) == 1


async def test_claim_lives_while_it_is_renewed_and_vanishes_when_it_is_not(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        claim, body = _claim(bus), PlannerClaim(worker="w", call=0)
        last = await claim.write(body, attempt="a", last=0, ttl_s=3)
        for n in range(6):  # three and a half seconds: longer than it would live unrenewed
            await asyncio.sleep(0.6)
            assert last is not None
            last = await claim.write(body, attempt=f"r{n}", last=last, ttl_s=3)
        assert last is not None

        async def gone() -> bool:
            return await claim.read() is None

        await until_answered(gone, "it has expired", within_s=20)
        assert await claim.write(body, attempt="late", last=last, ttl_s=1) is None, "a late renewal is refused"
        assert await claim.write(body, attempt="other", last=0, ttl_s=1) is not None


async def test_claim_that_expires_while_the_server_is_down_is_gone_when_it_is_back(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        claim = _claim(bus)
        await claim.write(PlannerClaim(worker="w", call=0), attempt="a", last=0, ttl_s=1)
        await nats_server.kill()
        await asyncio.sleep(1.2)  # the life of the claim
        await nats_server.start()

        async def gone() -> bool:
            try:
                return await claim.read() is None
            except LogUnavailable:
                return False

        await until_answered(gone, "it has expired", within_s=20)
