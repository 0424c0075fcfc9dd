"""Where spans and measurements go: to the OTLP endpoint that OpenTelemetry's standard variables name, else nowhere.

Consumes OTEL_EXPORTER_OTLP_ENDPOINT (or _TRACES_ENDPOINT, _METRICS_ENDPOINT) and the other variables of the SDK;
owns the providers of this process. Nobody listening costs no turn anything, and a process that ends waits a few
seconds for its last spans and no longer.
"""

import asyncio
import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from apex_bus.tracing import Ids

log = logging.getLogger(__name__)

_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_TIMEOUT: Final = "OTEL_EXPORTER_OTLP_TIMEOUT"
_EXPORT_SECONDS: Final = 3
FLUSH_SECONDS: Final = 5.0
SENT_SECONDS: Final = 1.0
LONGEST_SENT_SECONDS: Final = 30.0
"""A device waits meanwhile, and who takes the time-out of exports for milliseconds, as other SDKs do, has set hours."""
_HOPELESS_SECONDS: Final = 60.0


def wanted(signal: str, environ: Mapping[str, str]) -> bool:
    """Whether a signal (`TRACES`, `METRICS`) is to be sent."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower() or "otlp"
    if exporter not in ("otlp", "none"):
        log.warning("OTEL_%s_EXPORTER=%s is not known here: otlp (over HTTP) or none", signal, exporter)
    endpoint = environ.get(_ENDPOINT) or environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    return bool(endpoint) and exporter == "otlp"


def set_up(service: str, environ: Mapping[str, str]) -> None:
    """Set the providers of this process, once."""
    traces, measurements = wanted("TRACES", environ), wanted("METRICS", environ)
    if not (traces or measurements):
        return
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # nobody listening must not flood the log
    resource = Resource.create(
        {
            "service.name": f"apex-{service}",
            "service.namespace": "apex",
            "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
        }
    )
    timeout = None if environ.get(_TIMEOUT) else _EXPORT_SECONDS
    if traces:
        _send_traces(resource, timeout)
    if measurements:
        _send_metrics(resource, timeout)


def _send_traces(resource: Resource, timeout: float | None) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=timeout)))
    trace.set_tracer_provider(provider)


def _send_metrics(resource: Resource, timeout: float | None) -> None:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    reader = PeriodicExportingMetricReader(OTLPMetricExporter(timeout=timeout))
    metrics.set_meter_provider(MeterProvider([reader], resource=resource, shutdown_on_exit=False))


class _Patience:
    """Until when nobody is waited for, since the last wait was in vain."""

    until = 0.0


async def sent(seconds: float | None = None) -> bool:
    """Wait until the spans that have ended so far are sent, so that a kill from here on loses none of them.

    At most `seconds`, which is a second, or what the environment gives an export and half a minute at most; and after
    a wait in vain not at all for a minute. False when they may not be sent.
    """
    tracer = trace.get_tracer_provider()
    if not isinstance(tracer, TracerProvider):
        return True
    if time.monotonic() < _Patience.until:
        return False
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def send() -> None:
        tracer.force_flush()
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=send, daemon=True, name="spans").start()
    try:
        usual = min(float(os.environ.get(_TIMEOUT) or SENT_SECONDS), LONGEST_SENT_SECONDS)
        async with asyncio.timeout(usual if seconds is None else seconds):
            await done.wait()
    except TimeoutError:
        _Patience.until = time.monotonic() + _HOPELESS_SECONDS
        return False
    return True


def flush(seconds: float = FLUSH_SECONDS) -> None:
    """Send what is left, and end. What nobody takes within `seconds` is lost."""
    ends: list[Callable[[], object]] = []
    tracer, meter = trace.get_tracer_provider(), metrics.get_meter_provider()
    if isinstance(tracer, TracerProvider):
        ends.append(tracer.shutdown)
    if isinstance(meter, MeterProvider):
        ends.append(meter.shutdown)
    # The SDK's own time-outs are longer than a container's grace: its threads die with the process instead.
    threads = [threading.Thread(target=end, daemon=True) for end in ends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
