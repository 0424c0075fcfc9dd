"""A stream, or the whole store of nats-server, is full while tasks run: it is said by name with what to do, what was
taken is not lost, no phone is touched twice, no answer is paid for twice, and once there is room all goes on by itself
to its right end.
"""

import contextlib
import json
import logging
import os
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import components
import pytest
import pytest_asyncio
from chaos.loaded import BEGUN, apex, at_work, counted, holds, length, said, submit, until

from apex_bus.connection import Bus
from apex_bus.errors import StoreFull
from apex_bus.provision import provision
from apex_lab.chaos import gather
from apex_lab.chaos.evidence import Asked
from apex_lab.chaos.load import Load
from apex_lab.stack import Stack
from apex_schemas import envelope, subjects
from apex_schemas.streams import STREAMS
from apex_schemas.subjects import Identity

log = logging.getLogger(__name__)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("stack-full"),
]
PHONES = ("sim-1", "sim-2")
STORE_MIB = 1_024
PICTURES = {"AI_PLANNER_SCREENSHOT": "always"}
WHOLE_MIB = 64


class System:
    """The system that all tests break in turn, and what was asked of it so far."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.asked: list[Asked] = []
        self._seed = 40

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncGenerator[Load]:
        self._seed += 1
        async with at_work(self.stack, seed=self._seed, others=self.asked, with_calls=True) as load:
            yield load
        self.asked += load.asked
        report = await holds(self.stack, tuple(self.asked), with_calls=True)
        assert not report.counts["ends_otherwise_than_undisturbed"], report.counts
        assert {child.starts for child in self.stack.children.values()} == {1}, "no process has ended"

    @contextlib.asynccontextmanager
    async def full(self, stream: str, room: int) -> AsyncGenerator[Bus]:
        """A stream that takes so many bytes more, and no others; then more room is provisioned."""
        async with self.stack.bus(Identity.PROVISIONER) as bus:
            state = (await bus.api(f"STREAM.INFO.{stream}"))["state"]
            await _limit(bus, stream, state["bytes"] + room)
            began = time.monotonic()
            yield bus
            log.info("%s was full for %.0f s or less", stream, time.monotonic() - began)
            await provision(bus, PHONES, store_mib=STORE_MIB)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[System]:
    components.nats()
    components.postgres()
    folder: Path = tmp_path_factory.mktemp("stack")
    async with Stack(folder, phones=2, environment={"planner": PICTURES, "perception": PICTURES}) as stack:
        yield System(stack)


async def _limit(bus: Bus, stream: str, max_bytes: int) -> None:
    config = (await bus.api(f"STREAM.INFO.{stream}"))["config"]
    made = await bus.api(f"STREAM.UPDATE.{stream}", json.dumps({**config, "max_bytes": max_bytes}).encode())
    assert "error" not in made, made


async def _refused(bus: Bus) -> bool:
    """Whether a request is not taken; of a kind that is no task, so that the account is not disturbed."""
    try:
        await bus.publish(subjects.cancel("0" * 32), b"")
    except StoreFull:
        return True
    return False


async def test_tasks_wait_and_go_on_where_they_were_while_the_task_log_is_full(system: System) -> None:
    stack = system.stack
    async with system.at_work() as load:
        since = {name: length(stack, name) for name in ("executor", "perception", "planner")}
        async with system.full("TASKS", 32_000):
            looks = [said(stack, name, "stream TASKS is full", at) for name, at in since.items()]

            async def any_says_so() -> bool:
                return any([await look() for look in looks])

            await until(any_says_so, "some service says why it waits")
            code, task, error = await apex(stack, "submit", "turn on Wi-Fi")
            assert code == 0, error  # the queue takes it, and it is begun when there is room
            system.asked.append(_asked(task.strip()))
        asked = len(load.asked)
        await until(lambda: counted(len(load.asked) >= asked + BEGUN), "tasks are taken again")


def _asked(task: str) -> Asked:
    now_ms = time.time_ns() // 1_000_000
    return Asked(task=task, goal="turn on Wi-Fi", expected="succeeded", at_ms=now_ms, switch=("wifi", True))


async def test_request_is_refused_by_name_and_running_tasks_go_on_while_the_queue_is_full(system: System) -> None:
    stack = system.stack
    async with system.at_work() as load, stack.bus(Identity.CLIENT) as client:
        async with system.full("REQUESTS", 1_500):
            await until(lambda: _refused(client), "no request is taken")
            code, task, error = await apex(stack, "submit", "turn on Wi-Fi")
            assert (code, task) == (3, ""), error
            for words in ("stream REQUESTS is full", "APEX_STORE_MIB", "nothing will come of it"):
                assert words in error, error
            running = load.unfinished

            async def all_ended() -> bool:
                await load.look()
                return not load.unfinished & running

            await until(all_ended, "what was taken comes to its end")
        asked = len(load.asked)
        await until(lambda: counted(len(load.asked) >= asked + BEGUN), "tasks are taken again")


async def test_answer_waits_for_its_record_and_is_not_paid_for_again_while_decisions_are_full(system: System) -> None:
    stack = system.stack
    async with system.at_work() as load:
        since = length(stack, "planner-decision")
        async with system.full("DECISIONS", 40_000):
            says = said(stack, "planner-decision", "waits for its record: stream DECISIONS is full", since)
            await until(says, "the endpoint says why it waits")
        asked = len(load.asked)
        await until(lambda: counted(len(load.asked) >= asked + BEGUN), "tasks are taken again")


async def test_model_is_told_of_no_picture_while_the_pictures_have_no_room(system: System) -> None:
    async with system.at_work() as load:
        async with system.full("SHOTS", 0) as bus:
            await _limit(bus, "SHOTS", 1_024)  # less than one of them: each is dropped at once
            first = (await bus.api("STREAM.INFO.DECISIONS"))["state"]["last_seq"] + len(PHONES)
            asked = len(load.asked)
            await until(lambda: counted(len(load.asked) >= asked + BEGUN), "tasks go on")
            decisions = await gather.messages(bus, "DECISIONS")
            seen = {seq: envelope.decode(data).body.screenshot_sha256 for _, seq, _, data in decisions}
        assert any(seen.values()), "there were pictures before"
        without = [picture for seq, picture in seen.items() if seq > first]
        assert without
        assert not any(without)


async def test_no_process_ends_and_all_goes_on_when_the_whole_store_was_full(system: System) -> None:
    stack = system.stack
    async with stack.bus(Identity.PROVISIONER) as bus:
        for stream in STREAMS:
            await _limit(bus, stream.name, -1 if stream.name == "SHOTS" else 8 * 2**20)
        await _restarted(stack, f"  max_file: {WHOLE_MIB}MB\n")
        async with system.at_work():
            since = length(stack, "executor")
            await _fill(stack)
            code, error = await submit(stack)
            assert code == 3, error
            assert "the NATS server has no room left for stream REQUESTS" in error, error
            for words in ("was not renewed: the NATS server has no room left", "raise its max_file"):
                await until(said(stack, "executor", words, since), "the executor says why it waits")
            await _limit(bus, "SHOTS", 8 * 2**20)
        await _restarted(stack, "")
        await provision(bus, PHONES, store_mib=STORE_MIB)


async def _restarted(stack: Stack, more: str) -> None:
    """nats-server with other limits of its store."""
    path, line = stack.nats.config_path, "  sync_interval: always\n"
    before, _, behind = path.read_text().partition(line)
    path.write_text(f"{before}{line}{more}{behind.removeprefix(f'  max_file: {WHOLE_MIB}MB{chr(10)}')}")
    await stack.nats.restart()
    await stack.ready()


async def _fill(stack: Stack) -> None:
    async def until_full(bus: Bus) -> None:
        for n in range(WHOLE_MIB * 2):
            await bus.publish(subjects.shot(f"{n + 1:032x}", 0, "a"), os.urandom(2**20))

    async with stack.bus(Identity.PERCEPTION) as bus:
        with pytest.raises(StoreFull) as full:
            await until_full(bus)
        assert full.value.whole
