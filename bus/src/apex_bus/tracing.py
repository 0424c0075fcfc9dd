"""OpenTelemetry: one flat trace a task.

The trace id is the task id and the id of its root span is derived from it, so every service can name the root as
parent without being told. What caused a span becomes a link, which names the subject it came by: parent chains would
nest six levels a turn. The root span itself is exported once, at the end of the task, with its true duration.
Where the spans go is `telemetry`'s business; without a provider they cost next to nothing.
"""

import hashlib
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Final, NamedTuple

from opentelemetry import trace
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, StatusCode, TraceFlags

from apex_bus import metrics
from apex_schemas.ids import is_task_id
from apex_schemas.subjects import TABLE

TRACEPARENT: Final = "traceparent"
CAUSE: Final = "apex-cause"
DESTINATION: Final = "messaging.destination.name"
"""On a link: the row of the subjects table by which the cause came."""
_REFERENCE: Final = {"opentracing.ref_type": "child_of"}
"""On a link to the root: Jaeger knows one reference to a span alone, and takes the link's for the parent's."""

_LONGEST_REASON: Final = 500
_preset_span_id: ContextVar[int | None] = ContextVar("preset_span_id", default=None)
_preset_trace_id: ContextVar[int | None] = ContextVar("preset_trace_id", default=None)
_random: Final = RandomIdGenerator()
_tracer: Final = trace.get_tracer("apex")  # asks the provider that is set by the time of its first span
_RUNNING_TASKS: Final = 256


class Ids(IdGenerator):
    """Random ids, but for root spans, whose ids are those of their task."""

    def generate_span_id(self) -> int:
        preset = _preset_span_id.get()
        return _random.generate_span_id() if preset is None else preset

    def generate_trace_id(self) -> int:
        preset = _preset_trace_id.get()
        return _random.generate_trace_id() if preset is None else preset


class Arrival(NamedTuple):
    """A message that something is done about: what was done was caused by whoever sent it."""

    subject: str
    headers: Mapping[str, str]


_arrival: ContextVar[Arrival | None] = ContextVar("arrival", default=None)


@contextmanager
def arriving(subject: str, headers: Mapping[str, str] | None) -> Generator[None]:
    """Everything in the block, and in tasks started there, is about this message."""
    token = _arrival.set(Arrival(subject, headers or {}))
    try:
        yield
    finally:
        _arrival.reset(token)


@contextmanager
def because_of(cause: Span) -> Generator[None]:
    """What is published in the block was caused by a span that is over."""
    with trace.use_span(NonRecordingSpan(cause.get_span_context())):
        yield


@lru_cache(_RUNNING_TASKS)
def root_span_id(task: str) -> int:
    return int.from_bytes(hashlib.blake2b(task.encode(), digest_size=8).digest()) or 1


@lru_cache(_RUNNING_TASKS)
def root_context(task: str) -> SpanContext:
    return SpanContext(int(task, 16), root_span_id(task), is_remote=True, trace_flags=TraceFlags(1))


def traceparent(context: SpanContext) -> str:
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


@lru_cache(_RUNNING_TASKS)
def _root(task: str) -> str:
    return traceparent(root_context(task))


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
    """What a message of a task carries: the task's root, and the span that caused it; outside any span, the root."""
    root = _root(task)
    current = trace.get_current_span().get_span_context()
    return {TRACEPARENT: root, CAUSE: cause or (traceparent(current) if current.is_valid else root)}


def origin() -> dict[str, str]:
    """What a client's request carries when it is made inside a span of the client's own."""
    current = trace.get_current_span().get_span_context()
    return {TRACEPARENT: traceparent(current)} if current.is_valid else {}


