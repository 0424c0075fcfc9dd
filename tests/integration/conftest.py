"""Real NATS and PostgreSQL servers for the tests of this folder.

In containers where a Docker engine answers, else from wheels; `APEX_TEST_SERVERS=embedded` (or `containers`) decides
it. The same tests run on both.
"""

import contextlib
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import asyncpg
import components
import pytest
import pytest_asyncio
from integration.containers import nats_container, postgres_container

from apex_lab.embedded.nats import nats_server as embedded_nats
from apex_lab.embedded.postgres import postgres_server as embedded_postgres


class Server(Protocol):
    """What the tests do to a server. `restart` and `kill` + `start` keep its port and its data."""

    @property
    def port(self) -> int: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def restart(self) -> None: ...
    async def kill(self) -> None: ...


class Nats(Server, Protocol):
    @property
    def url(self) -> str: ...


class PostgresServer(Server, Protocol):
    @property
    def dsn(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Postgres:
    """An empty database of a test's own (`dsn`), on a server that the session's tests share."""

    dsn: str
    server: PostgresServer


RunNats = Callable[..., Awaitable[Nats]]


@pytest.fixture(scope="session")
def in_containers() -> bool:
    """Whether the servers run in containers; checks that what runs them is here."""
    wanted = os.environ.get("APEX_TEST_SERVERS", "")
    assert wanted in ("", "embedded", "containers"), f"APEX_TEST_SERVERS={wanted}: say embedded or containers"
    if wanted == "containers" or (not wanted and components.find_docker() is not None):
        components.docker()
        return True
    components.nats()
    components.postgres()
    return False


@pytest_asyncio.fixture
async def run_nats(in_containers: bool, tmp_path: Path) -> AsyncGenerator[RunNats]:
    """Start a server: `await run_nats(config="authorization { … }")`. It ends with the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def run(config: str | None = None) -> Nats:
            if in_containers:
                return await stack.enter_async_context(nats_container(config))
            folder = tmp_path / f"nats-{secrets.token_hex(3)}"
            return await stack.enter_async_context(embedded_nats(folder, config=config))

        yield run


@pytest_asyncio.fixture
async def nats_server(run_nats: RunNats) -> Nats:
    """A server of the test's own, with JetStream and without permissions: `.url`."""
    return await run_nats()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres_server(
    in_containers: bool, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[PostgresServer]:
    async with contextlib.AsyncExitStack() as stack:
        if in_containers:
            yield await stack.enter_async_context(postgres_container())
        else:
            yield await stack.enter_async_context(embedded_postgres(tmp_path_factory.mktemp("postgres")))


@pytest_asyncio.fixture
async def postgres(postgres_server: PostgresServer) -> AsyncGenerator[Postgres]:
    """An empty database of the test's own: `.dsn`; its server can be restarted by `.server`."""
    await postgres_server.start()  # an earlier test may have left it down
    name = f"test_{secrets.token_hex(6)}"
    await _execute(postgres_server.dsn, f"create database {name}")
    base, _, _ = postgres_server.dsn.rpartition("/")
    yield Postgres(dsn=f"{base}/{name}", server=postgres_server)
    await postgres_server.start()
    await _execute(postgres_server.dsn, f"drop database {name} with (force)")


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
