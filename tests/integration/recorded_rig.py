"""The loop on recorded screens: perception, planner, its endpoint and executor as processes on a real NATS, the
recorded phones and the scripted model beside them. Nothing but the phones' screens is made up.
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import components
from integration.executor_rig import Rig, until

from apex_bus.connection import connect
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_lab import model
from apex_lab.phone import recorded_phones, serve
from apex_lab.stack.http import Handsets
from apex_schemas.scene import Scene
from apex_schemas.steps import WorldEvent
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished

ANDROID, IOS = "rec-android", "rec-ios"


class RecordedRig(Rig):
    """The executor's rig, with real services in the place of the test."""

    async def serve(self, module: str, **environ: str) -> None:
        """Start a service as a process."""
        with (self.folder / f"{module}.log").open("wb") as log:
            self.processes.append(
                await asyncio.create_subprocess_exec(
                    sys.executable, "-m", module, env={**self._environ(module), **environ}, stdout=log, stderr=log
                )
            )

    def _environ(self, name: str) -> Mapping[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "APEX_NATS_URL": self.bus.client.connected_url.geturl(),
            "APEX_HEALTH_FILE": str(self.folder / f"{name}.health"),
        }

    async def all_ready(self) -> bool:
        return {status.device for status in await self.statuses() if status.state == "ready"} >= {*self.devices}

    async def run(self, goal: str, device: str, *, screen: int = 0, advance: bool = True) -> str:
        """Carry a task out on a phone that shows a certain recording; the id of the task, which is then over."""
        await self.phones.reset(device, {"screen": screen, "advance": advance})
        task = await self.ask(goal, pool=device)
        await until(lambda: self.end_of(task), within_s=90, what=f"the end of {goal!r}")
        return task

    async def end_of(self, task: str) -> TaskFinished | None:
        entry = await self.log.ended(task)
        return None if entry is None else entry.body

    async def story(self, task: str) -> list[tuple[Scene, WorldEvent]]:
        """What was seen and done in each turn that has both."""
        slot, turns = await self.started(task), []
        for turn in range(100):
            event = await self.log.read(slot.sibling("event", later=turn))
            scene = await self.log.read(slot.sibling("scene", later=turn))
            if event is None or scene is None:
                return turns
            turns.append((scene.body, event.body))
        raise AssertionError("no task of these tests is that long")


@contextlib.asynccontextmanager
async def recorded_rig(nats_url: str, folder: Path) -> AsyncGenerator[RecordedRig]:
    """Everything up, and both phones ready."""
    bus = await connect(Identity.PROVISIONER, BusSettings(url=nats_url))
    await provision(bus, (ANDROID, IOS), store_mib=512)
    async with (
        model.serve() as model_url,
        serve(recorded_phones(components.dumps()), port=0) as url,
        Handsets(url) as phones,
    ):
        rig = RecordedRig(bus, phones, url, folder, (ANDROID, IOS))
        try:
            await rig.serve("apex_perception")
            await rig.serve("apex_planner", AI_PLANNER_ENABLED="true")
            await rig.serve(
                "apex_planner.endpoint", AI_PLANNER_PROVIDER="anthropic", AI_PLANNER_MODEL="scripted-current",
                AI_PLANNER_BASE_URL=model_url, ANTHROPIC_API_KEY="scripted-needs-no-key",
            )  # fmt: skip
            devices = [
                {"alias": ANDROID, "url": url, "capabilities": {"appium:udid": ANDROID}},
                {"alias": IOS, "url": url, "platform": "ios", "capabilities": {"appium:udid": IOS}},
            ]
            await rig.serve("apex_executor", EXECUTOR_DEVICES=json.dumps(devices))
            await until(rig.all_ready, within_s=60, what="both recorded phones")
            yield rig
        finally:
            await rig.end()
            await bus.close()
