"""An act that waits inside Appium when its executor dies: it is dropped with the session, or nobody could know.

Perception's page source is what it waits behind. On a real server (its fake driver, whose source is held back until
the test opens a gate) and on the simulated phone, which must behave alike.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import components
import pytest
import pytest_asyncio
from integration.appium_server import AppiumServer, fake_app, fake_capabilities, running_appium
from integration.conftest import Nats
from integration.executor_rig import DEVICE, Rig, executor_rig, until

from apex_perception.appium import attach
from apex_perception.errors import PhoneError
from apex_schemas import envelope, subjects
from apex_schemas.actions import Tap
from apex_schemas.devices import DeviceRecord, SessionHandle
from apex_schemas.geometry import Point

AT = Point(x=270, y=600)
HELD_BACK = """
// Loaded before Appium: the fake driver's source waits for a file, and what is done is said in the log.
const fs = require("node:fs");
const Module = require("node:module");
const load = Module._load;
Module._load = function (request, parent, ...rest) {
  const loaded = load.call(this, request, parent, ...rest);
  if (request.endsWith("commands/general") && parent.filename.includes("fake-driver") && !loaded.heldBack) {
    const { getPageSource, performActions } = loaded;
    loaded.heldBack = true;
    loaded.getPageSource = async function () {
      console.log("held back: source");
      while (!fs.existsSync(process.env.APEX_TEST_GATE)) await new Promise((go) => setTimeout(go, 20));
      return getPageSource.call(this);
    };
    loaded.performActions = async function (actions) {
      console.log("done: act");
      return performActions.call(this, actions);
    };
  }
  return loaded;
};
"""


class Gate:
    """A real server whose fake driver's source is held back until `open`."""

    def __init__(self, server: AppiumServer, file: Path) -> None:
        self.server, self._file = server, file

    def open(self) -> None:
        self._file.touch()

    def logged(self, text: str) -> int:
        return self.server.log.read_text(errors="replace").count(text)


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    script, file = tmp_path / "held_back.cjs", tmp_path / "gate"
    script.write_text(HELD_BACK)
    monkeypatch.setenv("NODE_OPTIONS", f'--require "{script}"')
    monkeypatch.setenv("APEX_TEST_GATE", str(file))
    home = tmp_path / "appium"
    home.mkdir()
    with running_appium(components.appium(), home) as server:
        yield Gate(server, file)
        file.touch()


@pytest_asyncio.fixture
async def rig(nats_server: Nats, tmp_path: Path) -> AsyncGenerator[Rig]:
    async with executor_rig(nats_server.url, tmp_path) as rig:
        yield rig


async def session_of(rig: Rig) -> SessionHandle:
    stored = await rig.bus.get("DEVICES", subjects.device(DEVICE))
    assert stored is not None
    record = envelope.decode(stored.data).body
    assert isinstance(record, DeviceRecord)
    assert record.session is not None
    return record.session


async def read_source(handle: SessionHandle) -> str:
    """Perception's part: read the source; its end, whatever that is."""

    def read() -> str:
        phone = attach(handle, 60.0)
        try:
            return f"{len(phone.source())} bytes"
        except PhoneError as error:
            return type(error).__name__
        finally:
            phone.close()

    return await asyncio.to_thread(read)


async def true(check: Callable[[], bool]) -> bool:
    return check()


async def begun(rig: Rig, task: str, waits: Callable[[], Awaitable[bool]]) -> None:
    """Plan a tap and wait until its request lies in the server's queue."""
    await rig.plan(task, 0, Tap(at=AT))
    await rig.newest(task, "acting", 0)
    await until(waits, what="an act that waits inside the server")


def on_real_server(gate: Gate, tmp_path: Path) -> dict[str, str]:
    app = fake_app(components.dumps() / "001_settings-top-en.xml", tmp_path, width=1080, height=2400)
    device: dict[str, Any] = {"alias": DEVICE, "url": gate.server.url, "capabilities": fake_capabilities(app)}
    return {"DEVICES": json.dumps([device])}


@pytest.mark.appium
@pytest.mark.slow
async def test_act_queued_in_a_real_server_never_happens_once_the_device_is_taken_over(
    rig: Rig, gate: Gate, tmp_path: Path
) -> None:
    settings = on_real_server(gate, tmp_path)
    first = await rig.start(**settings)
    task = await rig.ask()
    await rig.started(task)
    look = asyncio.create_task(read_source(await session_of(rig)))
    await until(lambda: true(lambda: gate.logged("held back: source") == 1))
    await begun(rig, task, lambda: true(lambda: gate.logged("Calling AppiumDriver.performActions()") == 1))
    await rig.start(**settings)
    first.kill()
    await first.wait()
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (None, "UNKNOWN_OUTCOME")
    gate.open()
    await look
    # The new session works, and what was queued in the old one is not done in it either.
    await rig.plan(task, 1, Tap(at=AT))
    assert (await rig.event(task, 1)).success is True
    assert gate.logged("done: act") == 1


@pytest.mark.appium
@pytest.mark.slow
async def test_act_queued_in_a_real_server_happens_although_its_executor_is_dead(
    rig: Rig, gate: Gate, tmp_path: Path
) -> None:
    """What the takeover is for: without it, the act of a dead executor is still to come."""
    first = await rig.start(**on_real_server(gate, tmp_path))
    task = await rig.ask()
    await rig.started(task)
    look = asyncio.create_task(read_source(await session_of(rig)))
    await until(lambda: true(lambda: gate.logged("held back: source") == 1))
    await begun(rig, task, lambda: true(lambda: gate.logged("Calling AppiumDriver.performActions()") == 1))
    first.kill()
    await first.wait()
    assert gate.logged("done: act") == 0
    gate.open()
    await look
    await until(lambda: true(lambda: gate.logged("done: act") == 1), what="the act of the dead executor")


@pytest.mark.slow
@pytest.mark.parametrize("taken_over", [True, False])
async def test_act_queued_in_the_simulated_phone_fares_as_in_a_real_server(rig: Rig, taken_over: bool) -> None:
    first = await rig.start()
    task = await rig.ask()
    await rig.started(task)
    await rig.phones.set_faults(DEVICE, {"latency_ms": {"source": 8_000}})
    look = asyncio.create_task(read_source(await session_of(rig)))
    await until(lambda: waiting(rig, 1))
    await begun(rig, task, lambda: waiting(rig, 2))
    if taken_over:
        await rig.start()
    first.kill()
    await first.wait()
    assert await rig.acts() == []
    if not taken_over:
        await look
        await until(rig.acts, what="the act of the dead executor")
        return
    event = await rig.event(task, 0)
    assert (event.success, event.code) == (None, "UNKNOWN_OUTCOME")
    await look
    await rig.plan(task, 1, Tap(at=AT))
    assert (await rig.event(task, 1)).success is True
    assert len(await rig.acts()) == 1


async def waiting(rig: Rig, commands: int) -> bool:
    """Whether that many commands run or wait in the phone's session."""
    phones = await rig.phones._get("/lab/phones")
    return [session["commands"] for session in phones[0]["sessions"]] == [commands]
