"""What tracing costs: the same turns with spans and metrics sent to a receiver, and without, in one run.

    python bench/tracing.py [--pairs 100] [--json FILE]

Two whole systems stand side by side and take short tasks in turn, off-on, on-off, off-on, …, so that what else the
machine does meets both alike. Each pair gives a ratio; the median of the ratios is the cost, and resampling the pairs
tells how sure it is. The quickest tenth of all turns is compared as well: those had the machine to themselves, however
busy it was otherwise. Processor time is that of all services over the whole pair, so that what is sent later is in it.
The receiver counts and throws away. What a span costs in processor time is measured apart as well.
"""

import argparse
import asyncio
import gzip
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from apex_lab.stack.services import MODULES
from apex_lab.stack.stack import Stack

sys.path.insert(0, str(Path(__file__).parent))
from loop import A_TASK, SERVICES, percentile, watch
from processes import cpu_seconds

AFTER_A_TASK_S = 0.2
"""Until the decision-log has stored it."""
RESAMPLED = 1_000
QUICK = 0.1
SPANS = 3_000
A_SPAN = f"""
import os, time
from apex_bus import telemetry, tracing
task = "0123456789abcdef0123456789abcdef"
headers = tracing.headers(task)
telemetry.set_up("planner", os.environ)
about = {{"apex.turn": 3, "apex.device": "sim-1", "apex.page": "Settings"}}
begun = time.process_time()
for _ in range({SPANS}):
    with tracing.arriving(f"task.sim-1.{{task}}.3.scene", headers), tracing.span("plan", task=task, attributes=about):
        tracing.headers(task)
telemetry.flush()
print((time.process_time() - begun) / {SPANS} * 1e6)
"""


class Drain:
    """An OTLP receiver that keeps nothing but counts of bytes and spans."""

    def __init__(self) -> None:
        self.received, self.spans = 0, 0
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes([web.post("/v1/{signal}", self._take)])
        self._runner = web.AppRunner(app, access_log=None)

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.received += len(body)
        if request.match_info["signal"] == "traces":
            plain = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
            resources = ExportTraceServiceRequest.FromString(plain).resource_spans
            self.spans += sum(len(scope.spans) for resource in resources for scope in resource.scope_spans)
        return web.Response(content_type="application/x-protobuf")

    async def start(self) -> str:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()


async def microseconds_of_a_span(endpoint: str) -> float:
    """Processor time of a span from its begin to its being sent; without an endpoint, of none."""
    environ = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_MAX_QUEUE_SIZE": str(2 * SPANS)}
    command = (sys.executable, "-c", A_SPAN)
    child = await asyncio.create_subprocess_exec(*command, env=environ, stdout=asyncio.subprocess.PIPE)
    out, _ = await child.communicate()
    return float(out)


class Pair(NamedTuple):
    """Two tasks, one on each system: milliseconds of each turn, and CPU milliseconds a turn, by system."""

    turns: dict[str, list[float]]
    cpu_ms: dict[str, float]


def cpu(stack: Stack) -> float:
    pids = [stack.child(name).pid for name in SERVICES]
    return sum(cpu_seconds(pid) for pid in pids if pid)


async def turns_of(stack: Stack) -> list[float]:
    [seen] = await watch(stack, "sim-1", A_TASK)
    await asyncio.sleep(AFTER_A_TASK_S)
    return [(b - a) * 1e3 for a, b in zip(seen.events, seen.events[1:], strict=False)]


class Likely(NamedTuple):
    """A figure, and between what it lies in 95 of 100 resamplings of the pairs."""

    found: float
    least: float
    most: float


def likely(pairs: Sequence[Pair], figure: Callable[[Sequence[Pair]], float]) -> Likely:
    chance = random.Random(1)
    figures = sorted(figure(chance.choices(pairs, k=len(pairs))) for _ in range(RESAMPLED))
    return Likely(figure(pairs), percentile(figures, 0.025), percentile(figures, 0.975))


def overhead(pairs: Sequence[Pair]) -> float:
    return statistics.median(statistics.median(p.turns["on"]) / statistics.median(p.turns["off"]) for p in pairs) - 1


def overhead_of_quick_turns(pairs: Sequence[Pair]) -> float:
    quick = {name: percentile([turn for p in pairs for turn in p.turns[name]], QUICK) for name in ("off", "on")}
    return quick["on"] / quick["off"] - 1


def cpu_more_ms(pairs: Sequence[Pair]) -> float:
    return statistics.median(pair.cpu_ms["on"] - pair.cpu_ms["off"] for pair in pairs)


async def alternate(stacks: dict[str, Stack], pairs: int) -> list[Pair]:
    for stack in stacks.values():
        await watch(stack, "sim-1", A_TASK)  # warm
    found: list[Pair] = []
    for number in range(pairs):
        before = {name: cpu(stack) for name, stack in stacks.items()}
        turns = {name: await turns_of(stacks[name]) for name in (("off", "on") if number % 2 == 0 else ("on", "off"))}
        spent = {name: (cpu(stack) - before[name]) * 1e3 / A_TASK for name, stack in stacks.items()}
        found.append(Pair(turns, spent))
    return found


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    drain = Drain()
    url = await drain.start()
    shown = {"AI_PLANNER_SCREENSHOT": "never"}
    off = {service: shown for service in MODULES}
    on = {service: {**shown, "OTEL_EXPORTER_OTLP_ENDPOINT": url} for service in MODULES}
    with tempfile.TemporaryDirectory(prefix="apex-bench-") as folder:
        async with (
            Stack(Path(folder) / "off", environment=off) as without,
            Stack(Path(folder) / "on", environment=on) as with_it,
        ):
            found = await alternate({"off": without, "on": with_it}, options.pairs)
    sent = drain.spans / ((options.pairs + 1) * (A_TASK + 1))
    costs = {name: await microseconds_of_a_span(endpoint) for name, endpoint in (("off", ""), ("on", url))}
    await drain.stop()
    p50 = {name: statistics.median(turn for pair in found for turn in pair.turns[name]) for name in ("off", "on")}
    for name in ("off", "on"):
        cpu_ms = statistics.fmean(pair.cpu_ms[name] for pair in found)
        print(f"tracing {name}: p50 {p50[name]:.1f} ms, {cpu_ms:.1f} CPU ms a turn, {len(found)} tasks of {A_TASK}")
    turn, quick, more = (likely(found, figure) for figure in (overhead, overhead_of_quick_turns, cpu_more_ms))
    for name, figure in ((f"a turn (median of {len(found)} pairs)", turn), ("the quickest tenth of turns", quick)):
        print(f"overhead: {figure.found:+.1%} of {name}; 95 % of resamplings {figure.least:+.1%} to {figure.most:+.1%}")
    print(f"CPU: {more.found:+.2f} ms a turn; 95 % of resamplings {more.least:+.2f} to {more.most:+.2f}")
    more_ms = (costs["on"] - costs["off"]) * sent / 1e3
    print(
        f"a span costs {costs['off']:.0f} µs without a receiver and {costs['on']:.0f} µs sent; {sent:.1f} spans a turn "
        f"are {more_ms:.2f} ms, {more_ms / p50['off']:.1%} of a turn"
    )
    if options.json:
        result = {"p50_ms": p50, "overhead": turn, "overhead_quick": quick, "cpu_ms": more, "span_us": costs}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
