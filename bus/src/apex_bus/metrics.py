"""What is measured: every instrument of the system, in one table from which docs/reference/metrics.md is made.

Emits OpenTelemetry metrics by whatever provider `telemetry` has set; without one a measurement costs next to nothing.
Model figures carry the names of the GenAI conventions, all others begin with `apex.`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation

Attributes = Mapping[str, str | int | bool]
Observe = Callable[[], Iterable[tuple[float, Attributes]]]
"""Gives the values of now, each with its attributes."""


class Instrument(NamedTuple):
    """`attributes` are the names that its measurements may carry; all of them have few values."""

    name: str
    kind: Literal["counter", "histogram", "gauge", "observed counter"]
    unit: str
    description: str
    attributes: tuple[str, ...]
    measured_by: str


def _of(name: str, kind: Any, unit: str, attributes: str, measured_by: str, description: str) -> Instrument:
    return Instrument(name, kind, unit, description, tuple(attributes.split()), measured_by)


TASKS: Final = _of(
    "apex.tasks",
    "counter",
    "{task}",
    "status stage",
    "executor",
    "tasks that ended; `stage` says who was late or failed",
)
TASK_DURATION: Final = _of(
    "apex.task.duration", "histogram", "s", "status", "executor", "from the start on a device to the end"
)
TURNS: Final = _of(
    "apex.turns",
    "counter",
    "{turn}",
    "action outcome",
    "executor",
    "turns by what was done, and what came of it: done, failed, unknown",
)
STAGE_DURATION: Final = _of(
    "apex.stage.duration",
    "histogram",
    "s",
    "stage error.type",
    "all services",
    "latency by stage: observe, settle, plan, chat, act, record",
)
REFUSALS: Final = _of(
    "apex.refusals",
    "counter",
    "{refusal}",
    "stage code",
    "executor, planner-decision, planner",
    "acts, answers and decisions that were refused or failed, by code",
)
TOKENS: Final = _of(
    "gen_ai.client.token.usage",
    "histogram",
    "{token}",
    "gen_ai.operation.name gen_ai.provider.name gen_ai.request.model gen_ai.token.type",
    "planner-decision",
    "tokens of a provider call; `input` has the cached ones in it, `output` the reasoning; "
    "`cache_read`, `cache_write` and `reasoning` tell them apart",
)
CALL_DURATION: Final = _of(
    "gen_ai.client.operation.duration",
    "histogram",
    "s",
    "gen_ai.operation.name gen_ai.provider.name gen_ai.request.model error.type",
    "planner-decision",
    "a provider call with all its retries",
)
COST: Final = _of(
    "apex.cost",
    "counter",
    "USD",
    "gen_ai.request.model",
    "planner-decision",
    "what calls cost by list price; calls of a model without a price count nothing",
)
RETRIES: Final = _of(
    "apex.retries",
    "counter",
    "{retry}",
    "what",
    "planner-decision, perception",
    "second tries: `corrective` provider calls, `session` made again for perception",
)
FATES: Final = ("handled", "later", "skipped", "again", "dead", "bugs")
"""Told from the beginning, with 0: a counter that first appears with its first count has grown for nobody."""
MESSAGES: Final = _of(
    "apex.messages",
    "observed counter",
    "{message}",
    "fate",
    "all services",
    "messages by fate: handled, later (delivered again), skipped, again (handed back by the operator), dead, bugs",
)
PENDING: Final = _of(
    "apex.consumer.pending",
    "gauge",
    "{message}",
    "consumer",
    "executor, decision-log",
    "messages that wait: POOL_… are the queues of requests, DECISION_LOG_… the lag of the log in messages",
)
LOG_LAG: Final = _of(
    "apex.log.lag",
    "histogram",
    "s",
    "consumer",
    "decision-log",
    "age of the oldest message of a batch when it was committed",
)
DEVICE_STATE: Final = _of(
    "apex.device.state",
    "gauge",
    "{device}",
    "device state",
    "executor",
    "1 for the state that a device is in, 0 for the others: opening, ready, busy, waiting, quarantined",
)

INSTRUMENTS: Final = (
    TASKS,
    TASK_DURATION,
    TURNS,
    STAGE_DURATION,
    REFUSALS,
    TOKENS,
    CALL_DURATION,
    COST,
    RETRIES,
    MESSAGES,
    PENDING,
    LOG_LAG,
    DEVICE_STATE,
)

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
_TOKENS: Final = (1, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576)
_meter: Final = metrics.get_meter("apex")
_observers: Final[dict[str, list[Observe]]] = {}


def _made(instrument: Instrument) -> Any:
    name, unit, description = instrument.name, instrument.unit, instrument.description
    match instrument.kind:
        case "counter":
            return _meter.create_counter(name, unit, description)
        case "histogram":
            bounds = _TOKENS if unit == "{token}" else _SECONDS
            return _meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=bounds)
        case "gauge" if instrument is not DEVICE_STATE:
            return _meter.create_gauge(name, unit, description)
        case _:
            return None  # made with its first observer


_instruments: Final = {instrument.name: _made(instrument) for instrument in INSTRUMENTS}


def add(counter: Instrument, amount: float, attributes: Attributes) -> None:
    _instruments[counter.name].add(amount, dict(attributes))


def record(histogram: Instrument, value: float, attributes: Attributes) -> None:
    _instruments[histogram.name].record(value, dict(attributes))


def set_to(gauge: Instrument, value: float, attributes: Attributes) -> None:
    _instruments[gauge.name].set(value, dict(attributes))


def observe(instrument: Instrument, values: Observe) -> None:
    """Have `values` asked at every export, for as long as the process lives."""
    observers = _observers.setdefault(instrument.name, [])
    observers.append(values)
    if len(observers) > 1:
        return

    def ask(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, dict(attributes)) for each in observers for value, attributes in each()]

    counts = instrument.kind == "observed counter"
    make: Any = _meter.create_observable_counter if counts else _meter.create_observable_gauge
    make(instrument.name, [ask], instrument.unit, instrument.description)


def metrics_md() -> str:
    """docs/reference/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "Generated from `apex_bus/metrics.py` by `python docs/generate.py`; do not edit.",
        "",
        "Sent by OTLP where the standard variables name an endpoint; the last column is the name in Prometheus.",
        "",
        "| metric | kind | unit | attributes | measured by | what it is | in Prometheus |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in INSTRUMENTS:
        attributes = ", ".join(f"`{name}`" for name in each.attributes)
        lines.append(
            f"| `{each.name}` | {each.kind} | {each.unit} | {attributes} | {each.measured_by} | {each.description} "
            f"| `{prometheus_name(each)}` |"
        )
    return "\n".join(lines) + "\n"


_UNITS: Final = {"s": "seconds", "USD": "USD"}


def prometheus_name(instrument: Instrument) -> str:
    """By OpenTelemetry's rules for Prometheus: dots, the unit (unless in braces), and `_total` for what only grows."""
    name = instrument.name.replace(".", "_")
    if unit := _UNITS.get(instrument.unit):
        name += f"_{unit}"
    return f"{name}_total" if "counter" in instrument.kind else name
