"""OpenTelemetry: one flat trace a task.

The trace id is the task id and the id of its root span is derived from it, so every service can name the root as
parent without being told. What caused a span travels in a header of its own and becomes a link: parent chains would
nest six levels a turn. The root span itself is exported once, at the end of the task, with its true duration.
"""

import hashlib
import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, StatusCode, TraceFlags

TRACEPARENT: Final = "traceparent"
CAUSE: Final = "apex-cause"
_preset_span_id: ContextVar[int | None] = ContextVar("preset_span_id", default=None)
_preset_trace_id: ContextVar[int | None] = ContextVar("preset_trace_id", default=None)
_random: Final = RandomIdGenerator()


class _Ids(IdGenerator):
    """Random ids, but for root spans, whose ids are those of their task."""

    def generate_span_id(self) -> int:
        preset = _preset_span_id.get()
        return _random.generate_span_id() if preset is None else preset

    def generate_trace_id(self) -> int:
        preset = _preset_trace_id.get()
        return _random.generate_trace_id() if preset is None else preset


def setup(service: str, environ: Mapping[str, str]) -> None:
    """Export spans by OTLP where the standard variables name an endpoint; otherwise spans cost next to nothing."""
    if not (environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")):
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # nobody listening must not flood the log
    provider = TracerProvider(resource=Resource.create({"service.name": f"apex-{service}"}), id_generator=_Ids())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=3), export_timeout_millis=3_000))
    trace.set_tracer_provider(provider)


def flush() -> None:
    """Send what is left, within seconds."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        provider.force_flush(3_000)
        provider.shutdown()


def root_span_id(task: str) -> int:
    return int.from_bytes(hashlib.blake2b(task.encode(), digest_size=8).digest()) or 1


def root_context(task: str) -> SpanContext:
    return SpanContext(int(task, 16), root_span_id(task), is_remote=True, trace_flags=TraceFlags(1))


def traceparent(context: SpanContext) -> str:
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def parse_traceparent(text: str | None) -> SpanContext | None:
    """The context of a W3C header; None where it is missing or malformed."""
    parts = (text or "").split("-")
    try:
        _, trace_id, span_id, flags = (int(part, 16) for part in parts[:4])
    except ValueError:
        return None
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags & 1))
    return context if context.is_valid else None


def headers(task: str, cause: str | None = None) -> dict[str, str]:
    """What a message of a task carries: the task's root, and the span that caused it."""
    carried = {TRACEPARENT: traceparent(root_context(task))}
    current = trace.get_current_span().get_span_context()
    cause = cause or (traceparent(current) if current.is_valid else None)
    return carried if cause is None else {**carried, CAUSE: cause}


@contextmanager
def span(
    name: str,
    *,
    task: str,
    cause: Mapping[str, str] | None = None,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Mapping[str, str | int | float | bool] | None = None,
) -> Generator[Span]:
    """A span directly under the task's root, linked to what caused it. An error inside becomes its status."""
    parent = trace.set_span_in_context(NonRecordingSpan(root_context(task)))
    caused_by = parse_traceparent((cause or {}).get(CAUSE))
    tracer = trace.get_tracer("apex")
    with tracer.start_as_current_span(
        name,
        context=parent,
        kind=kind,
        links=[Link(caused_by)] if caused_by else [],
        attributes={"apex.task": task, **(attributes or {})},
        record_exception=False,
    ) as current:
        yield current


def export_root(
    task: str,
    *,
    started_ns: int,
    ended_ns: int,
    failure: str | None,
    origin: str | None,
    attributes: Mapping[str, str | int],
) -> None:
    """Export a task's root span with its true duration. `origin` is the client's traceparent, kept as a link."""
    client = parse_traceparent(origin)
    trace_token, span_token = _preset_trace_id.set(int(task, 16)), _preset_span_id.set(root_span_id(task))
    try:
        root = trace.get_tracer("apex").start_span(
            "task",
            context=trace.set_span_in_context(trace.INVALID_SPAN),
            start_time=started_ns,
            kind=SpanKind.SERVER,
            links=[Link(client)] if client else [],
            attributes={"apex.task": task, **attributes},
        )
    finally:
        _preset_trace_id.reset(trace_token)
        _preset_span_id.reset(span_token)
    if failure is not None:
        root.set_status(StatusCode.ERROR, failure)
    root.end(ended_ns)


def current_ids() -> tuple[str, str] | None:
    """Trace and span id of the span that is open here, for log lines."""
    context = trace.get_current_span().get_span_context()
    return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None
