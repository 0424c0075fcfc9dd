"""Three nats-servers, replicas 3, leaders killed: whoever races for a place, exactly one has it.

Replicated leaders compare writes in flight by the fence string, literally, and replicas answer reads late
(docs/adr/0002). The last tests are the control: on the same cluster, with other strings, both of two rivals are
accepted, so that the races above could fail.
"""

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, Callable
from typing import Any
from unittest import mock

import pytest
import pytest_asyncio
from chaos.cluster import Cluster, Race, Try, running_cluster, tried
from chaos.conftest import DEVICES

from apex_bus.connection import Bus, Refused
from apex_bus.errors import Transient
from apex_bus.provision import stream_config
from apex_bus.tasklog import Filled, TaskLog
from apex_schemas.actions import Tap
from apex_schemas.geometry import Point
from apex_schemas.ids import new_task_id
from apex_schemas.slots import Slot, finished, started
from apex_schemas.steps import ActIntent, PlannedStep
from apex_schemas.streams import Stream
from apex_schemas.task import TaskFinished, TaskRequest, TaskStarted

log = logging.getLogger(__name__)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("cluster"),
    pytest.mark.asyncio(loop_scope="module"),
]
ROUNDS = int(os.environ.get("APEX_TEST_ROUNDS", "1000"))
KILLS = int(os.environ.get("APEX_TEST_LEADER_KILLS", "2"))
CONTROL_ROUNDS = 300
TAP = Tap(at=Point(x=1, y=1))
END = TaskFinished(status="cancelled", turns=1, finished_at_ms=1, by="client")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Cluster]:
    async with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def _begin(task: str) -> TaskStarted:
    request = TaskRequest(goal="g", task=task)
    return TaskStarted(request=request, pool="any", request_sequence=1, request_digest="d", started_at_ms=1)


async def _two_devices(a: TaskLog, b: TaskLog, _: int) -> list[Try]:
    task = new_task_id()
    rivals = (tried(each, started(device, task), _begin(task)) for each, device in zip((a, b), DEVICES, strict=True))
    return await asyncio.gather(*rivals)


async def _start_and_cancel(a: TaskLog, b: TaskLog, _: int) -> list[Try]:
    task = new_task_id()
    return await asyncio.gather(
        tried(a, started(DEVICES[0], task), _begin(task)), tried(b, finished("none", task), END)
    )


async def _end_against_next(a: TaskLog, b: TaskLog, n: int) -> list[Try]:
    """In turn: an end against an act behind one plan, and an end against a plan behind one scene."""
    task = new_task_id()
    place = Slot(device=DEVICES[0], task=task, kind="planned", turn=0)
    base = (await tried(a, started(DEVICES[0], task), _begin(task))).result
    assert isinstance(base, Filled)
    step: Any = PlannedStep(action=TAP, page="p")
    if n % 2:
        base = (await tried(a, place, step, after=base.sequence)).result
        assert isinstance(base, Filled)
        place, step = place.sibling("acting"), ActIntent(action=TAP, session="s", deadline_ms=1)
    return await asyncio.gather(
        tried(a, place, step, after=base.sequence), tried(b, finished(DEVICES[0], task), END, after=base.sequence)
    )


async def _alone(a: TaskLog, _: TaskLog, __: int) -> list[Try]:
    task = new_task_id()
    return [await tried(a, started(DEVICES[0], task), _begin(task))]


async def _holds(cluster: Cluster, race: Race) -> None:
    """What was acknowledged is what the stream has, and of no round it has more than one."""
    log.info("%s", race.told())
    assert len(race.rounds) >= ROUNDS
    assert race.kills >= KILLS > 0, "no leader was killed"
    held = await cluster.stored()
    for tries in race.rounds:
        for each in tries:
            assert not each.won or held.get(each.slot.subject) == each.attempt, f"acknowledged and not there: {each}"
        assert sum(each.slot.subject in held for each in tries) <= 1, f"both are stored: {tries}"


async def test_two_devices_that_race_for_one_task_never_both_have_it(cluster: Cluster) -> None:
    race = await cluster.race(_two_devices, rounds=ROUNDS, kills=KILLS)
    await _holds(cluster, race)
    assert set(race.winners()) == {1}, race.told()


