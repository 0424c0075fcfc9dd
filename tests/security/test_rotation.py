"""Rotating a key as deploy/README.md says: the seed removed, the configuration made anew, the server told of it."""

import asyncio
import os
import signal
from pathlib import Path

import components
import pytest

from apex_bus.connection import connect
from apex_bus.credentials import write_credentials
from apex_bus.errors import BusError
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_lab.embedded.nats import nats_server
from apex_schemas.subjects import Identity

DEVICES = ("sim-1",)


async def test_the_old_key_is_refused_the_new_one_taken_and_the_others_stay_connected(tmp_path: Path) -> None:
    components.nats()
    folder = tmp_path / "credentials"
    before = write_credentials(folder, DEVICES)
    async with nats_server(tmp_path / "nats", config=before.authorization) as server:

        def settings(identity: Identity, seed: Path | None = None) -> BusSettings:
            return BusSettings(url=server.url, seed_file=str(seed or before.seeds[identity]))

        bus = await connect(Identity.PROVISIONER, settings(Identity.PROVISIONER))
        await provision(bus, DEVICES, store_mib=512)
        await bus.close()
        planner = await connect(Identity.PLANNER, settings(Identity.PLANNER))
        executor = await connect(Identity.EXECUTOR, settings(Identity.EXECUTOR))
        old = tmp_path / "old.nk"
        old.write_text(before.seeds[Identity.PLANNER].read_text())

        before.seeds[Identity.PLANNER].unlink()
        after = write_credentials(folder, DEVICES)
        kept = server.config_path.read_text().removesuffix(before.authorization)
        server.config_path.write_text(kept + after.authorization)
        os.kill(server.pid, signal.SIGHUP)

        async with asyncio.timeout(30):
            while planner.connected:
                await asyncio.sleep(0.05)
        await planner.close()
        with pytest.raises(BusError):
            await connect(Identity.PLANNER, settings(Identity.PLANNER, old), timeout_s=1)
        renewed = await connect(Identity.PLANNER, settings(Identity.PLANNER))
        assert await renewed.publish("dead.planner", b"x") > 0
        assert await executor.publish("device.sim-1", b"x") > 0
        await renewed.close()
        await executor.close()
        assert old.read_text() != after.seeds[Identity.PLANNER].read_text()
