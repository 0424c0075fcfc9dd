"""A nats-server with the permissions of every identity, streams and consumers made by the provisioner."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path

import components
import nats
import pytest
from nats.aio.client import Client

from apex_bus.connection import connect, flushed
from apex_bus.credentials import Credentials, write_credentials
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_lab.embedded.nats import nats_server
from apex_schemas.subjects import Identity

DEVICES = ("sim-1", "sim-2")


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """The server's address, and the credentials that were written for it."""

    url: str
    credentials: Credentials

    def settings(self, identity: Identity) -> BusSettings:
        seed = self.credentials.seeds.get(identity)
        return BusSettings(url=self.url, seed_file=str(seed) if seed else None)

    @contextlib.asynccontextmanager
    async def client(self, identity: Identity) -> AsyncGenerator[tuple[Client, list[str]]]:
        """A bare client with an identity, and the refusals that the server sends it."""
        refusals: list[str] = []

        async def note(error: Exception) -> None:
            refusals.append(str(error))

        seed = self.credentials.seeds.get(identity)
        client = await nats.connect(
            self.url,
            nkeys_seed_str=seed.read_text().strip() if seed else None,
            inbox_prefix=f"_INBOX_{identity}",
            error_cb=note,
            allow_reconnect=False,
            connect_timeout=20,
        )
        try:
            yield client, refusals
        finally:
            await client.close()

    async def refused(self, identity: Identity, verb: str, subject: str) -> bool:
        """Whether the server refuses this identity to publish to, or subscribe to, a subject."""
        async with self.client(identity) as (client, refusals):
            if verb == "publish":
                await client.publish(subject, b"")
            else:
                await client.subscribe(subject)
            await flushed(client)
        return any(subject.lower() in refusal for refusal in refusals)  # the client lowers what it is told


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    components.nats()
    with asyncio.Runner() as runner:
        server = start_guarded(tmp_path_factory.mktemp("nats"))
        yield runner.run(server.__aenter__())
        runner.run(server.__aexit__(None, None, None))


@contextlib.asynccontextmanager
async def start_guarded(folder: Path) -> AsyncGenerator[Guarded]:
    credentials = write_credentials(folder / "credentials", DEVICES)
    async with nats_server(folder / "server", config=credentials.authorization) as server:
        guarded = Guarded(url=server.url, credentials=credentials)
        bus = await connect(Identity.PROVISIONER, guarded.settings(Identity.PROVISIONER))
        await provision(bus, DEVICES, store_mib=512)
        await bus.close()
        yield guarded
