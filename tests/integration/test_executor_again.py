"""`apex dead` and `apex dead again` on a real executor: what is handed back is handled, and no phone touched twice."""

import hashlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from integration.conftest import Nats
from integration.executor_rig import Rig, executor_rig, until
from integration.test_executor_cli import Said, apex

from apex_bus.connection import Bus
from apex_bus.pull import Pull
from apex_schemas import envelope, slots, subjects
from apex_schemas.actions import FinishTask, Tap
from apex_schemas.consumers import SHARED_CONSUMERS, pool_consumer
from apex_schemas.devices import DeadLetter
from apex_schemas.geometry import Point
from apex_schemas.ids import NO_DEVICE, new_attempt, new_task_id
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished


@pytest_asyncio.fixture
async def rig(nats_server: Nats, tmp_path: Path) -> AsyncGenerator[Rig]:
    async with executor_rig(nats_server.url, tmp_path) as rig:
        yield rig


async def write_letter(bus: Bus, stream: str, subject: str, sequence: int, data: bytes) -> int:
    """What an executor writes that has failed to handle a message for a quarter of an hour. Its number."""
    letter = DeadLetter(
        service=Identity.EXECUTOR, reason="failing for 901 s: KeyError", subject=subject, bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(), stream=stream, sequence=sequence,
    )  # fmt: skip
    return await bus.publish(subjects.dead(Identity.EXECUTOR), envelope.encode(letter, attempt=new_attempt()))


async def number_of_letter(rig: Rig, subject: str) -> int:
    async def look() -> int | None:
        listed = json.loads((await apex(rig, "dead", "--json")).out)
        return next((each["number"] for each in listed if each["letter"]["subject"] == subject), None)

    return await until(look, what=f"a letter about {subject}", within_s=30)


def outcome(said: Said) -> Any:
    return json.loads(said.out)[0]["answer"]


async def test_decision_that_was_carried_out_is_not_carried_out_again_when_its_letter_is_handed_back(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask()
    planned = await rig.plan(task, 0, Tap(at=Point(x=50, y=60)))
    assert (await rig.event(task, 0)).success
    acts = await rig.acts()
    stored = await rig.bus.get("TASKS", planned.slot.subject)
    assert stored is not None
    number = await write_letter(rig.bus, "TASKS", stored.subject, stored.sequence, stored.data)
    for _ in range(3):
        said = await apex(rig, "dead", "again", str(number), "--json")
        assert (said.code, outcome(said)["outcome"]) == (0, "handled"), said
    assert await rig.acts() == acts
    await rig.plan(task, 1, FinishTask(success=True, reason="done"))
    await rig.finished(task)
    said = await apex(rig, "dead", "again", str(number))
    assert said.code == 1
    assert f"nothing to be done: task {task} succeeded" in said.out
    assert await rig.acts() == acts


async def test_request_that_cannot_be_read_fails_again_and_its_task_is_named(rig: Rig) -> None:
    await rig.start()
    await rig.bus.publish("request.any", b'{"goal": "g", "gaol": 1}')
    number = await number_of_letter(rig, "request.any")
    said = await apex(rig, "dead", "again", str(number), "--json")
    answer = outcome(said)
    assert (said.code, answer["outcome"]) == (1, "failed")
    assert "gaol" in answer["reason"]
    assert " failed: " in answer["end"]


@pytest.mark.parametrize("wrong", [{"gaol": 1}, {"goal": " "}], ids=["a field of another version", "a blank goal"])
async def test_request_that_names_its_task_and_cannot_be_read_ends_that_task_and_is_told_so(
    rig: Rig, wrong: dict[str, Any]
) -> None:
    await rig.start(devices=())
    task = await rig.ask(**{"goal": "g", **wrong})
    number = await number_of_letter(rig, "request.any")
    said = await apex(rig, "dead", "again", str(number))
    assert said.code == 1, said
    assert "failed again" in said.out
    assert f"(task {task} failed: malformed request: " in said.out


async def test_request_that_can_be_read_by_now_is_told_to_have_ended_before_and_not_to_be_in_hand(rig: Rig) -> None:
    task = new_task_id()
    data = json.dumps({"goal": "g", "task": task}).encode()
    sequence = await rig.bus.publish("request.any", data)
    intake = next(each for each in SHARED_CONSUMERS if each.name == "INTAKE")
    for consumer in (intake, pool_consumer("any")):  # an older version had it, which could not read it
        async with Pull(rig.bus, consumer) as pull:
            given = await pull.next(1)
            assert given is not None
            await given.term()
    end = TaskFinished(status="failed", turns=0, finished_at_ms=1, by="e", failure_reason="malformed request: goal")
    await rig.log.fill(slots.finished(NO_DEVICE, task), end, attempt=new_attempt())
    number = await write_letter(rig.bus, "REQUESTS", "request.any", sequence, data)
    await rig.start()
    await until(lambda: rig.bus.ping("executor"), what="the executor")
    said = await apex(rig, "dead", "again", str(number))
    assert said.code == 1, said
    assert f"nothing to be done: task {task} failed: malformed request: goal" in said.out


async def test_request_whose_time_is_over_by_now_ends_by_that_and_is_told_so(rig: Rig) -> None:
    data = json.dumps({"goal": "g", "task": "a" * 32, "not_after": 1}).encode()
    sequence = await rig.bus.publish("request.ios", data)
    intake = next(each for each in SHARED_CONSUMERS if each.name == "INTAKE")
    async with Pull(rig.bus, intake) as pull:
        buried = await pull.next(1)
        assert buried is not None
        await buried.term()
    number = await write_letter(rig.bus, "REQUESTS", "request.ios", sequence, data)
    await rig.start(devices=())
    await until(lambda: rig.bus.ping("executor"), what="the executor")
    said = await apex(rig, "dead", "again", str(number))
    assert said.code == 0, said
    assert f"handled; task {'a' * 32} failed: no device of pool ios took it in time" in said.out
    said = await apex(rig, "dead", "again", str(number))
    assert said.code == 1, said
    assert f"nothing to be done: task {'a' * 32} failed: no device of pool ios took it in time" in said.out


async def test_letter_message_and_service_that_are_not_there_are_told_apart(rig: Rig) -> None:
    said = await apex(rig, "dead", "again", "7")
    assert (said.code, "no longer there: 7" in said.err) == (4, True), said
    sequence = await rig.bus.publish("cancel.a", b"x")
    number = await write_letter(rig.bus, "REQUESTS", "cancel.a", sequence, b"x")
    said = await apex(rig, "dead", "again", str(number))
    assert (said.code, "executor does not answer" in said.err) == (3, True), said
    replaced = await write_letter(rig.bus, "REQUESTS", "cancel.a", sequence, b"another")
    await rig.start(devices=())
    await until(lambda: rig.bus.ping("executor"), what="the executor")
    said = await apex(rig, "dead", "again", str(number), str(replaced), "--json")
    assert (said.code, [each["answer"]["outcome"] for each in json.loads(said.out)]) == (4, ["failed", "gone"]), said
