"""A trace keeps its root, with the true duration, when the executor that would write it is killed."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import components
import pytest
from integration.otlp_receiver import Receiver, Seen, otlp_receiver

from apex_bus.tasklog import TaskLog
from apex_lab.stack import Stack
from apex_lab.stack.services import MODULES
from apex_schemas.ids import new_task_id
from apex_schemas.steps import WorldEvent
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished, TaskRequest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.xdist_group("tracing")]

WIFI = "turn on Wi-Fi and report the network name"
SECONDS = 60


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with otlp_receiver() as running:
        yield running


@pytest.fixture
async def stack(tmp_path: Path, receiver: Receiver) -> AsyncGenerator[Stack]:
    components.nats()
    components.postgres()
    # Nothing is sent of itself within the test: what is there was sent on purpose.
    sent = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_BSP_SCHEDULE_DELAY": "3600000",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "30",
    }
    environment = {service: sent for service in MODULES}
    environment["executor"] = {**sent, "EXECUTOR_LEASE_SECONDS": "2"}
    async with Stack(tmp_path, environment=environment) as running:
        yield running


async def test_the_root_is_sent_again_by_whoever_takes_over_from_an_executor_that_died_sending_it(
    stack: Stack, receiver: Receiver
) -> None:
    task, killed = new_task_id(), asyncio.Event()

    async def takes(spans: list[Seen]) -> bool:
        if killed.is_set() or not any(span.name == "task" for span in spans):
            return True
        await stack.kill("executor", again=False)
        killed.set()
        return False

    receiver.takes = takes
    await submit(stack, task)
    async with asyncio.timeout(SECONDS):
        await killed.wait()
    assert roots(receiver, task) == []
    await stack.restart("executor")
    await holds_one_true_root(stack, receiver, task)


async def test_a_task_whose_executor_was_killed_in_its_midst_has_one_root_from_its_true_beginning(
    stack: Stack, receiver: Receiver
) -> None:
    task = new_task_id()
    async with stack.client() as client, client.following(task) as happenings:
        await client.submit(TaskRequest(goal=WIFI, task=task), "any")
        async for happening in happenings:
            if isinstance(happening.body, WorldEvent) and happening.slot.turn == 0:
                await stack.kill("executor")
            if isinstance(happening.body, TaskFinished):
                break
    await holds_one_true_root(stack, receiver, task)


async def submit(stack: Stack, task: str) -> None:
    async with stack.client() as client:
        await client.submit(TaskRequest(goal=WIFI, task=task), "any")


def roots(receiver: Receiver, task: str) -> list[Seen]:
    return [span for span in receiver.of(task) if span.name == "task"]


async def holds_one_true_root(stack: Stack, receiver: Receiver, task: str) -> None:
    async with asyncio.timeout(SECONDS):
        while not roots(receiver, task):
            await asyncio.sleep(0.1)
    async with stack.bus(Identity.EXECUTOR) as bus:
        log = TaskLog(bus)
        started, ended = await log.started_entry("sim-1", task), await log.ended(task, device="sim-1")
    assert ended is not None
    [root] = roots(receiver, task)
    assert (root.start, root.end) == (started.timestamp_ns, ended.timestamp_ns)
    assert root.attributes["apex.status"] == ended.body.status
    assert (root.error is None) == (ended.body.status == "succeeded")
    assert root.parent == ""
