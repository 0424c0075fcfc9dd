"""Intake, cancellations and the watchdog, on a real NATS: what cannot start is ended, what is late fails."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio
from integration.conftest import Nats
from integration.executor_rig import DEVICE, Rig, executor_rig, until

from apex_bus.connection import parse_timestamp_ns
from apex_schemas import envelope, subjects
from apex_schemas.actions import FinishTask, Tap
from apex_schemas.geometry import Point
from apex_schemas.ids import derived_task_id, new_task_id


@pytest_asyncio.fixture
async def rig(nats_server: Nats, tmp_path: Path) -> AsyncGenerator[Rig]:
    async with executor_rig(nats_server.url, tmp_path) as rig:
        yield rig


async def _task_of(rig: Rig, sequence: int) -> str:
    """The id that a request without one gets."""
    stored = await rig.bus.api("STREAM.MSG.GET.REQUESTS", json.dumps({"seq": sequence}).encode())
    return derived_task_id(parse_timestamp_ns(stored["message"]["time"]), sequence)


async def test_malformed_request_ends_with_a_sentence_and_a_dead_letter(rig: Rig) -> None:
    await rig.start()
    sequence = await rig.bus.publish("request.any", b'{"gaol": "typo"}')
    finished = await rig.finished(await _task_of(rig, sequence))
    assert finished.status == "failed"
    assert "unknown field gaol" in (finished.failure_reason or "")
    dead = await until(lambda: rig.bus.get("DEAD", subjects.dead("executor")), what="a dead letter")
    assert envelope.decode(dead.data).body.subject == "request.any"


async def test_malformed_request_ends_under_the_id_that_it_names(rig: Rig) -> None:
    await rig.start(devices=())
    misspelt, blank = await rig.ask(gaol="typo"), await rig.ask(" \u200b")
    assert "unknown field gaol" in ((await rig.finished(misspelt)).failure_reason or "")
    assert "its goal is blank" in ((await rig.finished(blank)).failure_reason or "")


async def test_request_without_an_id_runs_under_an_id_made_from_it(rig: Rig) -> None:
    await rig.start()
    sequence = await rig.bus.publish("request.any", b'{"goal": "turn on Wi-Fi"}')
    begin = await rig.newest(await _task_of(rig, sequence), "started", 0)
    assert begin.body.request.goal == "turn on Wi-Fi"
    assert begin.body.request_sequence == sequence


async def test_request_that_came_too_late_is_ended_and_not_begun(rig: Rig) -> None:
    task = await rig.ask(not_after=1.0)
    await rig.start()
    finished = await rig.finished(task)
    assert (finished.status, finished.stage, finished.turns) == ("failed", "intake", 0)


async def test_same_id_with_other_content_is_said_and_not_dropped(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask("one goal")
    await rig.started(task)
    await rig.ask("another goal", task=task)

    async def dead() -> bool:
        letter = await rig.bus.get("DEAD", subjects.dead("executor"))
        return letter is not None and "other content" in envelope.decode(letter.data).body.reason

    assert await until(dead)
    await rig.plan(task, 0, FinishTask(success=True, reason="done"))
    assert (await rig.finished(task)).goal == "one goal"


async def test_cancelled_while_queued_never_starts(rig: Rig) -> None:
    task = new_task_id()
    await rig.bus.publish(subjects.cancel(task), b"")
    await rig.ask(task=task)
    await rig.start()
    assert (await rig.finished(task)).status == "cancelled"
    other = await rig.ask()
    await rig.started(other)
    assert await rig.bus.get("TASKS", f"task.*.{task}.0.started") is None


async def test_cancelled_while_running_is_not_acted_on_any_more(rig: Rig) -> None:
    await rig.start()
    task = await rig.ask()
    await rig.started(task)
    await rig.bus.publish(subjects.cancel(task), b'{"reason": "wrong phone"}')
    finished = await rig.finished(task)
    assert (finished.status, finished.failure_reason, finished.stage) == ("cancelled", "wrong phone", "client")
    await rig.plan(task, 0, Tap(at=Point(x=5, y=5)))
    following = await rig.ask()
    await rig.started(following)
    await rig.plan(following, 0, Tap(at=Point(x=6, y=6)))
    await rig.event(following, 0)
    assert len(await rig.acts()) == 1
    assert await rig.bus.get("TASKS", f"task.*.{task}.0.acting") is None


async def test_task_that_ended_while_its_act_was_in_hand_is_looked_after_no_more(rig: Rig) -> None:
    """Its event lies behind its end, so that the end is not the newest of its log."""
    await rig.start(PERCEPTION_LIMIT_SECONDS="4")
    task = await rig.ask()
    await rig.phones.set_faults(DEVICE, {"latency_ms": {"click": 1_500, "actions": 1_500}})
    await rig.plan(task, 0, Tap(at=Point(x=5, y=5)))
    await rig.newest(task, "acting", 0)
    await rig.bus.publish(subjects.cancel(task), b"")
    assert (await rig.finished(task)).status == "cancelled"
    assert (await rig.event(task, 0)).success is True
    for place in ("TASKS.WATCHDOG", "REQUESTS.CANCEL"):

        async def settled(place: str = place) -> bool:
            info = await rig.bus.api(f"CONSUMER.INFO.{place}")
            return info["num_pending"] == info["num_ack_pending"] == 0

        await until(settled, what=f"{place} has nothing left to look at")


async def test_stage_that_stays_away_fails_the_task_by_name(rig: Rig) -> None:
    await rig.start(PERCEPTION_LIMIT_SECONDS="1")
    finished = await rig.finished(await rig.ask())
    assert (finished.status, finished.stage) == ("failed", "perception")
    assert "no answer within 1 s" in (finished.failure_reason or "")


async def test_task_that_takes_too_long_fails_by_its_own_time(rig: Rig) -> None:
    await rig.start()
    finished = await rig.finished(await rig.ask(timeout_s=5))
    assert finished.status == "failed"
    assert "not done within 5 s" in (finished.failure_reason or "")
