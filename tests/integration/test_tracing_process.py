"""A process and where its spans go: sent at its end, lost without harm when nobody takes them."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping

import pytest
from integration.otlp_receiver import otlp_receiver
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from apex_bus import telemetry
from apex_bus.tracing import pattern_of
from apex_planner.genai import CAPTURE, captures, describe
from apex_schemas.decision import DecisionRequest, ToolCallDecision, Usage
from apex_schemas.steps import DecisionKey

TASK = "0123456789abcdef0123456789abcdef"
PROGRAM = f"""
import os, sys, time
from apex_bus import metrics, telemetry, tracing
telemetry.set_up("planner", os.environ)
with tracing.span("plan", task="{TASK}"):
    pass
metrics.add(metrics.TURNS, 1, {{"action": "tap", "outcome": "done"}})
begun = time.monotonic()
telemetry.flush()
print(time.monotonic() - begun)
"""


async def run(environ: Mapping[str, str]) -> tuple[float, str]:
    """Seconds that the flush took, and what was written on standard error."""
    command = [sys.executable, "-c", PROGRAM]
    done = await asyncio.to_thread(
        subprocess.run, command, env={**os.environ, **environ}, capture_output=True, text=True, timeout=60, check=True
    )
    return float(done.stdout), done.stderr


async def test_what_is_left_is_sent_when_the_process_ends() -> None:
    async with otlp_receiver() as receiver:
        await run({"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url})
    [span] = receiver.spans
    assert (span.service, span.name, span.trace) == ("apex-planner", "plan", TASK)
    assert ("apex-planner", "apex.turns", {"action": "tap", "outcome": "done"}) in receiver.points


async def test_a_signal_can_be_left_out_by_the_standard_variable() -> None:
    async with otlp_receiver() as receiver:
        await run({"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_TRACES_EXPORTER": "none"})
    assert receiver.spans == []
    assert receiver.points


async def test_nobody_listening_is_harmless_and_quiet() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        seconds, said = await run({"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{taken.getsockname()[1]}"})
    assert seconds < 3 * telemetry.FLUSH_SECONDS
    assert said == ""


async def test_a_server_that_never_answers_keeps_nobody_at_the_end() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        begun = time.monotonic()
        seconds, said = await run({"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}"})
    assert seconds < 4 * telemetry.FLUSH_SECONDS
    assert time.monotonic() - begun < 60
    assert said == ""


async def test_a_receiver_that_does_not_answer_is_waited_for_once_and_then_not_again() -> None:
    program = PROGRAM.partition("begun")[0] + (
        "import asyncio\n"
        "first = asyncio.run(telemetry.sent(0.5))\n"
        "again = asyncio.run(telemetry.sent(600))\n"  # so long that the test would end before it
        "print(first, again)\n"
    )
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        environ = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        command = [sys.executable, "-c", program]
        done = await asyncio.to_thread(
            subprocess.run, command, env=environ, capture_output=True, text=True, timeout=60, check=True
        )
    assert done.stdout.split() == ["False", "False"]


async def test_a_time_out_of_hours_keeps_nobody_waiting_for_hours_when_the_receiver_does_not_answer() -> None:
    program = PROGRAM.partition("begun")[0] + (
        "import asyncio\ntelemetry.LONGEST_SENT_SECONDS = 0.5\nprint(asyncio.run(telemetry.sent()))\nos._exit(0)\n"
    )
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        environ = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT": "10000"}
        command = [sys.executable, "-c", program]
        done = await asyncio.to_thread(
            subprocess.run, command, env=environ, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.stdout == "False\n", done.stderr


async def test_what_has_ended_is_there_when_it_was_waited_for() -> None:
    program = PROGRAM.partition("begun")[0] + "import asyncio\nprint(asyncio.run(telemetry.sent(30)))\nos._exit(0)\n"
    async with otlp_receiver() as receiver:
        environ = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
        command = [sys.executable, "-c", program]
        done = await asyncio.to_thread(
            subprocess.run, command, env=environ, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.stdout == "True\n"
    assert [span.name for span in receiver.spans] == ["plan"]


@pytest.mark.parametrize(
    ("environ", "sent"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://h:4318/v1/metrics"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_spans_are_sent_where_the_standard_variables_say_so(environ: dict[str, str], sent: bool) -> None:
    assert telemetry.wanted("TRACES", environ) is sent


@pytest.mark.parametrize(
    ("subject", "row"),
    [
        (f"task.sim-1.{TASK}.0.started", "task.*.*.0.started"),
        (f"task.sim-1.{TASK}.0.scene", "task.*.*.*.scene"),
        (f"task.sim-1.{TASK}.10.event", "task.*.*.*.event"),
        (f"task.none.{TASK}.end.finished", "task.*.*.end.finished"),
        (f"decision.{TASK}.1.0", "decision.*.*.*"),
        ("request.any", "request.*"),
        ("query.tasks", "query.tasks"),
        ("planner-decision.decide", "planner-decision.decide"),
        ("$JS.API.INFO", None),
        ("task.sim-1", None),
    ],
)
def test_a_subject_is_named_by_its_row_of_the_table(subject: str, row: str | None) -> None:
    assert pattern_of(subject) == row


@pytest.mark.parametrize("value", ["", "false", "NO_CONTENT", "event_only"])
def test_what_was_said_stays_out_of_traces_unless_it_is_asked_for(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CAPTURE, value)
    told = json.dumps(_described())
    assert "SECRET" not in told
    assert "gen_ai.usage.input_tokens" in told


@pytest.mark.parametrize("value", ["true", "SPAN_ONLY", "span_and_event"])
def test_what_was_said_is_told_in_the_form_of_the_conventions_when_asked_for(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, value)
    assert captures(os.environ)
    told = _described()
    [asked] = json.loads(told["gen_ai.input.messages"])
    assert asked == {"role": "user", "parts": [{"type": "text", "content": "SECRET goal"}]}
    [said] = json.loads(told["gen_ai.output.messages"])
    assert [part["type"] for part in said["parts"]] == ["reasoning", "text", "tool_call"]
    assert json.loads(told["gen_ai.system_instructions"])[0]["content"] == "SECRET system"


def _described() -> dict[str, str]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    request = DecisionRequest(
        key=DecisionKey(task=TASK, turn=1, call=0),
        system_prompt="SECRET system",
        user_blocks=("SECRET goal",),
        tools=(),
    )
    reply = ToolCallDecision(
        tool="tap", arguments={"element": "SECRET"}, text_output="SECRET said", thinking="SECRET thought",
        usage=Usage(input_tokens=7), provider="anthropic", model="m",
    )  # fmt: skip
    with provider.get_tracer("test").start_as_current_span("chat") as current:
        describe(current, request, reply, 0.5)
    [span] = exporter.get_finished_spans()
    return {name: value for name, value in (span.attributes or {}).items()}  # type: ignore[misc]
