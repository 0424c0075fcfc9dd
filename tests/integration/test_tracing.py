"""One task on the whole system, as an OTLP receiver sees it: its spans, what caused what, and who talks to whom."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import components
import pytest
import pytest_asyncio
from integration.otlp_receiver import Receiver, Seen, otlp_receiver

from apex_bus.metrics import INSTRUMENTS
from apex_bus.tracing import root_span_id
from apex_lab.stack import Stack
from apex_lab.stack.services import MODULES
from apex_schemas import subjects
from apex_schemas.ids import new_task_id
from apex_schemas.subjects import TABLE, Identity
from apex_schemas.task import TaskFinished, TaskRequest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("tracing"),
]

WIFI = "turn on Wi-Fi and report the network name"
ORIGIN = "00-11111111111111111111111111111111-2222222222222222-01"
FAST = {"OTEL_BSP_SCHEDULE_DELAY": "200", "OTEL_METRIC_EXPORT_INTERVAL": "1000"}

TRAVELLED = {row.pattern for row in TABLE if row.stream in ("TASKS", "DECISIONS")} | {
    subjects.request("*"),
    subjects.PLANNER_DECISION,
}
"""The rows by which a task that goes well is carried out; the others hold state, heal, control or answer clients."""

WATCHING = {("task.*.*.0.started", "executor"), ("task.*.*.end.finished", "executor")}
"""The watchdog and a device's being free again: they look after a task and are no part of its trace."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def receiver() -> AsyncGenerator[Receiver]:
    async with otlp_receiver() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> AsyncGenerator[Stack]:
    components.nats()
    components.postgres()
    # The provider's SDK is asked for spans of its own, and must give none.
    sent = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "ANTHROPIC_OPEN_TELEMETRY": "true", **FAST}
    environment = {service: sent for service in MODULES}
    async with Stack(tmp_path_factory.mktemp("stack"), environment=environment) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def task(stack: Stack, receiver: Receiver) -> str:
    """A task that went well, and whose trace is complete."""
    return await carried_out(stack, receiver, WIFI)


async def carried_out(stack: Stack, receiver: Receiver, goal: str) -> str:
    task = new_task_id()
    async with stack.client() as client, client.following(task) as happenings:
        async with stack.bus(Identity.CLIENT) as bus:
            request = json.dumps({"goal": goal, "task": task}).encode()
            await bus.publish(subjects.request("any"), request, headers={"traceparent": ORIGIN})
        async for happening in happenings:
            if isinstance(happening.body, TaskFinished):
                break
    await until(lambda: _complete(receiver.of(task)), f"the trace of {task} never was complete")
    return task


async def until(condition: Callable[[], bool], what: str, seconds: float = 20) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, what
        await asyncio.sleep(0.1)


def _complete(spans: list[Seen]) -> bool:
    """Every cause is there, and the end is on record."""
    known = {span.id for span in spans}
    causes = {cause for span in spans for cause in span.causes}
    recorded = {cause.subject for span in spans if span.name == "record" for cause in span.causes}
    return {c.span for c in causes if c.subject != "request.*"} <= known and "task.*.*.end.finished" in recorded


def by_name(spans: list[Seen], name: str) -> list[Seen]:
    return [span for span in spans if span.name.split()[0] == name]


async def test_a_task_is_one_flat_trace_whose_id_is_the_tasks_and_whose_root_has_its_true_duration(
    receiver: Receiver, task: str
) -> None:
    spans = receiver.of(task)
    [root] = by_name(spans, "task")
    assert root.id == f"{root_span_id(task):016x}"
    assert root.parent == ""
    assert root.error is None
    assert root.attributes["apex.status"] == "succeeded"
    assert {span.parent for span in spans if span is not root} == {root.id}
    acts = by_name(spans, "act")
    assert root.start <= min(span.start for span in by_name(spans, "observe"))
    assert abs(root.end - acts[-1].end) < 1e9
    assert root.attributes["apex.turns"] == len(acts)
    for cause in (cause for span in spans for cause in span.causes):
        assert (cause.reference == "child_of") == (cause.span == root.id)


async def test_each_turn_has_its_spans_with_what_is_known_of_it(receiver: Receiver, task: str) -> None:
    spans = receiver.of(task)
    turns = list(range(len(by_name(spans, "act"))))
    assert len(turns) >= 3
    for name in ("observe", "settle", "plan", "chat", "act"):
        assert [span.attributes["apex.turn"] for span in by_name(spans, name)] == turns, name
    for span in by_name(spans, "act"):
        assert span.attributes["apex.task"] == task
        assert span.attributes["apex.device"] == "sim-1"
        assert span.attributes["apex.action"]
        assert span.attributes["apex.page"]
    assert {span.service for span in spans} == {f"apex-{service}" for service in MODULES}


async def test_what_is_observed_says_whether_the_screen_is_another_than_the_turn_before(
    receiver: Receiver, task: str
) -> None:
    first, *later = by_name(receiver.of(task), "observe")
    assert "apex.screen_changed" not in first.attributes
    assert [span.attributes["apex.screen_changed"] for span in later] == [True] * len(later)


async def test_a_call_of_the_model_follows_the_conventions_and_holds_no_content(receiver: Receiver, task: str) -> None:
    [chat, *_] = by_name(receiver.of(task), "chat")
    assert chat.name == "chat scripted-current"
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.provider.name"] == "anthropic"
    assert chat.attributes["gen_ai.usage.input_tokens"] > 0
    assert chat.attributes["gen_ai.usage.output_tokens"] > 0
    assert "gen_ai.usage.cache_read.input_tokens" in chat.attributes
    assert "gen_ai.usage.reasoning.output_tokens" in chat.attributes
    assert not [span for span in receiver.of(task) if WIFI in json.dumps(span.attributes)]


