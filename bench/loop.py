"""What a turn costs: the whole system on simulated phones and a scripted model, beside a bare ring of the same run.

    python bench/loop.py [--turns 60] [--phones 1,10,50] [--json FILE]

A turn is the time between two events of a task as a client sees them: observe, plan (by cloud-proxy, endpoint and
the provider's SDK), act, with both simulators' own work in it.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from apex_lab.stack.stack import Stack
from apex_schemas.ids import new_task_id
from apex_schemas.steps import WorldEvent
from apex_schemas.task import TaskFinished, TaskRequest

sys.path.insert(0, str(Path(__file__).parent))
from processes import cpu_seconds, rss_mib
from ring import ring_seconds

A_TASK = 12
SERVICES = ("perception", "planner", "planner-decision", "executor", "decision-log")


@dataclass
class Watched:
    """One task as a client saw it: when each event came."""

    events: list[float] = field(default_factory=list)
    finished: TaskFinished | None = None


@dataclass
class Run:
    turns: list[float]
    done: int
    elapsed: float
    cpu_ms: dict[str, float]
    rss: dict[str, float]
    stages_ms: dict[str, float]

    @property
    def per_second(self) -> float:
        return self.done / self.elapsed


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def back_and_forth(turns: int) -> str:
    """A goal of `turns` acts, each of which changes the screen: an act without effect would add perception's patience
    with screens that are slow to change, 0.3 s, which is a rule and no cost."""
    there_and_back = ['tap "Network & internet"', 'tap "Navigate up"'] * (turns // 2)
    return " then ".join(["open Settings", *there_and_back[: turns - 1]])


async def watch(stack: Stack, device: str, turns: int) -> list[Watched]:
    """Tasks of a dozen turns, one after another: the loop detector ends whoever goes back and forth for longer."""
    return [await watch_one(stack, device, min(A_TASK, turns - done)) for done in range(0, turns, A_TASK)]


async def watch_one(stack: Stack, device: str, turns: int) -> Watched:
    task = new_task_id()
    request = TaskRequest(goal=back_and_forth(turns), task=task, max_turns=turns + 10)
    seen = Watched()
    async with stack.client() as client, client.following(task) as happenings:
        await client.submit(request, device)
        async for happening in happenings:
            match happening.body:
                case WorldEvent():
                    seen.events.append(time.perf_counter())
                case TaskFinished() as finished:
                    seen.finished = finished
                case _:
                    pass
    return seen


async def stages(stack: Stack) -> dict[str, float]:
    """Median milliseconds of each stage of the last task, as its timeline tells them."""
    async with stack.client() as client:
        deadline = time.monotonic() + 20
        while True:
            timeline = await client.timeline(None)
            if timeline.summary.status != "running" or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
    steps = [step for step in timeline.steps if step.done]
    calls = [call.latency_ms for step in timeline.steps for call in step.calls]
    columns = {
        "observe": [step.observe_ms for step in steps],
        "plan": [step.plan_ms for step in steps],
        "provider": calls,
        "act": [step.act_ms for step in steps],
    }
    medians: dict[str, float] = {}
    for name, column in columns.items():
        known = [value for value in column if value is not None]
        if known:
            medians[name] = statistics.median(known)
    return medians


async def run(phones: int, turns: int, screenshot: str, directory: Path) -> Run:
    shown = {"AI_PLANNER_SCREENSHOT": screenshot}
    environment = {"perception": shown, "planner": shown}
    async with Stack(directory, phones=phones, environment=environment, fresh=True) as stack:
        pids = {name: stack.child(name).pid for name in SERVICES}
        await watch(stack, "sim-1", 4)  # warm
        before = {name: cpu_seconds(pid) for name, pid in pids.items() if pid}
        began = time.perf_counter()
        each = await asyncio.gather(*(watch(stack, f"sim-{n}", turns) for n in range(1, phones + 1)))
        elapsed = time.perf_counter() - began
        watched = [seen for tasks in each for seen in tasks]
        for seen in watched:
            assert seen.finished is not None
            assert seen.finished.status == "succeeded", seen.finished
        intervals = [b - a for seen in watched for a, b in zip(seen.events, seen.events[1:], strict=False)]
        done = sum(len(seen.events) for seen in watched)
        after = {name: cpu_seconds(pid) for name, pid in pids.items() if pid}
        return Run(
            turns=intervals,
            done=done,
            elapsed=elapsed,
            cpu_ms={name: (after[name] - before[name]) * 1e3 / done for name in after},
            rss={name: rss_mib(pid) for name, pid in pids.items() if pid},
            stages_ms=await stages(stack),
        )


def show(name: str, result: Run, ring_p50: float) -> dict[str, object]:
    p50, p99 = percentile(result.turns, 0.5) * 1e3, percentile(result.turns, 0.99) * 1e3
    print(
        f"{name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms a turn, {p50 / ring_p50:.1f} x ring, "
        f"{result.per_second:.1f} turns/s"
    )
    print("  median ms by stage:  " + "  ".join(f"{k} {v:.0f}" for k, v in result.stages_ms.items()))
    print("  CPU ms a turn:       " + "  ".join(f"{k} {v:.1f}" for k, v in result.cpu_ms.items()))
    print("  RSS MiB:             " + "  ".join(f"{k} {v:.0f}" for k, v in result.rss.items()))
    return {
        "p50_ms": p50,
        "p99_ms": p99,
        "ratio_to_ring": p50 / ring_p50,
        "turns_per_s": result.per_second,
        "stages_ms": result.stages_ms,
        "cpu_ms": result.cpu_ms,
        "rss_mib": result.rss,
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--phones", default="1,10,50")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="apex-bench-") as folder:
        directory = Path(folder)
        ring = [second * 1e3 for second in await ring_seconds(directory / "ring", 500)]
        ring_p50 = percentile(ring, 0.5)
        print(f"ring: p50 {ring_p50:.2f} ms, p99 {percentile(ring, 0.99):.2f} ms for three hops")
        results["ring_ms"] = {"p50": ring_p50, "p99": percentile(ring, 0.99)}
        for screenshot in ("never", "always"):
            name = f"1 phone, screenshots {screenshot}"
            results[name] = show(name, await run(1, options.turns, screenshot, directory / "stack"), ring_p50)
        for phones in (int(count) for count in options.phones.split(",")):
            if phones > 1:
                name = f"{phones} phones"
                results[name] = show(
                    name, await run(phones, max(A_TASK, options.turns // 3), "never", directory / "stack"), ring_p50
                )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
