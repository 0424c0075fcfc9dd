"""A slot that holds what nobody can read, or another kind of message: its task fails with the reason, and the phone
takes the next one. Written by an identity that may write there, as a broken or taken-over service would."""

import asyncio
from collections.abc import AsyncGenerator

import components
import pytest
import pytest_asyncio

from apex_bus.tasklog import TaskLog
from apex_lab.stack import Stack
from apex_schemas import envelope
from apex_schemas.ids import new_task_id
from apex_schemas.subjects import Identity
from apex_schemas.task import CancelRequest, TaskFinished, TaskRequest, TaskStarted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("garbage-slots"),
]

I = Identity  # noqa: E741
BYTES = b'{"stream":"TASKS","seq":1}'  # an acknowledgement of the server, as a forged reply subject would store it


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stack]:
    components.nats()
    components.postgres()
    async with Stack(tmp_path_factory.mktemp("stack")) as running:
        yield running


async def ended(stack: Stack, task: str, *, within_s: float) -> TaskFinished:
    async with stack.bus(I.EXECUTOR) as bus, asyncio.timeout(within_s):
        while (entry := await TaskLog(bus).ended(task)) is None:
            await asyncio.sleep(0.1)
    return entry.body


@pytest.mark.parametrize("other_kind", [False, True], ids=["bytes", "other kind"])
@pytest.mark.parametrize(
    ("writer", "place"),
    [
        (I.PERCEPTION, "2.scene"),
        (I.PLANNER, "2.planned"),
        (I.EXECUTOR, "1.acting"),
        (I.EXECUTOR, "1.event"),
        (I.PERCEPTION, "end.finished"),
    ],
)
async def test_a_slot_with_something_else_fails_its_task_and_frees_the_phone(
    stack: Stack, writer: Identity, place: str, other_kind: bool
) -> None:
    task = new_task_id()
    turn = int(place[0]) if place[0].isdigit() else None
    packed = envelope.encode(CancelRequest(), task=task, device="sim-1", turn=turn) if other_kind else BYTES
    async with stack.client() as client, stack.bus(writer) as forger, client.following(task) as happenings:
        await client.submit(TaskRequest(goal="look around 9 turns", task=task), "any")
        async for happening in happenings:
            if isinstance(happening.body, TaskStarted):
                break
        await forger.publish(f"task.sim-1.{task}.{place}", packed)
    end = await ended(stack, task, within_s=40)
    assert end.status == "failed"
    assert "cannot be read" in (end.failure_reason or "")
    async with stack.client() as client:
        after = new_task_id()
        await client.submit(TaskRequest(goal="look around 1 turn", task=after), "sim-1")
    assert (await ended(stack, after, within_s=40)).status == "succeeded"


async def test_a_slot_filled_before_its_task_begins_fails_the_task(stack: Stack) -> None:
    task = new_task_id()
    async with stack.client() as client, stack.bus(I.EXECUTOR) as forger:
        await forger.publish(f"task.sim-1.{task}.0.started", BYTES)
        await client.submit(TaskRequest(goal="look around 1 turn", task=task), "any")
    end = await ended(stack, task, within_s=40)
    assert (end.status, "cannot be read" in (end.failure_reason or "")) == ("failed", True)
    async with stack.client() as client:
        after = new_task_id()
        await client.submit(TaskRequest(goal="look around 1 turn", task=after), "sim-1")
    assert (await ended(stack, after, within_s=40)).status == "succeeded"