async def test_the_edges_of_a_trace_are_those_of_the_subjects_table(receiver: Receiver, task: str) -> None:
    spans = receiver.of(task)
    service_of = {span.id: span.service.removeprefix("apex-") for span in spans}
    seen = {
        (service_of.get(cause.span, "client"), cause.subject, span.service.removeprefix("apex-"))
        for span in spans
        for cause in span.causes
        if cause.subject is not None
    }
    rows = {row.pattern: row for row in TABLE if row.pattern in TRAVELLED}
    expected = {(row.pattern, str(to)) for row in rows.values() for to in row.triggers} - WATCHING
    assert {(subject, to) for _, subject, to in seen} == expected
    for writer, subject, _ in seen:
        assert writer in {str(identity) for identity in rows[subject].writers}, (writer, subject)


async def test_every_link_leads_to_what_came_before(receiver: Receiver, task: str) -> None:
    spans = {span.id: span for span in receiver.of(task)}
    for span in spans.values():
        if span.name == "task":
            assert [cause.span for cause in span.causes] == [ORIGIN.split("-")[2]]
            continue
        assert span.causes, span.name
        for cause in span.causes:
            assert spans[cause.span].start <= span.start + 5e6, (spans[cause.span].name, span.name)


async def test_nothing_is_instrumented_twice(receiver: Receiver, task: str) -> None:
    """The SDK of the provider has spans of its own, and HTTP clients may have: one call is one span, ours."""
    spans = receiver.of(task)
    assert {span.scope for span in receiver.spans} == {"apex"}
    assert len(by_name(spans, "chat")) == len(by_name(spans, "plan"))
    assert len({(span.name, span.start, span.service) for span in spans}) == len(spans)


async def test_a_task_that_fails_has_a_root_with_the_status_of_an_error(stack: Stack, receiver: Receiver) -> None:
    task = await carried_out(stack, receiver, "turn on NFC")
    [root] = by_name(receiver.of(task), "task")
    assert root.error
    assert root.attributes["apex.status"] == "failed"


async def test_an_act_whose_outcome_is_not_known_has_the_status_of_an_error_with_its_code(
    stack: Stack, receiver: Receiver
) -> None:
    await stack.phones.reset("sim-1")
    await stack.phones.set_faults("sim-1", {"answer_lost": True})
    task = await carried_out(stack, receiver, WIFI)
    failed = [span for span in by_name(receiver.of(task), "act") if span.error]
    assert failed
    for span in failed:
        assert span.attributes["apex.code"] == span.attributes["error.type"]
    assert all(not span.error for span in by_name(receiver.of(task), "observe"))


async def test_a_task_that_never_starts_has_a_root_too(stack: Stack, receiver: Receiver) -> None:
    async with stack.client() as client:
        task = new_task_id()
        await client.submit(TaskRequest(goal=WIFI, task=task, not_after=1), "any")
    await until(lambda: bool(by_name(receiver.of(task), "task")), "it had no root")
    [root] = by_name(receiver.of(task), "task")
    assert root.error


async def test_what_is_measured_is_in_the_table_and_the_whole_of_a_tasks_figures_arrives(
    receiver: Receiver, task: str
) -> None:
    known = {each.name: set(each.attributes) for each in INSTRUMENTS}
    wanted = {
        "apex.tasks", "apex.task.duration", "apex.turns", "apex.stage.duration", "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration", "apex.messages", "apex.consumer.pending", "apex.log.lag",
        "apex.device.state",
    }  # fmt: skip
    await until(lambda: wanted <= {name for _, name, _ in receiver.points}, "not every metric came")
    for _, name, attributes in receiver.points:
        assert set(attributes) <= known[name], name
    stages = {attributes["stage"] for _, name, attributes in receiver.points if name == "apex.stage.duration"}
    assert stages == {"observe", "settle", "plan", "chat", "act", "record"}


async def test_a_device_is_told_in_every_state_with_one_of_them_true(receiver: Receiver, task: str) -> None:
    def told() -> dict[str, float]:
        named = {name: value for (_, metric, name), value in receiver.values.items() if metric == "apex.device.state"}
        return {str(dict(name)["state"]): value for name, value in named.items()}

    await until(lambda: told().get("ready") == 1, f"the device never was told to be ready: {told()}")
    assert told() == {"opening": 0, "ready": 1, "busy": 0, "quarantined": 0, "waiting": 0}


async def test_an_end_that_no_task_has_had_is_told_with_nothing(receiver: Receiver, task: str) -> None:
    at = ("apex-executor", "apex.tasks", frozenset({("status", "cancelled"), ("stage", "client")}))
    await until(lambda: receiver.values.get(at) == 0, f"{at} was not told")


async def test_fates_that_no_message_has_had_are_told_with_nothing(receiver: Receiver, task: str) -> None:
    for service in MODULES:
        at = (f"apex-{service}", "apex.messages", frozenset({("fate", "dead")}))
        await until(lambda at=at: receiver.values.get(at) == 0, f"{at} was not told")


async def test_log_lines_about_a_task_carry_its_trace_id(stack: Stack, receiver: Receiver) -> None:
    await stack.phones.reset("sim-1")
    await stack.phones.set_faults("sim-1", {"session_death": "before_act"})
    task = await carried_out(stack, receiver, WIFI)
    assert any(line.get("trace_id") == task for line in _json_lines(stack.logs))


def _json_lines(logs: Path) -> list[dict[str, Any]]:
    lines = [line for file in logs.glob("*.log") for line in file.read_text(errors="replace").splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]
