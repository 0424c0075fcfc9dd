"""Poison on the wire of a running system: each ends in DEAD, with its reason, or in a failed task; and work goes on."""

import asyncio
import json
import math
import sys
from collections.abc import AsyncGenerator
from typing import Any

import components
import msgspec
import pytest
import pytest_asyncio

from apex_bus.connection import Bus
from apex_lab.chaos import gather
from apex_lab.stack import Stack
from apex_schemas import envelope
from apex_schemas.actions import Tap
from apex_schemas.devices import DeadLetter
from apex_schemas.errors import TooLarge
from apex_schemas.geometry import Point, Size
from apex_schemas.ids import new_task_id
from apex_schemas.scene import Scene, Screen
from apex_schemas.slots import Slot
from apex_schemas.steps import PlannedStep, WorldEvent
from apex_schemas.structs import Wire
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished, TaskRequest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("stack-poison"),
]
DEVICE = "sim-1"
SECONDS = 60.0
TAP = Tap(at=Point(x=1, y=1))
BODIES: dict[str, tuple[Identity, str, Wire]] = {
    "scene": (
        Identity.PERCEPTION, "planner", Scene(app="a", page="p", screen=Screen(size=Size(width=9, height=9))),
    ),
    "planned": (Identity.PLANNER, "executor", PlannedStep(action=TAP, page="p")),
    "event": (Identity.EXECUTOR, "perception", WorldEvent(action=TAP, success=True)),
}  # fmt: skip
"""Whose word it is, and whom it makes work."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stack]:
    components.nats()
    components.postgres()
    async with Stack(tmp_path_factory.mktemp("stack")) as it:
        yield it


def deep(levels: int) -> bytes:
    return b"\x91" * levels + b"\x90"


def whole(body: Wire, slot: Slot) -> dict[str, Any]:
    """The envelope as a mapping, to be falsified."""
    data = envelope.encode(body, task=slot.task, device=slot.device, turn=slot.turn, attempt="a")
    return msgspec.msgpack.decode(data)


def poisons(body: Wire, slot: Slot) -> dict[str, bytes]:
    told = whole(body, slot)
    inner = told["body"] if isinstance(told["body"], dict) else msgspec.msgpack.decode(told["body"])
    encode = msgspec.msgpack.encode
    place = {"x": 2**63, "y": 1}
    numbers = {"action": {"type": "tap", "at": place}, "screen": {"size": {"width": 2**63, "height": 1}}}
    return {
        "garbage": b"\xff\x00\x01 no message",
        "nothing": b"",
        "another task": encode({**told, "task": "f" * 32}),
        "another device": encode({**told, "device": "sim-9"}),
        "another turn": encode({**told, "turn": 7}),
        "nan": encode({**told, "turn": math.nan}),
        "huge numbers": encode({**told, "body": {**inner, **{k: v for k, v in numbers.items() if k in inner}}}),
        "nan among numbers": encode({**told, "body": {**inner, "page": math.nan, "observe_ms": math.nan}}),
        "deep": deep(10_000),
        "deep body": encode({**told, "body": msgspec.Raw(deep(10_000))}),
        "body of another kind": encode({**told, "body": {"unknown": 1}}),
    }


async def letters(stack: Stack, subject: str) -> dict[str, DeadLetter]:
    """Dead letters about a subject, by service."""
    async with stack.bus(Identity.PROVISIONER) as bus:
        found = [envelope.decode(data).body for _, _, _, data in await gather.messages(bus, "DEAD")]
    return {letter.service: letter for letter in found if letter.subject == subject}


async def until_dead(stack: Stack, subject: str, *services: str) -> dict[str, DeadLetter]:
    deadline = asyncio.get_running_loop().time() + SECONDS
    while not (found := await letters(stack, subject)).keys() >= {*services, "decision-log"}:
        if asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(0.2)
    return found


async def _works(stack: Stack) -> None:
    """A task still runs to its end."""
    task = new_task_id()
    async with stack.client() as client, client.following(task) as happenings:
        await client.submit(TaskRequest(goal="turn on Wi-Fi", task=task, timeout_s=60), "any")
        async for happening in happenings:
            if isinstance(happening.body, TaskFinished):
                assert happening.body.status == "succeeded"


@pytest.mark.parametrize("kind", BODIES)
async def test_poisoned_slot_is_buried_with_its_reason_by_whom_it_makes_work_and_work_goes_on(
    stack: Stack, kind: Any
) -> None:
    writer, service, body = BODIES[kind]
    subjects: dict[str, str] = {}
    async with stack.bus(writer) as bus:
        for name in poisons(body, Slot(device=DEVICE, task=new_task_id(), kind=kind, turn=0)):
            slot = Slot(device=DEVICE, task=new_task_id(), kind=kind, turn=0)
            await bus.publish(slot.subject, poisons(body, slot)[name])
            subjects[name] = slot.subject
    found = {name: await until_dead(stack, subject, service) for name, subject in subjects.items()}
    for name, by_service in found.items():
        assert by_service.keys() == {service, "decision-log"}, name
        assert all(letter.reason and letter.sequence for letter in by_service.values()), name
    await _works(stack)


async def test_slot_of_a_newer_version_is_skipped_and_counted_and_work_goes_on(stack: Stack) -> None:
    slot = Slot(device=DEVICE, task=new_task_id(), kind="scene", turn=0)
    newer = {**whole(BODIES["scene"][2], slot), "kind": "scene.v99"}
    async with stack.bus(Identity.PERCEPTION) as bus:
        await bus.publish(slot.subject, msgspec.msgpack.encode(newer))
    await _works(stack)
    assert not await letters(stack, slot.subject)


REQUESTS: dict[str, bytes] = {
    "garbage": b"\xff no request",
    "nothing": b"",
    "a list": b"[1]",
    "an unknown field": b'{"goal": "g", "gaol": 1}',
    "nan": b'{"goal": "g", "max_turns": NaN}',
    "a huge number": b'{"goal": "g", "max_turns": 1e400}',
    "deep": b'{"goal": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "a lone surrogate": b'{"goal": "\\ud800"}',
    "no goal": b"{}",
    "too large": b'{"goal": "' + b"g" * 200_000 + b'"}',
}


async def test_poisoned_request_ends_as_a_failed_task_and_in_dead_with_its_reason(stack: Stack) -> None:
    async with stack.bus(Identity.CLIENT) as bus, stack.bus(Identity.PROVISIONER) as reader:
        before = len(await gather.messages(reader, "DEAD"))
        ends = {each[0] for each in await gather.messages(reader, "TASKS") if each[0].startswith("task.none.")}
        for data in REQUESTS.values():
            await bus.publish("request.any", data)
        deadline = asyncio.get_running_loop().time() + SECONDS
        while True:
            new = [envelope.decode(data).body for _, _, _, data in (await gather.messages(reader, "DEAD"))[before:]]
            told = {letter.sequence: letter.reason for letter in new if letter.subject == "request.any"}
            failed = [
                envelope.decode(data).body
                for subject, _, _, data in await gather.messages(reader, "TASKS")
                if subject.startswith("task.none.") and subject not in ends
            ]
            if len(told) >= len(REQUESTS) and len(failed) >= len(REQUESTS):
                break
            assert asyncio.get_running_loop().time() < deadline, (told, failed)
            await asyncio.sleep(0.2)
    assert all(told.values())
    assert all(end.status == "failed" and end.failure_reason for end in failed)
    await _works(stack)


async def test_message_of_nine_megabytes_is_refused_by_name_and_closes_nobody_else(stack: Stack) -> None:
    async with stack.bus(Identity.CLIENT) as bus:
        with pytest.raises(TooLarge, match=r"request\.any"):
            await bus.publish("request.any", b"x" * (9 * 2**20))
        assert (await bus.publish("request.any", json.dumps({"goal": "turn on Wi-Fi"}).encode())) > 0
        await _raw_nine_megabytes(bus)
    await _works(stack)


async def test_dead_letters_are_listed_for_the_operator_and_for_nobody_else(stack: Stack) -> None:
    slot = Slot(device=DEVICE, task=new_task_id(), kind="scene", turn=0)
    async with stack.bus(Identity.PERCEPTION) as bus:
        await bus.publish(slot.subject, b"no message")
    await until_dead(stack, slot.subject, "planner")
    listed = await _apex(stack, Identity.OPERATOR, "dead", "--json")
    letters = [each["letter"] for each in json.loads(listed)]
    assert {letter["service"] for letter in letters if letter["subject"] == slot.subject} == {"planner", "decision-log"}
    assert "planner" in await _apex(stack, Identity.OPERATOR, "dead", "--service", "planner")
    with pytest.raises(AssertionError):
        await _apex(stack, Identity.CLIENT, "dead")


async def test_poison_that_is_handed_back_fails_again_by_each_service_and_for_the_operator_alone(stack: Stack) -> None:
    places = {kind: Slot(device=DEVICE, task=new_task_id(), kind=kind, turn=0) for kind in BODIES}
    for kind, (writer, service, _) in BODIES.items():
        subject = places[kind].subject
        async with stack.bus(writer) as bus:
            await bus.publish(subject, b"no message")
        assert (await until_dead(stack, subject, service)).keys() == {service, "decision-log"}
    listed = json.loads(await _apex(stack, Identity.OPERATOR, "dead", "--json"))
    subjects = {slot.subject for slot in places.values()}
    numbers = [str(each["number"]) for each in listed if each["letter"]["subject"] in subjects]
    assert len(numbers) == 6
    told = json.loads(await _apex(stack, Identity.OPERATOR, "dead", "again", "--json", *numbers, code=1))
    assert [each["answer"]["outcome"] for each in told] == ["failed"] * 6, told
    assert all(each["answer"]["reason"] for each in told)
    await _apex(stack, Identity.CLIENT, "dead", "again", *numbers, code=3)
    assert len(json.loads(await _apex(stack, Identity.OPERATOR, "dead", "--json"))) == len(listed)
    await _works(stack)


async def _apex(stack: Stack, identity: Identity, *arguments: str, code: int = 0) -> str:
    seed = str(stack.wiring.seeds[identity])
    environ = {"APEX_NATS_URL": stack.nats.url, "APEX_NATS_SEED_FILE": seed}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "apex_cli", *arguments, env=environ, stdout=-1, stderr=-1
    )
    out, said = await process.communicate()
    assert process.returncode == code, said.decode()
    return out.decode()


async def _raw_nine_megabytes(bus: Bus) -> None:
    """A client that does not keep to the limit is closed by the server, and stores nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", bus.client.connected_url.port)
    await reader.readline()
    writer.write(b'CONNECT {"verbose":false}\r\nPUB request.any 9437184\r\n')
    await writer.drain()
    said = await asyncio.wait_for(reader.read(), 10)
    assert b"Maximum Payload" in said
    writer.close()
