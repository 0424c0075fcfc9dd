"""An OTLP receiver: takes spans and metrics over HTTP as collectors do, and keeps them decoded."""

import gzip
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Cause:
    """`reference` is what a reader that knows one reference to a span alone is to take it for."""

    span: str
    subject: str | None
    reference: str | None = None


@dataclass(frozen=True)
class Seen:
    """A span as it was sent. Times in nanoseconds; `error` is the description of an error status."""

    service: str
    scope: str
    trace: str
    id: str
    parent: str
    name: str
    start: int
    end: int
    attributes: dict[str, Any]
    causes: tuple[Cause, ...]
    error: str | None


@dataclass
class Receiver:
    url: str = ""
    spans: list[Seen] = field(default_factory=list)
    points: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """Metric points: service, metric, attributes."""
    values: dict[tuple[str, str, frozenset[tuple[str, Any]]], float] = field(default_factory=dict)
    """The last number of each counter and gauge, by service, metric and attributes."""
    takes: Callable[[list[Seen]], Awaitable[bool]] | None = None
    """Asked about spans that come; False loses them."""

    def of(self, task: str) -> list[Seen]:
        return sorted((span for span in self.spans if span.trace == task), key=lambda span: span.start)


@asynccontextmanager
async def otlp_receiver() -> AsyncGenerator[Receiver]:
    receiver = Receiver()

    async def traces(request: web.Request) -> web.Response:
        spans = list(_spans(ExportTraceServiceRequest.FromString(await _body(request))))
        if receiver.takes is not None and not await receiver.takes(spans):
            raise web.HTTPServiceUnavailable
        receiver.spans += spans
        return web.Response(content_type="application/x-protobuf")

    async def metrics(request: web.Request) -> web.Response:
        for service, name, attributes, value in _points(ExportMetricsServiceRequest.FromString(await _body(request))):
            receiver.points.append((service, name, attributes))
            if value is not None:
                receiver.values[service, name, frozenset(attributes.items())] = value
        return web.Response(content_type="application/x-protobuf")

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.add_routes([web.post("/v1/traces", traces), web.post("/v1/metrics", metrics)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        await runner.cleanup()


async def _body(request: web.Request) -> bytes:
    body = await request.read()
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


def _spans(request: ExportTraceServiceRequest) -> Iterator[Seen]:
    for resource in request.resource_spans:
        service = _attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Seen(
                    service=service,
                    scope=scope.scope.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    name=span.name,
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    attributes=_attributes(span.attributes),
                    causes=tuple(
                        Cause(
                            link.span_id.hex(),
                            _attributes(link.attributes).get("messaging.destination.name"),
                            _attributes(link.attributes).get("opentracing.ref_type"),
                        )
                        for link in span.links
                    ),
                    error=span.status.message if span.status.code == 2 else None,
                )


def _points(request: ExportMetricsServiceRequest) -> Iterator[tuple[str, str, dict[str, Any], float | None]]:
    for resource in request.resource_metrics:
        service = _attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                data = getattr(metric, metric.WhichOneof("data"))
                for point in data.data_points:
                    kind = point.WhichOneof("value") if hasattr(point, "as_int") else None
                    value = float(getattr(point, kind)) if kind else None
                    yield service, metric.name, _attributes(point.attributes), value


def _attributes(pairs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind) if kind else None
        found[pair.key] = [each.string_value for each in value.values] if kind == "array_value" else value
    return found
