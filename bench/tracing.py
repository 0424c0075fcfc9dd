"""What tracing costs: the same turns with spans and metrics sent to a receiver, and without, in alternation.

    python bench/tracing.py [--rounds 8] [--turns 40] [--json FILE]

Two whole systems run side by side in one run and take tasks in turn, so that what else the machine does meets both
alike. The receiver counts what is sent and throws it away. On a busy machine the times of turns scatter; what a span
costs in processor time is measured apart, in a process of its own, and does not.
"""

import argparse
import asyncio
import gzip
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from apex_lab.stack.services import MODULES
from apex_lab.stack.stack import Stack

sys.path.insert(0, str(Path(__file__).parent))
from loop import SERVICES, percentile, watch
from processes import cpu_seconds

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


def cpu(stack: Stack) -> float:
    pids = [stack.child(name).pid for name in SERVICES]
    return sum(cpu_seconds(pid) for pid in pids if pid)


async def measure(stack: Stack, turns: int) -> tuple[list[float], float]:
    """Milliseconds of each turn, and CPU milliseconds a turn of all services."""
    before = cpu(stack)
    tasks = await watch(stack, "sim-1", turns)
    intervals = [(b - a) * 1e3 for seen in tasks for a, b in zip(seen.events, seen.events[1:], strict=False)]
    return intervals, (cpu(stack) - before) * 1e3 / max(1, sum(len(seen.events) for seen in tasks))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    drain = Drain()
    url = await drain.start()
    shown = {"AI_PLANNER_SCREENSHOT": "never"}
    off = {service: shown for service in MODULES}
    on = {service: {**shown, "OTEL_EXPORTER_OTLP_ENDPOINT": url} for service in MODULES}
    turns: dict[str, list[float]] = {"off": [], "on": []}
    medians: dict[str, list[float]] = {"off": [], "on": []}
    spent: dict[str, list[float]] = {"off": [], "on": []}
    with tempfile.TemporaryDirectory(prefix="apex-bench-") as folder:
        async with (
            Stack(Path(folder) / "off", environment=off) as without,
            Stack(Path(folder) / "on", environment=on) as with_it,
        ):
            stacks = {"off": without, "on": with_it}
            for stack in stacks.values():
                await watch(stack, "sim-1", 5)  # warm
            for number in range(options.rounds):
                order = ("off", "on") if number % 2 == 0 else ("on", "off")
                for name in order:
                    intervals, each = await measure(stacks[name], options.turns)
                    turns[name] += intervals
                    medians[name].append(statistics.median(intervals))
                    spent[name].append(each)
    sent = drain.spans / max(1, len(turns["on"]) + options.rounds)
    costs = {name: await microseconds_of_a_span(endpoint) for name, endpoint in (("off", ""), ("on", url))}
    await drain.stop()
    p50 = {name: percentile(values, 0.5) for name, values in turns.items()}
    mean = {name: statistics.fmean(values) for name, values in turns.items()}
    processor = {name: statistics.median(values) for name, values in spent.items()}
    for name in ("off", "on"):
        print(
            f"tracing {name}: p50 {p50[name]:.1f} ms, mean {mean[name]:.1f} ms a turn, "
            f"{processor[name]:.1f} CPU ms a turn, {len(turns[name])} turns"
        )
    pairs = sorted(with_it / without for with_it, without in zip(medians["on"], medians["off"], strict=True))
    turn = statistics.median(pairs) - 1
    cpu_ms = processor["on"] - processor["off"]
    print(
        f"overhead: {turn:+.1%} of a turn (median of {len(pairs)} pairs of rounds, {pairs[0] - 1:+.1%} to "
        f"{pairs[-1] - 1:+.1%}); CPU {cpu_ms:+.2f} ms a turn, {cpu_ms / p50['off']:.1%} of its time"
    )
    more_ms = (costs["on"] - costs["off"]) * sent / 1e3
    print(
        f"a span costs {costs['off']:.0f} µs without a receiver and {costs['on']:.0f} µs sent; {sent:.1f} spans a turn "
        f"are {more_ms:.2f} ms, {more_ms / p50['off']:.1%} of a turn"
    )
    if options.json:
        options.json.write_text(json.dumps({"p50_ms": p50, "mean_ms": mean, "cpu_ms": processor}, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