@contextmanager
def span(
    name: str,
    *,
    task: str,
    cause: Mapping[str, str] | None = None,
    causes: Sequence[Arrival] = (),
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Mapping[str, str | int | float | bool] | None = None,
    begun_ns: int | None = None,
) -> Generator[Span]:
    """A span directly under the task's root, and a measurement of its stage. An error inside becomes its status.

    It is linked to `causes`, or to the span around it, or to what has arrived (`cause` are its headers where they
    are not those of the block). `begun_ns`, by the wall clock, where it began before the block.
    """
    root = root_context(task)
    parent = trace.set_span_in_context(NonRecordingSpan(root))
    begun_ns = begun_ns or time.time_ns()
    failure = "cancelled"
    with _tracer.start_as_current_span(
        name,
        context=parent,
        kind=kind,
        links=_links(cause, causes, root),
        attributes={"apex.task": task, **(attributes or {})},
        start_time=begun_ns,
        record_exception=False,
    ) as current:
        try:
            yield current
            failure = ""
        except Exception as error:
            failure = type(error).__name__
            current.set_attribute("error.type", failure)
            raise
        finally:
            measured = {"stage": name} | ({"error.type": failure} if failure else {})
            metrics.record(metrics.STAGE_DURATION, (time.time_ns() - begun_ns) / 1e9, measured)


def mark_failed(current: Span, code: str, reason: str | None) -> None:
    """Give a span the status of an error that no exception tells of."""
    current.set_attribute("error.type", code)
    current.set_status(StatusCode.ERROR, f"{code}: {reason}"[:_LONGEST_REASON] if reason else code)


def _links(cause: Mapping[str, str] | None, causes: Sequence[Arrival], root: SpanContext) -> list[Link]:
    around = trace.get_current_span()
    if not causes and around.is_recording():
        return [Link(around.get_span_context())]
    arrived = _arrival.get()
    if not causes and cause is not None and (arrived is None or arrived.headers is not cause):
        causes = (Arrival("", cause),)
    elif not causes and arrived is not None:
        causes = (arrived,)
    return [link for each in causes if (link := _link(each, root)) is not None]


def _link(arrival: Arrival, root: SpanContext) -> Link | None:
    context = parse_traceparent(arrival.headers.get(CAUSE))
    if context is None:
        return None
    row = pattern_of(arrival.subject)
    reference = _REFERENCE if context.span_id == root.span_id else {}
    return Link(context, {**reference, DESTINATION: row} if row else reference)


_PATTERNS: Final = tuple(tuple(row.pattern.split(".")) for row in TABLE)


def pattern_of(subject: str) -> str | None:
    """The row of the subjects table that a subject belongs to."""
    tokens = subject.split(".")
    return _pattern(len(tokens), tokens[0], tokens[1] if len(tokens) == 2 else "", tokens[-1], tokens[-2:-1] == ["0"])


@lru_cache(maxsize=512)
def _pattern(length: int, first: str, second: str, last: str, zero: bool) -> str | None:
    for pattern in _PATTERNS:
        if len(pattern) != length or pattern[0] != first:
            continue
        if length == 2 and pattern[1] not in ("*", second):
            continue
        if first == "task" and (pattern[-1] != last or (pattern[-2] == "0" and not zero)):
            continue
        return ".".join(pattern)
    return None


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
        root = _tracer.start_span(
            "task",
            context=trace.set_span_in_context(trace.INVALID_SPAN),
            start_time=started_ns,
            kind=SpanKind.SERVER,
            links=[Link(client, {DESTINATION: "request.*"})] if client else [],
            attributes={"apex.task": task, **attributes},
        )
    finally:
        _preset_trace_id.reset(trace_token)
        _preset_span_id.reset(span_token)
    if failure is not None:
        root.set_status(StatusCode.ERROR, failure[:_LONGEST_REASON])
    root.end(ended_ns)


def current_ids() -> tuple[str, str | None] | None:
    """Trace and span id of the span that is open here, for log lines; of the message in hand, its task's."""
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        return f"{context.trace_id:032x}", f"{context.span_id:016x}"
    arrived = _arrival.get()
    if arrived is None:
        return None
    return next(((token, None) for token in arrived.subject.split(".") if is_task_id(token)), None)
