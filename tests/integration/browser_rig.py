"""The whole loop on a browser behind a real Appium server: perception, planner, its endpoint and executor as processes
on a real NATS, the scripted model beside them. The pages' own state is the judge.
"""

import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import components
from integration.appium_server import AppiumServer, chromium_capabilities
from integration.executor_rig import until
from integration.recorded_rig import RecordedRig

from apex_bus.connection import connect
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_lab import model
from apex_lab.phone import Phone, serve
from apex_lab.stack.http import Handsets
from apex_schemas.subjects import Identity
from apex_schemas.task import TaskFinished

BROWSER = "web-1"


class BrowserRig(RecordedRig):
    """One browser as a device. `open` is the test's own hand, beside the loop."""

    appium: str
    http: aiohttp.ClientSession

    async def browse(self, verb: str, body: dict[str, Any]) -> Any:
        """A command of the session that the executor holds."""
        status = await self.state(BROWSER, "ready")
        async with self.http.post(f"{self.appium}/session/{status.session}{verb}", json=body) as answer:
            value = (await answer.json())["value"]
            assert answer.status == 200, value
            return value

    async def open(self, url: str) -> None:
        await self.browse("/url", {"url": url})

    async def value(self, expression: str) -> Any:
        """What the page says of itself."""
        return await self.browse("/execute/sync", {"script": f"return {expression}", "args": []})

    async def do(self, goal: str, **fields: Any) -> tuple[str, TaskFinished]:
        task = await self.ask(goal, pool=BROWSER, **fields)
        return task, await until(lambda: self.end_of(task), within_s=120, what=f"the end of {goal!r}")


@contextlib.asynccontextmanager
async def browser_rig(nats_url: str, server: AppiumServer, folder: Path) -> AsyncGenerator[BrowserRig]:
    """Everything up, and the browser ready."""
    bus = await connect(Identity.PROVISIONER, BusSettings(url=nats_url))
    await provision(bus, (BROWSER,), store_mib=512)
    capabilities = chromium_capabilities(components.chromium(), folder / "profile")
    async with (
        model.serve() as model_url,
        serve([Phone("unused")], port=0) as url,
        Handsets(url) as phones,
        aiohttp.ClientSession() as http,
    ):
        rig = BrowserRig(bus, phones, url, folder, (BROWSER,))
        rig.appium, rig.http = server.url, http
        try:
            await rig.serve("apex_perception")
            await rig.serve("apex_planner", AI_PLANNER_ENABLED="true")
            await rig.serve(
                "apex_planner.endpoint", AI_PLANNER_PROVIDER="anthropic", AI_PLANNER_MODEL="scripted-current",
                AI_PLANNER_BASE_URL=model_url, ANTHROPIC_API_KEY="scripted-needs-no-key",
            )  # fmt: skip
            devices = [{"alias": BROWSER, "url": server.url, "capabilities": capabilities}]
            await rig.serve("apex_executor", EXECUTOR_DEVICES=json.dumps(devices))
            await until(rig.all_ready, within_s=60, what="the browser")
            yield rig
        finally:
            await rig.end()
            await bus.close()
