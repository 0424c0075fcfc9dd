"""Whether NATS is ready for a device, asked of a server with permissions: without ending the connection that asks."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NamedTuple

import components
import pytest_asyncio

from apex_bus.connection import connect
from apex_bus.credentials import Credentials, write_credentials
from apex_bus.provision import device_aliases, provision
from apex_bus.settings import BusSettings
from apex_executor.provisioned import missing
from apex_executor.settings import DeviceConfig
from apex_lab.embedded.nats import nats_server
from apex_schemas.subjects import Identity

LISTED = '[{"alias": "sim-1", "url": "http://a", "pools": ["blue"]}, {"alias": "sim-2", "url": "http://a"}]'


class Guarded(NamedTuple):
    url: str
    credentials: Credentials

    def settings(self, identity: Identity) -> BusSettings:
        return BusSettings(url=self.url, seed_file=str(self.credentials.seeds[identity]))


@pytest_asyncio.fixture
async def guarded(tmp_path: Path) -> AsyncGenerator[Guarded]:
    """Rights for both devices and the label of one; consumers for the first alone."""
    components.nats()
    credentials = write_credentials(tmp_path / "credentials", device_aliases(LISTED))
    async with nats_server(tmp_path / "nats", config=credentials.authorization) as server:
        guarded = Guarded(server.url, credentials)
        bus = await connect(Identity.PROVISIONER, guarded.settings(Identity.PROVISIONER))
        await provision(bus, ("sim-1", "blue"), store_mib=512)
        await bus.close()
        yield guarded


async def told(guarded: Guarded, alias: str, *pools: str) -> str | None:
    config = DeviceConfig(alias=alias, url="http://a", pools=pools)
    return await missing(guarded.settings(Identity.EXECUTOR), config)


async def test_each_device_is_told_what_it_lacks_and_what_to_do(guarded: Guarded) -> None:
    assert device_aliases(LISTED) == ("sim-1", "sim-2", "blue")
    assert await told(guarded, "sim-1", "blue") is None
    absent = await told(guarded, "sim-2") or ""
    assert absent.startswith("NATS has no consumer POOL_sim-2: name it in APEX_DEVICES")
    for alias, pools in (("sim-9", ()), ("sim-1", ("red",))):
        refused = await told(guarded, alias, *pools) or ""
        assert refused.startswith("NATS does not let the executor use POOL_")
        assert "apex_bus.credentials" in refused
