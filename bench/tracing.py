"""What tracing costs: the same turns with spans and metrics sent to a receiver, and without, in alternation.

    python bench/tracing.py [--rounds 8] [--turns 40] [--json FILE]

Two whole systems run side by side in one run and take tasks in turn, so that what else the machine does meets both
alike. The receiver takes what is sent and throws it away.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from pathlib import Path

from aiohttp import web

from apex_lab.stack.services import MODULES
from apex_lab.stack.stack import Stack

sys.path.insert(0, str(Path(__file__).parent))
from loop import SERVICES, percentile, watch
from processes import cpu_seconds


class Drain:
    """An OTLP receiver that keeps nothing but a count of bytes."""

    def __init__(self) -> None:
        self.received = 0
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes([web.post("/v1/{signal}", self._take)])
        self._runner = web.AppRunner(app, access_log=None)

    async def _take(self, request: web.Request) -> web.Response:
        self.received += len(await request.read())
        return web.Response(content_type="application/x-protobuf")

    async def start(self) -> str:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()


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
                    spent[name].append(each)
    await drain.stop()
    p50 = {name: percentile(values, 0.5) for name, values in turns.items()}
    mean = {name: statistics.fmean(values) for name, values in turns.items()}
    processor = {name: statistics.median(values) for name, values in spent.items()}
    for name in ("off", "on"):
        print(
            f"tracing {name}: p50 {p50[name]:.1f} ms, mean {mean[name]:.1f} ms a turn, "
            f"{processor[name]:.1f} CPU ms a turn, {len(turns[name])} turns"
        )
    over = {"p50": p50["on"] / p50["off"] - 1, "cpu": processor["on"] / processor["off"] - 1}
    over_seconds = (p50["on"] - p50["off"], processor["on"] - processor["off"])
    print(f"overhead: p50 {over['p50']:+.1%} ({over_seconds[0]:+.2f} ms), CPU {over['cpu']:+.1%}")
    print(f"sent: {drain.received / max(1, len(turns['on'])) / 1024:.1f} KiB a turn")
    if options.json:
        options.json.write_text(json.dumps({"p50_ms": p50, "mean_ms": mean, "cpu_ms": processor}, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
