"""What breaks in these tests: a server with every identity's permissions, that a test may kill; clusters of three."""

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import components
import pytest_asyncio

from apex_bus.connection import Bus, connect
from apex_bus.credentials import Credentials, write_credentials
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_lab.embedded.nats import NatsServer, nats_server
from apex_schemas.subjects import Identity

DEVICES = ("sim-1", "sim-2")


@dataclass(frozen=True, kw_only=True)
class Secured:
    """A provisioned server of the test's own, with permissions, and connections as anybody."""

    server: NatsServer
    credentials: Credentials

    @contextlib.asynccontextmanager
    async def bus(self, identity: Identity) -> AsyncGenerator[Bus]:
        settings = BusSettings(url=self.server.url, seed_file=str(self.credentials.seeds[identity]))
        bus = await connect(identity, settings)
        try:
            yield bus
        finally:
            await bus.close()


@pytest_asyncio.fixture
async def secured(tmp_path: Path) -> AsyncGenerator[Secured]:
    components.nats()
    credentials = write_credentials(tmp_path / "credentials", DEVICES)
    async with nats_server(tmp_path / "nats", config=credentials.authorization) as server:
        secured = Secured(server=server, credentials=credentials)
        async with secured.bus(Identity.PROVISIONER) as bus:
            await provision(bus, DEVICES, store_mib=512)
        yield secured
