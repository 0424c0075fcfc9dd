"""The task log on a real server: a place is written once, and a writer knows whether it was its own writing."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from integration.bus_rig import DEVICE, OTHER, connected, end, provisioned, slot, start
from integration.conftest import Nats

from apex_bus.connection import Bus, Refused
from apex_bus.errors import LogUnavailable
from apex_bus.tasklog import Filled, Taken, TaskLog, Unreadable
from apex_schemas import actions, envelope
from apex_schemas.errors import LogTorn
from apex_schemas.geometry import Size
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.scene import Scene, Screen
from apex_schemas.slots import Slot, finished, started
from apex_schemas.steps import ActIntent, PlannedStep, WorldEvent

LOOK = actions.Look(code="TEST", reason="a test")
STEP = PlannedStep(action=LOOK, page="Settings")
EVENT = WorldEvent(action=LOOK, success=True)
SCENE = Scene(app=None, page="p", screen=Screen(size=Size(width=1, height=1)))
INTENT = ActIntent(action=actions.Back(), session="s", deadline_ms=1_000)


async def test_slot_that_is_empty_is_filled_and_reads_back(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        log, place, attempt = TaskLog(bus), slot("planned", 0), new_attempt()
        outcome = await log.fill(place, STEP, attempt=attempt)
        entry = await log.read(place)
        assert entry is not None
        assert (outcome, entry.body, entry.attempt) == (Filled(entry.sequence), STEP, attempt)


async def test_slot_that_another_attempt_filled_is_taken_and_says_by_what(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        log, place = TaskLog(bus), slot("planned", 0)
        await log.fill(place, STEP, attempt="first")
        outcome = await log.fill(place, PlannedStep(action=LOOK, page="Other"), attempt="second")
        assert isinstance(outcome, Taken)
        assert outcome.entry is not None
        assert (outcome.entry.attempt, outcome.entry.body) == ("first", STEP)


@pytest.mark.parametrize("kind", ["started", "scene", "planned", "event", "finished"])
async def test_own_write_whose_acknowledgement_was_lost_counts_as_filled(nats_server: Nats, kind: Any) -> None:
    async with provisioned(nats_server.url) as bus:
        place = slot(kind, None if kind == "finished" else 0)
        body: Any = {"started": start(place.task), "finished": end(), "scene": SCENE, "event": EVENT}.get(kind, STEP)
        data = envelope.encode(body, task=place.task, device=place.device, turn=place.turn, attempt="mine")
        sequence = await bus.publish(place.subject, data)  # stored; its writer hears nothing of it
        assert await TaskLog(bus).fill(place, body, attempt="mine") == Filled(sequence)


async def test_thousand_slots_that_two_writers_fill_at_once_have_one_writer_each(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus, connected(nats_server.url) as second:
        places = [slot("planned", 0) for _ in range(1_000)]
        wins: Counter[str] = Counter()
        free = asyncio.Semaphore(50)

        async def race(writer: Bus, name: str, place: Slot) -> None:
            async with free:
                outcome = await TaskLog(writer).fill(place, STEP, attempt=name)
            wins[place.task] += isinstance(outcome, Filled)

        await asyncio.gather(
            *(race(writer, name, place) for place in places for writer, name in ((bus, "a"), (second, "b")))
        )
        assert set(wins.values()) == {1}
        assert len(wins) == 1_000


async def test_one_slot_that_a_thousand_attempts_fill_at_once_is_filled_by_one(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus, connected(nats_server.url) as second:
        place = slot("acting", 0)
        logs = (TaskLog(bus), TaskLog(second))
        outcomes = await asyncio.gather(
            *(logs[n % 2].fill(place, INTENT, attempt=f"attempt-{n}") for n in range(1_000))
        )
        filled = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Filled)]
        entry = await logs[0].read(place)
        assert entry is not None
        assert [f"attempt-{n}" for n in filled] == [entry.attempt]


async def test_task_that_two_devices_start_at_once_starts_on_one(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus, connected(nats_server.url) as second:
        for _ in range(25):
            task = new_task_id()
            outcomes = await asyncio.gather(
                TaskLog(bus).fill(started(DEVICE, task), start(task), attempt="a"),
                TaskLog(second).fill(started(OTHER, task), start(task), attempt="b"),
            )
            assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Filled", "Taken"]
            assert Taken(None) in outcomes, "the loser's own slot is empty: it is the log that has moved on"


@pytest.mark.parametrize("first", ["started", "finished"])
async def test_task_is_either_started_or_ended_in_the_queue_and_never_both(nats_server: Nats, first: str) -> None:
    async with provisioned(nats_server.url) as bus:
        log, task = TaskLog(bus), new_task_id()
        writes: list[tuple[Slot, Any]] = [(started(DEVICE, task), start(task)), (finished("none", task), end())]
        if first == "finished":
            writes.reverse()
        assert isinstance(await log.fill(*writes[0], attempt="a"), Filled)
        assert await log.fill(*writes[1], attempt="b") == Taken(None)


async def test_acting_after_the_task_was_ended_is_refused_at_once(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        log, planned = TaskLog(bus), slot("planned", 0)
        step = await log.fill(planned, STEP, attempt="p")
        assert isinstance(step, Filled)
        ended = await log.fill(finished(DEVICE, planned.task), end(), attempt="c", after=step.sequence)
        assert isinstance(ended, Filled)
        began = asyncio.get_running_loop().time()
        outcome = await log.fill(planned.sibling("acting"), INTENT, attempt="x", after=step.sequence)
        assert outcome == Taken(None)
        assert asyncio.get_running_loop().time() - began < 15  # a write that nothing answers is tried for a minute


async def test_acting_on_its_planned_is_accepted_and_an_end_from_before_it_is_refused(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        log, planned = TaskLog(bus), slot("planned", 3)
        step = await log.fill(planned, STEP, attempt="p")
        assert isinstance(step, Filled)
        acting = await log.fill(planned.sibling("acting"), INTENT, attempt="x", after=step.sequence)
        assert isinstance(acting, Filled)
        late = await log.fill(finished(DEVICE, planned.task), end(), attempt="c", after=step.sequence)
        assert late == Taken(None)
        assert isinstance(await log.fill(planned.sibling("event"), EVENT, attempt="e"), Filled)


async def test_world_is_every_event_before_the_turn_and_torn_where_one_is_missing(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        log, task = TaskLog(bus), new_task_id()
        with pytest.raises(LogTorn):
            await log.world(DEVICE, task, 0)
        await log.fill(started(DEVICE, task), start(task), attempt="s")
        for turn in (0, 1, 3):
            await log.fill(slot("event", turn, task=task), EVENT, attempt="e")
        assert (await log.world(DEVICE, task, 0)).history == ()
        assert len((await log.world(DEVICE, task, 2)).history) == 2
        with pytest.raises(LogTorn) as torn:
            await log.world(DEVICE, task, 4)
        assert (torn.value.expected, torn.value.found) == (4, 3)
        await log.fill(slot("event", 2, task=task), EVENT, attempt="e")
        assert (await log.world(DEVICE, task, 4)).turn == 4, "what was missing is not remembered as missing"


async def test_message_of_another_slot_that_was_published_again_here_is_not_believed(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        place, forged = slot("planned", 0), slot("planned", 1)
        data = envelope.encode(STEP, task=place.task, device=place.device, turn=0, attempt="a")
        await bus.publish(forged.subject, data)
        entry = await TaskLog(bus).read(forged)
        assert entry is not None
        assert isinstance(entry.body, Unreadable)


async def test_message_of_another_kind_is_not_believed_and_garbage_is_an_end_where_the_end_belongs(
    nats_server: Nats,
) -> None:
    async with provisioned(nats_server.url) as bus:
        log, place = TaskLog(bus), slot("planned", 0)
        data = envelope.encode(EVENT, task=place.task, device=place.device, turn=0, attempt="a")
        await bus.publish(place.subject, data)
        newest = await log.newest(None, place.task)
        assert newest is not None
        assert (newest.slot, type(newest.body)) == (place, Unreadable)
        await bus.publish(place.sibling("finished").subject, b"garbage")
        ended = await log.ended(place.task)
        assert ended is not None
        assert ended.body.status == "failed"
        assert "cannot be read" in ended.body.failure_reason


async def test_stored_message_whose_headers_look_like_a_status_is_read_as_stored(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        place = slot("planned", 0)
        data = envelope.encode(STEP, task=place.task, device=place.device, turn=0, attempt="a")
        sequence = await bus.publish(place.subject, data, headers={"Status": "404", "Nats-Sequence": "9999"})
        entry = await TaskLog(bus).read(place)
        assert entry is not None
        assert entry.sequence == sequence


async def test_fill_goes_on_through_a_server_that_is_killed_and_started_again(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        log, places = TaskLog(bus), [slot("planned", 0) for _ in range(20)]
        filling = asyncio.gather(*(log.fill(place, STEP, attempt="mine") for place in places))
        await nats_server.kill()
        await nats_server.start()
        assert all(isinstance(outcome, Filled) for outcome in await filling)
        for place in places:
            entry = await log.read(place)
            assert entry is not None
            assert entry.attempt == "mine"


async def test_read_while_the_server_is_away_proves_nothing_and_says_so(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        await nats_server.kill()
        with pytest.raises(LogUnavailable):
            await bus.get("TASKS", slot("planned", 0).subject, timeout_s=0.2)
        await nats_server.start()


async def test_refusal_that_is_no_fence_is_raised_and_not_tried_again(nats_server: Nats) -> None:
    async with provisioned(nats_server.url) as bus:
        with pytest.raises(Refused) as refused:
            await bus.publish(slot("scene", 0).subject, b"x", headers={"Nats-Expected-Stream": "OTHER"})
        assert refused.value.code == 10060
