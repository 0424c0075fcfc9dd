"""Breaks of the protocol (docs/RELIABILITY.md, "Each measured break") that no other test would notice."""

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import components
import msgspec
import pytest
from chaos.conftest import DEVICES
from chaos.test_virtual_time import played
from chaos.virtual_log import Faults
from chaos.virtual_world import World
from integration.bus_rig import connected, running
from integration.executor_rig import until
from integration.test_perception_service import DEVICE, Stage

from apex_bus.connection import Refused
from apex_bus.consume import consume
from apex_bus.errors import StoreFull
from apex_bus.provision import provision, stream_config
from apex_bus.pull import Pull
from apex_bus.tasklog import TaskLog, entry_of
from apex_executor.claims import Claims
from apex_executor.lease import Lease
from apex_executor.phone import Phone as Driven
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_executor.watch import Watch
from apex_lab.embedded.nats import nats_server
from apex_lab.phone import Phone, serve
from apex_lab.stack.http import Handsets
from apex_perception.decide import OLDEST_READING_S
from apex_perception.service import PerceptionService
from apex_perception.settle import Observation
from apex_planner.settings import LONGEST_TIMEOUT_S
from apex_schemas import subjects
from apex_schemas.consumers import SHARED_CONSUMERS, Consumer, consumers, pool_consumer
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.slots import started
from apex_schemas.streams import STREAMS, Stream
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

ROOT = Path(__file__).resolve().parents[2]
SEEDS, TASKS_A_SEED = 160, 3
ROLLED_UP = [each for each in STREAMS if not each.once]


def test_each_measured_break_names_tests_that_are_there() -> None:
    text = (
        (ROOT / "docs/RELIABILITY.md").read_text("utf-8").partition("## Each measured break\n")[2].partition("\n## ")[0]
    )
    rows = dict(re.findall(r"^\| ([AB]\d+) \|(.*)\|$", text, re.MULTILINE))
    assert list(rows) == [*(f"A{n}" for n in range(1, 16)), *(f"B{n}" for n in range(1, 13))]
    for row, cells in rows.items():
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", cells)
        assert named or "no test" in cells, row
        for file, test in named:
            assert f"def {test}(" in (ROOT / "tests" / file).read_text("utf-8"), f"{row}: {file}::{test}"


def _ends(world: World) -> Counter[str]:
    """How the tasks ended; those that the watchdog had to end count by who had left them."""
    ended: Counter[str] = Counter()
    for each in world.log.stored:
        if each.subject.endswith(".finished"):
            body: TaskFinished = entry_of(each).body
            ended[f"left by {body.stage}" if "gave no answer" in (body.failure_reason or "") else body.status] += 1
    return ended


_take = Lease._take


async def _expired(self: Lease, stored: Any, old: Any) -> bool:
    """As a record with a time to live: whoever takes the device over finds nothing."""
    return await _take(self, stored, old and msgspec.structs.replace(old, claim=None, session=None))


@pytest.mark.slow
def test_none_of_480_tasks_is_left_by_its_executor_whenever_that_dies_or_sleeps() -> None:
    ended, troubles = Counter[str](), 0
    for seed in range(SEEDS):
        world = played(seed)
        ended += _ends(world)
        troubles += world.crashes + world.pauses
    assert ended.total() == SEEDS * TASKS_A_SEED == 480
    assert troubles > SEEDS
    assert not ended["left by executor"], ended


def test_lease_that_expires_with_its_task_leaves_tasks_behind() -> None:
    """The control of the test above: by the same seeds, the broken form is seen at once."""
    with mock.patch.object(Lease, "_take", _expired):
        ended = sum((_ends(played(seed, Faults())) for seed in range(10)), Counter[str]())
    assert ended["left by executor"] > 0, ended


@pytest.mark.parametrize("stream", ROLLED_UP, ids=[each.name for each in ROLLED_UP])
async def test_who_may_write_one_record_cannot_wipe_the_others(tmp_path: Path, stream: Stream) -> None:
    components.nats()
    first, second = (stream.subjects[0].replace("*", token) for token in ("a", "b"))
    schedule = {"Nats-Schedule": "@at 2030-01-01T00:00:00Z", "Nats-Schedule-Target": first}
    async with nats_server(tmp_path / "nats") as server, connected(server.url) as bus:
        await provision(bus, DEVICES, store_mib=512)
        for subject in (first, second):
            await bus.publish(subject, b"kept")
        for headers in ({"Nats-Rollup": "all"}, {"Nats-Rollup": "sub"}, schedule):
            with pytest.raises(Refused):
                await bus.publish(second, b"", headers=headers)
        assert (await bus.api(f"STREAM.INFO.{stream.name}"))["state"]["messages"] == 2


def test_no_count_of_deliveries_ends_a_task_or_a_record() -> None:
    counted = {each.name: each.max_deliver for each in consumers(DEVICES) if each.max_deliver != -1}
    assert not [name for name in counted if name.startswith(("DECISION_LOG", "WATCHDOG", "INTAKE", "CANCEL", "DEVICE"))]
    # A stage meets its limit by time long before these are used up by waiting.
    waits_s = {each.name: each.ack_wait_s for each in SHARED_CONSUMERS}
    longest = max(ExecutorSettings().perception_limit_seconds, ExecutorSettings().planner_limit_seconds)
    assert all(times * waits_s[name] > 10 * longest for name, times in counted.items())


def test_what_a_message_depends_on_is_kept_for_longer() -> None:
    """A request that is replayed finds the `started` of its task; what was paid for is found while its task is."""
    kept = {each.name: each.max_age_s for each in STREAMS}
    assert 0 < kept["REQUESTS"] < kept["TASKS"] < kept["DECISIONS"]
    assert kept["DEVICES"] == 0, "a record that expires takes its task with it"
    assert TaskRequest(goal="g").timeout_s < kept["REQUESTS"]


