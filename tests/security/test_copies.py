"""What a taken-over service has the server copy to where it may not write is read there as nobody's word.

The server answers a read with its own rights, to whatever reply subject the reader names: a subject of a stream keeps
the answer. Each test here failed while a copy was read as the real thing.
"""

import asyncio
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from security.conftest import Guarded

from apex_bus.connection import Bus, connect, flushed
from apex_bus.tasklog import TaskLog, Unreadable
from apex_schemas import envelope
from apex_schemas.actions import Tap
from apex_schemas.geometry import Point
from apex_schemas.ids import new_task_id
from apex_schemas.slots import Slot
from apex_schemas.steps import PlannedStep
from apex_schemas.subjects import Identity

I = Identity  # noqa: E741
GET = "$JS.API.DIRECT.GET"


@pytest_asyncio.fixture
async def executor(guarded: Guarded) -> AsyncGenerator[Bus]:
    bus = await connect(I.EXECUTOR, guarded.settings(I.EXECUTOR))
    yield bus
    await bus.close()


async def copied(guarded: Guarded, content: bytes, source: tuple[Identity, str, str], target: str) -> None:
    """Have `content` written where the identity may, and read back to `target`."""
    identity, stream, place = source
    async with guarded.client(identity) as (client, refusals):
        await client.request(place, content, timeout=20)
        await client.publish(f"{GET}.{stream}.{place}", b"", reply=target)
        await flushed(client)
        assert refusals == [], "the server itself does not refuse this, or the test proves nothing"


async def stored(bus: Bus, stream: str, subject: str) -> bytes:
    async with asyncio.timeout(20):
        while (found := await bus.get(stream, subject)) is None:
            await asyncio.sleep(0.02)
    return found.data


async def test_an_approval_that_the_planner_has_copied_says_nothing(guarded: Guarded, executor: Bus) -> None:
    task = new_task_id()
    approval = b'{"approved": true}'
    await copied(guarded, approval, (I.PLANNER, "CLAIMS", f"claim.{task}.3"), f"approve.{task}.3")
    assert await stored(executor, "REQUESTS", f"approve.{task}.3") == b""
    async with guarded.client(I.OPERATOR) as (operator, _):
        await operator.request(f"approve.{task}.3", approval, timeout=20)
    assert await stored(executor, "REQUESTS", f"approve.{task}.3") == approval


@pytest.mark.parametrize(
    ("source", "stream", "target"),
    [
        ((I.ENDPOINT, "CLAIMS", "claim.{task}.3"), "DEVICES", "device.sim-2"),
        ((I.EXECUTOR, "TASKS", "task.sim-1.{task}.1.event"), "CLAIMS", "claim.{task}.1"),
        ((I.ENDPOINT, "DECISIONS", "decision.{task}.3.0"), "REQUESTS", "approve.{task}.4"),
    ],
)
async def test_a_record_that_was_copied_says_nothing(
    guarded: Guarded, executor: Bus, source: tuple[Identity, str, str], stream: str, target: str
) -> None:
    task = new_task_id()
    identity, of, place = source
    await copied(guarded, b"forged", (identity, of, place.format(task=task)), target.format(task=task))
    assert await stored(executor, stream, target.format(task=task)) == b""


async def test_a_step_that_perception_has_copied_into_the_log_cannot_be_read_there(
    guarded: Guarded, executor: Bus
) -> None:
    task = new_task_id()
    planned = Slot(device="sim-1", task=task, kind="planned", turn=2)
    step = PlannedStep(action=Tap(at=Point(x=7, y=9)), page="Settings", ungrounded=True)
    forged = envelope.encode(step, task=task, device="sim-1", turn=2, attempt="forged")
    await copied(guarded, forged, (I.PERCEPTION, "TASKS", f"task.sim-1.{task}.0.scene"), planned.subject)
    assert await stored(executor, "TASKS", planned.subject) == b""
    entry = await TaskLog(executor).read(planned)
    assert entry is not None
    assert isinstance(entry.body, Unreadable)


async def test_a_header_of_the_writer_s_own_does_not_pass_for_the_server_s(guarded: Guarded, executor: Bus) -> None:
    """A copy of a copy, and a message that was made to look like one, are no more believed; any other is."""
    task = new_task_id()
    own, plain = f"task.sim-1.{task}.1.event", f"task.sim-1.{task}.2.event"
    await executor.publish(own, b"looks copied", headers={"Nats-Sequence": "7"})
    await executor.publish(plain, b"word", headers={"Nats-Msg-Id": "a: b", "Other": "\tNats-Sequence: 7"})
    assert await stored(executor, "TASKS", own) == b""
    assert await stored(executor, "TASKS", plain) == b"word"
