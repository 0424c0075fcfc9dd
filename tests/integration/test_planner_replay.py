"""A task on the whole system, whose act waits for the operator, and which is then replayed from its records."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import components
import msgspec
import pytest
import pytest_asyncio
from planner_lab import ModelServer
from planner_rows import message, use

from apex_bus.tasklog import TaskLog
from apex_lab.stack import Stack
from apex_planner.decide import first_request, read_reply
from apex_schemas import subjects
from apex_schemas.decision import DecisionRecord, DecisionRequest
from apex_schemas.ids import new_task_id
from apex_schemas.queries import DecisionsQuery, RecordedDecisions
from apex_schemas.slots import Slot
from apex_schemas.steps import PlannedStep
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished, TaskRequest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("planner-replay"),
]

GOAL = "turn on Wi-Fi and report the network name"
POLICY = json.dumps([{"package": "com.android.settings", "text": "Wi-Fi"}])
PRICES = 'date = "2027-01-02"\n[models]\n"scripted-current" = {input = 2, output = 10}\n'


class Ran:
    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


async def apex(stack: Stack, *words: str, identity: Identity = Identity.OPERATOR, **environ: str) -> Ran:
    named = {"APEX_NATS_URL": stack.nats.url, "APEX_NATS_SEED_FILE": str(stack.wiring.seeds[identity])}
    return Ran(
        await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "apex_cli", *words],
            env={**os.environ, **named, **environ},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stack]:
    components.nats()
    components.postgres()
    environment = {"executor": {"EXECUTOR_CONFIRM": POLICY}}
    async with Stack(tmp_path_factory.mktemp("stack"), environment=environment) as running:
        yield running


async def approve_what_waits(stack: Stack, task: str) -> list[str]:
    """Allow whatever waits, until the task has ended; what `apex approve` said."""
    said: dict[int, str] = {}
    async with stack.client() as client:
        while await client.ended(task) is None:
            for each in await client.devices():
                turn = each.waiting_turn
                if each.task == task and turn is not None and turn not in said:
                    ran = await apex(stack, "approve", task, "--by", "ann")
                    said[turn] = ran.out if ran.code == 0 else ran.err
            await asyncio.sleep(0.1)
    return list(said.values())


async def records_of(stack: Stack, task: str) -> tuple[DecisionRecord, ...]:
    async with stack.bus(Identity.OPERATOR) as bus:
        data = await bus.request(subjects.QUERY_DECISIONS, msgspec.json.encode(DecisionsQuery(task=task)), timeout_s=20)
    return msgspec.json.decode(data, type=RecordedDecisions).records


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def task(stack: Stack) -> str:
    """A task that has run to its end, with its records in the database."""
    found = new_task_id()
    async with stack.client() as client:
        await client.submit(TaskRequest(goal=GOAL, task=found, timeout_s=120), "any")
    said = await approve_what_waits(stack, found)
    assert said
    assert all("allowed turn" in each and ": tap" in each for each in said), said
    async with stack.client() as client:
        ended = await client.ended(found)
        assert ended is not None
        end: TaskFinished = ended.body
    assert end.status == "succeeded", end.failure_reason
    async with asyncio.timeout(30):
        while len(await records_of(stack, found)) < end.turns:
            await asyncio.sleep(0.1)
    return found


async def test_recorded_answers_parsed_again_give_the_same_decisions_to_the_letter(stack: Stack, task: str) -> None:
    ran = await apex(stack, "replay", task, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert len(found) >= 3
    assert {each["verdict"] for each in found} == {"same"}
    assert all(each["then"] == each["now"] and each["now"]["type"] == "tool_call" for each in found)
    text = await apex(stack, "replay", task)
    assert f"{len(found)} provider calls: {len(found)} same" in text.out


async def test_prompts_and_steps_come_out_of_the_stored_scenes_and_records_again(stack: Stack, task: str) -> None:
    """From what is stored: the World, the Scene and the raw answers give the same prompts, and the same steps."""
    by_turn = {record.key.turn: record for record in await records_of(stack, task)}
    async with stack.bus(Identity.EXECUTOR) as bus:
        log = TaskLog(bus)
        for turn, record in by_turn.items():
            slot = Slot(device="sim-1", task=task, kind="planned", turn=turn)
            planned, scene = await log.read(slot), await log.read(slot.sibling("scene"))
            assert planned is not None
            assert scene is not None
            world = await log.world("sim-1", task, turn)
            request = first_request(scene.body, world, None, task=task)
            assert isinstance(request, DecisionRequest)
            assert "\n".join(request.user_blocks) == record.user_prompt
            step = read_reply(record.reply, scene.body, request)
            assert isinstance(step, PlannedStep)
            told: PlannedStep = planned.body
            stamped = {
                "planned_at_ms": told.planned_at_ms,
                "plan_ms": told.plan_ms,
                "tokens_used": told.tokens_used,
                "screen_changed": scene.body.differs_from(world.history[-1].fingerprint) if world.history else None,
            }
            assert msgspec.msgpack.encode(msgspec.structs.replace(step, **stamped)) == msgspec.msgpack.encode(told)
            usage = record.reply.usage
            assert told.tokens_used == usage.input_tokens + usage.output_tokens > 0


async def test_recorded_prompts_can_be_put_to_another_model(stack: Stack, task: str) -> None:
    url = stack.wiring.model.base_url
    assert url is not None
    asked = ("--provider", "anthropic", "--model", "scripted-old", "--base-url", url, "--json")
    ran = await apex(stack, "replay", task, *asked)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert {each["verdict"] for each in found} == {"same"}
    assert {each["now"]["model"] for each in found} == {"scripted-old"}
    unknown = await apex(stack, "replay", task, "--model", "nonesuch", "--base-url", url, "--turn", "0", "--json")
    assert unknown.code == 0
    (one,) = json.loads(unknown.out)
    assert (one["verdict"], one["now"]["code"], "fault" in one["differences"]) == ("differs", "configuration", True)


async def test_only_the_operator_gets_records_and_may_approve(stack: Stack, task: str) -> None:
    for words in (("replay", task), ("approve", task, "--turn", "1"), ("deny", task, "--turn", "1")):
        ran = await apex(stack, *words, identity=Identity.CLIENT)
        assert ran.code == 3, (words, ran.out, ran.err)
        assert "operator" in ran.err


async def test_what_is_not_there_is_said(stack: Stack, task: str) -> None:
    nobody = new_task_id()
    for words in (("replay", nobody), ("approve", nobody), ("approve", task), ("replay", task, "--turn", "77")):
        ran = await apex(stack, *words)
        assert ran.code == 4, (words, ran.err)
    assert (await apex(stack, "replay", "x")).code == 2


async def test_show_sums_tokens_and_money_and_says_when_a_price_is_not_known(
    stack: Stack, task: str, tmp_path: Path
) -> None:
    plain = await apex(stack, "show", task, identity=Identity.CLIENT)
    assert "no price known" in plain.out
    file = tmp_path / "prices.toml"
    file.write_text(PRICES)
    priced: dict[str, Any] = {"identity": Identity.CLIENT, "AI_PLANNER_PRICES_FILE": str(file)}
    assert "(2027-01-02 prices)" in " ".join((await apex(stack, "show", task, **priced)).out.split())
    told = json.loads((await apex(stack, "show", task, "--json", **priced)).out)
    calls = [call for step in told["steps"] for call in step["calls"]]
    wanted = sum(call["input_tokens"] * 2 + call["output_tokens"] * 10 for call in calls) / 1e6
    assert told["cost_usd"] == pytest.approx(wanted)


async def test_an_act_that_is_denied_reaches_the_model_as_its_last_outcome(stack: Stack) -> None:
    await stack.phones.reset("sim-1")
    found = new_task_id()
    async with stack.client() as client:
        await client.submit(TaskRequest(goal=GOAL, task=found, timeout_s=120, max_turns=8), "any")
        denied: list[int] = []
        while (ended := await client.ended(found)) is None:
            for each in await client.devices():
                if each.task == found and each.waiting_turn is not None and each.waiting_turn not in denied:
                    denied.append(each.waiting_turn)
                    ran = await apex(stack, "deny", found, "--by", "ann")
                    assert "denied turn" in ran.out, ran.err
            await asyncio.sleep(0.1)
        assert ended.body.status != "succeeded"
    async with stack.bus(Identity.EXECUTOR) as bus:
        events = (await TaskLog(bus).world("sim-1", found, denied[0] + 1)).history
    assert (events[-1].success, events[-1].code) == (False, "DENIED")
    async with asyncio.timeout(20):
        while not (later := [r for r in await records_of(stack, found) if r.key.turn == denied[0] + 1]):
            await asyncio.sleep(0.1)
    assert "outcome failed DENIED: ann did not allow it; nothing was done" in later[0].user_prompt


async def test_an_act_that_leads_nowhere_is_pointed_out_to_the_model_and_then_fails_the_task(stack: Stack) -> None:
    await stack.phones.reset("sim-1")
    url = stack.wiring.model.base_url
    assert url is not None
    nowhere = {"x1": 100, "y1": 600, "x2": 104, "y2": 600, "purpose": "p", "expected_outcome": "e"}
    await ModelServer(url).order({"body": message(use(nowhere, "swipe")), "times": 12})
    found = new_task_id()
    async with stack.client() as client:
        await client.submit(TaskRequest(goal=GOAL, task=found, timeout_s=120), "any")
        while (ended := await client.ended(found)) is None:
            await asyncio.sleep(0.1)
    await ModelServer(url).reset()
    assert (ended.body.status, ended.body.stage) == ("failed", "planner")
    assert ended.body.failure_reason.startswith("loop: the same act was done 8 times on the same screen")
    async with asyncio.timeout(20):
        while len(records := await records_of(stack, found)) < ended.body.turns:
            await asyncio.sleep(0.1)
    told = ["on this very screen" in record.user_prompt for record in records]
    urgently = ["Do not do it again" in record.user_prompt for record in records]
    # The very first screen may still have been another: what follows is eight times the same.
    before = len(records) - 8
    assert before <= 1
    assert told == [False] * (before + 3) + [True] * 5
    assert urgently == [False] * (before + 5) + [True] * 3