def test_session_outlives_the_longest_time_that_a_model_may_think() -> None:
    settings = ExecutorSettings()
    config = DeviceConfig(alias="sim-1", url="http://127.0.0.1:1")
    phone = Driven(config, request_s=1, idle_s=settings.session_idle_seconds)
    idle_s = phone._capabilities(0)["appium:newCommandTimeout"]
    assert idle_s > settings.planner_limit_seconds
    assert idle_s > 2 * LONGEST_TIMEOUT_S, "one call and a corrective one"


@pytest.mark.parametrize("bounded", [True, False], ids=["bounded", "as it was"])
async def test_pictures_that_fill_their_stream_leave_the_task_log_its_room(tmp_path: Path, bounded: bool) -> None:
    """Without bounds the log refuses slots once pictures have used the store up."""
    components.nats()
    store = json.dumps(str(tmp_path / "nats" / "jetstream"))
    small = f"jetstream {{ store_dir: {store}, sync_interval: always, max_file_store: 64MB }}\n"
    async with nats_server(tmp_path / "nats", config=small) as server, connected(server.url) as bus:
        if bounded:
            await provision(bus, (), store_mib=60)
        else:
            for stream in STREAMS:
                config = {**stream_config(stream, replicas=1, store_mib=60), "max_bytes": -1}
                assert "error" not in await bus.api(f"STREAM.CREATE.{stream.name}", json.dumps(config).encode())
        for n in range(80):
            try:
                await bus.publish(f"shot.t.{n}.a", bytes(1_000_000))
            except StoreFull:
                assert not bounded
        task = new_task_id()
        begin = TaskStarted(
            request=TaskRequest(goal="g", task=task),
            pool="any",
            request_sequence=1,
            request_digest="d",
            started_at_ms=1,
        )
        filled = TaskLog(bus).fill(started(DEVICES[0], task), begin, attempt=new_attempt())
        if bounded:
            await filled
        else:
            with pytest.raises(StoreFull):
                await filled


async def test_reading_that_is_too_old_when_it_can_be_published_is_taken_again(tmp_path: Path) -> None:
    components.nats()
    look, ages = PerceptionService._look, list[float]()

    async def slow(self: PerceptionService, *args: Any) -> Observation:
        seen = await look(self, *args)
        old = 0.0 if ages else OLDEST_READING_S + 1  # as if the process had been paused after its first reading
        ages.append(old)
        return seen._replace(read_at=seen.read_at - old, scene=msgspec.structs.replace(seen.scene, page=f"{len(ages)}"))

    async with nats_server(tmp_path / "nats") as server, connected(server.url, Identity.PERCEPTION) as bus:
        await provision(bus, (DEVICE,), store_mib=512)
        async with serve([Phone(DEVICE, permission_popup=False)]) as url, Handsets(url) as phones:
            stage = Stage(bus, url, phones)
            with mock.patch.object(PerceptionService, "_look", slow):
                async with stage.perception():
                    scene = await stage.scene(await stage.start(), 0)
            stage.threads.shutdown()
    assert scene.page == "2"


async def test_request_to_a_pool_that_nobody_serves_is_ended_and_says_so(tmp_path: Path) -> None:
    components.nats()
    intake = next(each for each in SHARED_CONSUMERS if each.name == "INTAKE")
    async with nats_server(tmp_path / "nats") as server, connected(server.url) as bus:
        await provision(bus, DEVICES, store_mib=512)
        watch, task = Watch(bus, TaskLog(bus), ExecutorSettings()), new_task_id()
        with mock.patch("apex_executor.watch._UNKNOWN_POOL_S", 0.3), mock.patch("apex_executor.queue._LOOK_S", 0.2):
            async with running(consume(bus, intake, watch.on_request)):
                await bus.publish(subjects.request("pixle"), json.dumps({"goal": "g", "task": task}).encode())
                end = await until(lambda: watch._log.ended(task), what="the end")
    assert (end.body.status, end.body.stage) == ("failed", "intake")
    assert "pool pixle is unknown" in end.body.failure_reason


async def test_device_keeps_one_of_the_requests_that_come_at_once_and_gives_the_others_back(tmp_path: Path) -> None:
    """It waits in all of its pools. What it does not take must not wait until its time to be acknowledged is over."""
    components.nats()
    pools = (DEVICES[0], "android", "any")

    def patient(pool: str) -> Consumer:
        return msgspec.structs.replace(pool_consumer(pool), ack_wait_s=3_600)

    async with nats_server(tmp_path / "nats") as server, connected(server.url) as bus, connected(server.url) as other:
        with mock.patch("apex_schemas.consumers.pool_consumer", patient):
            await provision(bus, DEVICES, store_mib=512)
        config = DeviceConfig(alias=DEVICES[0], url="http://127.0.0.1:1")
        claims = Claims(bus, TaskLog(bus), config, mock.AsyncMock())
        taking = asyncio.create_task(claims._next(asyncio.Event()))

        async def waits_in_all() -> bool:
            infos = [await other.api(f"CONSUMER.INFO.REQUESTS.POOL_{pool}") for pool in pools]
            return all(info["num_waiting"] for info in infos)

        await until(waits_in_all, what="pulls from all pools")
        await asyncio.gather(*(other.publish(subjects.request(pool), b"{}") for pool in pools))
        taken = await taking
        assert taken is not None
        for pool in set(pools) - {taken.pool}:
            async with Pull(other, pool_consumer(pool)) as pull:
                assert await pull.next(1, wait_s=30) is not None, pool
