"""What one executor carries: many simulated phones on one process, its acts a second, memory and threads.

    python bench/executor.py [--phones 50] [--acts 2000] [--json FILE]

The bench itself plays perception and planner: it fills `scene` and `planned`, and takes the time until `event`. Half of
the taps name a target, which is looked up first. Phones, NATS and bench share the machine with the executor.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from apex_bus import micro
from apex_bus.connection import Bus, connect
from apex_bus.errors import Transient
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_bus.tasklog import Filled, TaskLog
from apex_lab.embedded.nats import nats_server
from apex_lab.phone import Phone, serve
from apex_schemas import envelope, slots, subjects
from apex_schemas.actions import FinishTask, Tap
from apex_schemas.devices import DeviceStatus
from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.scene import Scene, Screen
from apex_schemas.steps import PlannedStep, Target, WorldEvent
from apex_schemas.subjects import Identity

sys.path.insert(0, str(Path(__file__).parent))
from processes import cpu_seconds, rss_mib

CLOCK = Target(
    element="e1", role="text", label="12:00", bounds=Bounds(left=24, top=120, right=516, bottom=180),
    resource_id="com.android.launcher3:id/clock",
)  # fmt: skip
"""On the home screen, and nothing happens when it is tapped."""
SCENE = Scene(app="com.android.launcher3", page="Home", screen=Screen(size=Size(width=540, height=1200)))


def threads(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads:"))


class Bench:
    def __init__(self, bus: Bus, devices: list[str]) -> None:
        self.bus, self.log, self.devices = bus, TaskLog(bus), devices
        self.waits: dict[str, asyncio.Future[WorldEvent]] = {}
        self.latencies: dict[bool, list[float]] = {True: [], False: []}
        self.verify_ms: list[int] = []
        self.failures = 0

    async def follow(self) -> None:
        async def on_event(message: object) -> None:
            subject, data = message.subject, message.data  # pyright: ignore
            waiting = self.waits.pop(subject, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(envelope.decode(data).body)

        await self.bus.client.subscribe("task.*.*.*.event", cb=on_event)  # pyright: ignore

    async def ready(self, within_s: float = 120) -> None:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            try:
                reply = await self.bus.request(subjects.QUERY_DEVICES, b"", timeout_s=2)
                states = [status.state for status in msgspec.json.decode(reply, type=list[DeviceStatus])]
                if states.count("ready") == len(self.devices):
                    return
            except Transient:
                pass
            await asyncio.sleep(0.2)
        raise SystemExit(f"not all {len(self.devices)} phones were ready within {within_s:g} s")

    async def drive(self, device: str, acts: int) -> None:
        """One task on one phone: its taps one after the other, as a planner would decide them."""
        task = new_task_id()
        request = json.dumps({"goal": "bench", "task": task, "max_turns": 200}).encode()
        await self.bus.publish(subjects.request(device), request)
        begin = slots.started(device, task)
        while await self.log.read(begin) is None:  # noqa: ASYNC110  (the log tells nobody)
            await asyncio.sleep(0.05)
        for turn in range(acts):
            verified = turn % 2 == 0
            step = PlannedStep(action=Tap(at=Point(x=270, y=150)), page="Home", target=CLOCK if verified else None)
            scene = begin.sibling("scene", later=turn)
            looked = await self.log.fill(scene, SCENE, attempt=new_attempt())
            assert isinstance(looked, Filled)
            arrival: asyncio.Future[WorldEvent] = asyncio.get_running_loop().create_future()
            self.waits[scene.sibling("event").subject] = arrival
            began = time.perf_counter()
            await self.log.fill(scene.sibling("planned"), step, attempt=new_attempt(), after=looked.sequence)
            event = await asyncio.wait_for(arrival, 60)
            self.latencies[verified].append(time.perf_counter() - began)
            self.failures += event.success is not True
            if event.timings is not None and event.timings.verify_ms is not None and verified:
                self.verify_ms.append(event.timings.verify_ms)
        end = PlannedStep(action=FinishTask(success=True, reason="done"), page="Home")
        looked = await self.log.fill(begin.sibling("scene", later=acts), SCENE, attempt=new_attempt())
        assert isinstance(looked, Filled)
        await self.log.fill(begin.sibling("planned", later=acts), end, attempt=new_attempt(), after=looked.sequence)


async def run(phones: int, acts: int, folder: Path) -> dict[str, float | int]:
    devices = [f"bench-{n}" for n in range(1, phones + 1)]
    async with nats_server(folder / "nats") as nats, serve([Phone(udid) for udid in devices], port=0) as url:
        bus = await connect(Identity.PROVISIONER, BusSettings(url=nats.url))
        await provision(bus, tuple(devices), store_mib=512)
        answering = asyncio.gather(micro.serve(bus, "perception"), micro.serve(bus, "planner"))
        listed = [{"alias": udid, "url": url, "capabilities": {"appium:udid": udid}} for udid in devices]
        environ = {
            "PATH": os.environ["PATH"],
            "APEX_NATS_URL": nats.url,
            "APEX_HEALTH_FILE": str(folder / "health"),
            "EXECUTOR_DEVICES": json.dumps(listed),
        }
        with (folder / "executor.log").open("wb") as log:
            began = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "apex_executor", env=environ, stdout=log, stderr=log
            )
        bench = Bench(bus, devices)
        try:
            await bench.follow()
            await bench.ready()
            ready_s = time.monotonic() - began
            before = {"threads": threads(process.pid), "rss": rss_mib(process.pid), "cpu": cpu_seconds(process.pid)}
            began = time.monotonic()
            await asyncio.gather(*(bench.drive(device, acts // phones) for device in devices))
            elapsed = time.monotonic() - began
            await bench.ready()
            done = acts // phones * phones
            return {
                "phones": phones,
                "acts": done,
                "failures": bench.failures,
                "all_ready_s": round(ready_s, 1),
                "acts_per_s": round(done / elapsed, 1),
                "act_p50_ms": round(statistics.median(bench.latencies[False]) * 1_000, 1),
                "act_with_target_p50_ms": round(statistics.median(bench.latencies[True]) * 1_000, 1),
                "verify_p50_ms": statistics.median(bench.verify_ms),
                "cpu_ms_per_act": round((cpu_seconds(process.pid) - before["cpu"]) / done * 1_000, 1),
                "rss_before_mib": round(before["rss"], 1),
                "rss_after_mib": round(rss_mib(process.pid), 1),
                "threads_before": int(before["threads"]),
                "threads_after": threads(process.pid),
            }
        finally:
            process.terminate()
            await process.wait()
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            await bus.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--phones", type=int, default=50)
    parser.add_argument("--acts", type=int, default=2_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(run(arguments.phones, arguments.acts, Path(folder)))
    for name, value in found.items():
        print(f"{name:24} {value}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    if found["threads_after"] > found["threads_before"] or found["failures"]:
        raise SystemExit("threads have leaked, or acts have failed")


if __name__ == "__main__":
    main()
