"""Where thinking goes, and where it does not: on record and in events, in no prompt, no log line and no span."""

import json
import logging
from collections.abc import AsyncGenerator

import pytest
from integration.conftest import Nats
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from planner_lab import ModelServer, bus_of, client_over, model_server
from planner_rows import TAP, message, text, use
from planner_world import network, world

from apex_bus import tracing
from apex_bus.connection import Bus
from apex_bus.provision import provision
from apex_planner.ai_planner import AIPlanner
from apex_planner.decide import first_request
from apex_schemas import envelope, subjects
from apex_schemas.decision import DecisionRecord, DecisionRequest
from apex_schemas.ids import new_task_id
from apex_schemas.steps import PlannedStep, WorldEvent
from apex_schemas.subjects import Identity

SECRET = "nobody-but-the-record-may-see-this"
THINKING = {"type": "thinking", "thinking": SECRET, "signature": "c2ln"}


@pytest.fixture
async def bus(nats_server: Nats) -> AsyncGenerator[Bus]:
    async with bus_of(Identity.DECISION_LOG, nats_server.url) as made:
        await provision(made, ("pixel",), store_mib=512)
        yield made


@pytest.fixture
async def model() -> AsyncGenerator[ModelServer]:
    async with model_server() as server:
        yield server


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What would be exported, of every tracer."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", lambda *_, **__: provider.get_tracer("test"))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("test"))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


async def test_thinking_is_in_step_and_record_and_nowhere_else(
    bus: Bus, nats_server: Nats, model: ModelServer, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    task = new_task_id()
    await model.order(
        {"body": message(THINKING, text("no call"), stop="end_turn")},
        {"body": message(THINKING, text("I tap."), use(TAP))},
    )
    with caplog.at_level(logging.DEBUG):
        async with client_over("cloud-proxy", model.environ("anthropic"), nats_server.url) as client:
            step = await AIPlanner(client).plan(network(), world(), task=task)
    assert isinstance(step, PlannedStep)
    assert step.thinking == SECRET
    for call in (0, 1):
        stored = await bus.get("DECISIONS", subjects.decision(task, 0, call))
        assert stored is not None
        record = envelope.decode(stored.data).body
        assert isinstance(record, DecisionRecord)
        assert record.reply.thinking == SECRET
        assert SECRET not in record.user_prompt + record.system_prompt
    assert SECRET not in json.dumps([each["body"] for each in await model.calls()])
    assert SECRET not in caplog.text
    exported = spans.get_finished_spans()
    assert [span.name for span in exported].count("chat m-1") == 2
    assert SECRET not in "".join(span.to_json() for span in exported)

    event = WorldEvent(action=step.action, success=True, page=step.page, target=step.target, thinking=step.thinking)
    then = first_request(network(), world(event), None, task=task)
    assert isinstance(then, DecisionRequest)
    assert SECRET not in "\n".join(then.user_blocks)
