"""A real NATS, simulated phones and executors as processes; the test itself plays perception and planner."""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from apex_bus import micro
from apex_bus.connection import Bus, connect
from apex_bus.errors import Transient
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_bus.tasklog import Entry, Filled, TaskLog
from apex_lab.phone import Phone, serve
from apex_lab.stack.http import Handsets
from apex_schemas import slots, subjects
from apex_schemas.actions import Action
from apex_schemas.devices import DeviceControl, DeviceStatus
from apex_schemas.geometry import Size
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.queries import WaitingRequests
from apex_schemas.scene import Scene, Screen
from apex_schemas.slots import Kind, Slot
from apex_schemas.steps import PlannedStep, Target, WorldEvent
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished

LEASE_S = 2.0
DEVICE = "sim-1"
T = TypeVar("T")


async def until(check: Callable[[], Awaitable[T | None]], *, within_s: float = 30.0, what: str = "") -> T:
    """Poll until `check` gives something that is neither None nor empty nor False."""
    deadline = time.monotonic() + within_s
    while not (found := await check()):
        assert time.monotonic() < deadline, f"{what or check} did not come within {within_s} s"
        await asyncio.sleep(0.02)
    return found


class Rig:
    """What a test needs: the log, the phones' truth, and executors to start and kill."""

    def __init__(self, bus: Bus, phones: Handsets, phones_url: str, folder: Path, devices: tuple[str, ...]) -> None:
        self.bus, self.phones, self.phones_url, self.folder, self.devices = bus, phones, phones_url, folder, devices
        self.log = TaskLog(bus)
        self.processes: list[asyncio.subprocess.Process] = []
        self._others: tuple[Bus, asyncio.Future[Any]] | None = None

    async def start(self, *, devices: tuple[str, ...] | None = None, **settings: str) -> asyncio.subprocess.Process:
        """Start an executor for some of the devices; settings such as LEASE_SECONDS."""
        listed = [self.listed(alias) for alias in (self.devices if devices is None else devices)]
        environ = {
            "PATH": os.environ["PATH"],
            "APEX_NATS_URL": self.bus.client.connected_url.geturl(),
            "APEX_HEALTH_FILE": str(self.folder / f"executor-{len(self.processes)}.health"),
            "EXECUTOR_DEVICES": json.dumps(listed),
            "EXECUTOR_LEASE_SECONDS": str(LEASE_S),
            **{f"EXECUTOR_{name}": value for name, value in settings.items()},
        }
        log = (self.folder / f"executor-{len(self.processes)}.log").open("wb")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "apex_executor", env=environ, stderr=log, stdout=log
        )
        log.close()
        self.processes.append(process)
        return process

    def listed(self, alias: str, **fields: Any) -> dict[str, Any]:
        """A device as EXECUTOR_DEVICES names it."""
        return {"alias": alias, "url": self.phones_url, "capabilities": {"appium:udid": alias}, **fields}

    async def ask(self, goal: str = "x", *, pool: str = "any", **fields: Any) -> str:
        """Publish a request and return its task id."""
        task = fields.pop("task", None) or new_task_id()
        await self.bus.publish(subjects.request(pool), json.dumps({"goal": goal, "task": task, **fields}).encode())
        return task

    async def newest(self, task: str, kind: Kind, turn: int | None = None) -> Entry:
        """Wait for a slot of a task, on whichever device."""

        async def look() -> Entry | None:
            token = "end" if kind == "finished" else turn or 0
            stored = await self.bus.get("TASKS", f"task.*.{task}.{token}.{kind}")
            return None if stored is None else await self.log.read(slots.parse_slot(stored.subject))

        return await until(look, what=f"{kind} {turn} of {task}")

    async def started(self, task: str) -> Slot:
        return (await self.newest(task, "started", 0)).slot

    async def plan(
        self, task: str, turn: int, action: Action, target: Target | None = None, *, app: str | None = None
    ) -> Entry:
        """Play perception and planner for one turn: fill its scene and its planned slot."""
        begin = await self.started(task)
        scene = Slot(device=begin.device, task=task, turn=turn, kind="scene")
        seen = Scene(app="a", page="A > B", screen=Screen(size=Size(width=540, height=1200)))
        looked = await self.log.fill(scene, seen, attempt=new_attempt())
        assert isinstance(looked, Filled)
        told = {"purpose": "p", "expected_outcome": "e", "rationale": "r"}
        step = PlannedStep(action=action, page="A > B", target=target, app=app, **told)
        planned = scene.sibling("planned")
        decided = await self.log.fill(planned, step, attempt=new_attempt(), after=looked.sequence)
        assert isinstance(decided, Filled)
        entry = await self.log.read(planned)
        assert entry is not None
        return entry

    async def event(self, task: str, turn: int) -> WorldEvent:
        return (await self.newest(task, "event", turn)).body

    async def finished(self, task: str) -> TaskFinished:
        return (await self.newest(task, "finished")).body

    async def acts(self, udid: str = DEVICE) -> list[dict[str, Any]]:
        return await self.phones.acts(udid)

    async def sessions(self, udid: str) -> list[str]:
        """The sessions that the server has for a phone."""
        listed = await self.phones._get("/lab/phones")
        return [session["id"] for phone in listed if phone["udid"] == udid for session in phone["sessions"]]

    async def statuses(self) -> list[DeviceStatus]:
        """One executor's devices, as it tells them; none while no executor answers."""
        try:
            reply = await self.bus.request(subjects.QUERY_DEVICES, b"", timeout_s=2)
        except Transient:
            return []
        return msgspec.json.decode(reply, type=list[DeviceStatus])

    async def state(self, device: str, state: str, *, reason: str = "") -> DeviceStatus:
        """Wait until a device is in a state, for this reason."""

        async def look() -> DeviceStatus | None:
            for status in await self.statuses():
                if status.device == device and status.state == state and reason in (status.reason or ""):
                    return status
            return None

        return await until(look, what=f"{device} {state} {reason!r}", within_s=20)

    async def control(self, device: str, action: Any, **fields: str) -> DeviceStatus:
        """The operator's word to whoever drives a device."""
        word = DeviceControl(action=action, **fields)
        reply = await self.bus.request(subjects.control(device), msgspec.json.encode(word), timeout_s=20)
        return msgspec.json.decode(reply, type=DeviceStatus)

    async def queue(self) -> list[tuple[str, str]]:
        """Task and pool of what waits, in order."""
        reply = await self.bus.request(subjects.QUERY_QUEUE, b"", timeout_s=20)
        return [(each.task, each.pool) for each in msgspec.json.decode(reply, type=WaitingRequests).waiting]

    async def services(self, *, up: bool) -> None:
        """Let perception and planner answer pings, or not; on a connection of their own, as services have."""
        if self._others is not None:
            bus, answering = self._others
            await bus.close()
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            self._others = None
        if up:
            bus = await connect(Identity.PLANNER, BusSettings(url=self.bus.client.connected_url.geturl()))
            answering = asyncio.gather(micro.serve(bus, "perception"), micro.serve(bus, "planner"))
            self._others = bus, answering
            await until(lambda: self.bus.ping("planner"), what="the planner's answer")

    async def end(self) -> None:
        await self.services(up=False)
        for process in self.processes:
            if process.returncode is None:
                process.kill()
            await process.wait()


@contextlib.asynccontextmanager
async def executor_rig(
    nats_url: str, folder: Path, *devices: str, consumers: tuple[str, ...] | None = None
) -> AsyncGenerator[Rig]:
    """A bus that is provisioned for the devices, or for `consumers`, and a phone for each device. Executors are
    started by the test."""
    devices = devices or (DEVICE,)
    bus = await connect(Identity.PROVISIONER, BusSettings(url=nats_url))
    await provision(bus, consumers or devices, store_mib=512)
    async with serve([Phone(udid) for udid in devices], port=0) as url, Handsets(url) as phones:
        rig = Rig(bus, phones, url, folder, devices)
        await rig.services(up=True)
        try:
            yield rig
        finally:
            await rig.end()
            await bus.close()