async def test_start_and_cancel_in_the_queue_never_both_happen(cluster: Cluster) -> None:
    race = await cluster.race(_start_and_cancel, rounds=ROUNDS, kills=KILLS)
    await _holds(cluster, race)
    assert set(race.winners()) == {1}, race.told()


async def test_cancel_against_act_and_plan_one_of_both_happens(cluster: Cluster) -> None:
    race = await cluster.race(_end_against_next, rounds=ROUNDS, kills=KILLS)
    await _holds(cluster, race)
    winners = race.winners()
    assert set(winners) <= {0, 1}, race.told()
    assert winners[1] >= len(race.rounds) * 0.99, race.told()  # none: both gave up before the log told; tried again


async def test_what_was_acknowledged_is_there_after_the_leaders_have_been_killed(cluster: Cluster) -> None:
    race = await cluster.race(_alone, rounds=ROUNDS, kills=KILLS)
    await _holds(cluster, race)
    assert set(race.winners()) == {1}, race.told()


_fence, _fill = Slot.fence, TaskLog.fill


def _device_has_its_own_string(slot: Slot) -> str:
    """One device fences by the start, the other by the whole log: each right by itself."""
    return f"task.*.{slot.task}.0.started" if slot.device == DEVICES[0] else _fence(slot)


def _end_fences_itself(slot: Slot) -> str:
    return slot.subject if slot.kind == "finished" else _fence(slot)


@pytest.mark.parametrize(
    ("rivals", "broken"),
    [(_two_devices, _device_has_its_own_string), (_end_against_next, _end_fences_itself)],
    ids=["two devices", "end against act and plan"],
)
async def test_with_a_fence_string_for_each_rival_both_happen(
    cluster: Cluster, rivals: Any, broken: Callable[[Slot], str]
) -> None:
    async def fill(self: TaskLog, slot: Slot, body: Any, *, after: int = 0, **more: Any) -> Any:
        return await _fill(self, slot, body, after=0 if broken(slot) == slot.subject else after, **more)

    with mock.patch.object(Slot, "fence", broken), mock.patch.object(TaskLog, "fill", fill):
        race = await cluster.race(rivals, rounds=CONTROL_ROUNDS, kills=0)
    log.info("with strings that differ: %s", race.told())
    assert race.winners()[2] > 0, race.told()
    held = await cluster.stored()
    assert any(all(each.slot.subject in held for each in tries) for tries in race.rounds)


@pytest.mark.parametrize("once", [False, True], ids=["fences alone", "refused by the server too"])
async def test_slot_written_by_pattern_and_by_its_name_is_written_twice_where_the_stream_does_not_refuse_it(
    cluster: Cluster, once: bool
) -> None:
    name = "once" if once else "many"
    stream = Stream(
        name=name.upper(), subjects=(f"{name}.>",), max_age_s=0, max_bytes=64 * 2**20, full="refuse", once=once
    )
    config = {**stream_config(stream, replicas=3, store_mib=7_616), "max_bytes": stream.max_bytes}
    async with cluster.bus(0) as first, cluster.bus(1) as second:
        made = await first.api(f"STREAM.CREATE.{stream.name}", json.dumps(config).encode(), timeout_s=30)
        assert "error" not in made, made

        async def written(bus: Bus, subject: str, fence: str) -> int:
            headers = {"Nats-Expected-Last-Subject-Sequence": "0", "Nats-Expected-Last-Subject-Sequence-Subject": fence}
            try:
                await bus.publish(subject, b"x", headers=headers)
            except (Refused, Transient):
                return 0
            return 1

        async def rivals(n: int) -> int:
            subject, pattern = f"{name}.d.{n}.event", f"{name}.*.{n}.event"
            return sum(await asyncio.gather(written(first, subject, pattern), written(second, subject, subject)))

        twice = 0
        for begin in range(0, 1_000, 20):
            twice += (await asyncio.gather(*map(rivals, range(begin, begin + 20)))).count(2)
        log.info("%s: %d of 1,000 slots were written twice", name, twice)
        assert "error" not in await first.api(f"STREAM.DELETE.{stream.name}", timeout_s=30)
    assert twice == 0 if once else twice > 0
