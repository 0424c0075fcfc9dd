"""NATS and PostgreSQL in containers of testcontainers, with the interface of `apex_lab.embedded`'s servers.

Consumes a Docker engine; owns the containers, which go with the block that made them. The host's port is chosen
here, so that it is the same after a restart. Testcontainers' own reaper is left out: it needs an image of its own.
"""

import asyncio
import contextlib
import secrets
import socket
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from apex_lab.embedded.nats import configuration
from apex_lab.embedded.process import free_port

NATS_IMAGE = "nats:2.15-alpine"
POSTGRES_IMAGE = "postgres:17"
READY_SECONDS = 60

testcontainers_config.ryuk_disabled = True


@dataclass(frozen=True, kw_only=True)
class ContainerServer:
    """A server in a container. `url` is that of NATS, or the superuser's DSN."""

    url: str
    port: int
    container: DockerContainer
    answers: Callable[[], bool]
    main_pid: str = "1"

    @property
    def dsn(self) -> str:
        return self.url

    async def start(self) -> None:
        await asyncio.to_thread(self.container.get_wrapped_container().start)
        await self.ready()

    async def stop(self) -> None:
        """In order, and at once: PostgreSQL would wait for its clients after the image's own signal."""
        await asyncio.to_thread(self.container.exec, ["sh", "-c", f"kill -INT {self.main_pid}"])
        await self._ended()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def kill(self) -> None:
        await asyncio.to_thread(self.container.get_wrapped_container().kill)
        await self._ended()

    async def _ended(self) -> None:
        await asyncio.to_thread(self.container.get_wrapped_container().wait, timeout=READY_SECONDS)

    async def ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not await asyncio.to_thread(self.answers):
            if time.monotonic() > deadline:
                out, err = self.container.get_logs()
                raise AssertionError(f"the container was not ready in time:\n{(out + err).decode()[-2000:]}")
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def nats_container(config: str | None = None) -> AsyncGenerator[ContainerServer]:
    port = free_port()
    text = configuration(host="0.0.0.0", port=4222, name="apex", store="/tmp/store", more=config or "")
    container = DockerContainer(NATS_IMAGE).with_env("CONFIG", text).with_bind_ports(4222, port)
    container.with_kwargs(
        entrypoint=["sh", "-c", 'printf %s "$CONFIG" >/tmp/nats.conf; exec nats-server -c /tmp/nats.conf']
    )
    server = ContainerServer(
        url=f"nats://127.0.0.1:{port}", port=port, container=container, answers=lambda: _greets(port)
    )
    async with _running(server):
        yield server


@contextlib.asynccontextmanager
async def postgres_container() -> AsyncGenerator[ContainerServer]:
    port, password = free_port(), secrets.token_hex(8)
    container = DockerContainer(POSTGRES_IMAGE).with_bind_ports(5432, port)
    container.with_envs(POSTGRES_USER="apex", POSTGRES_PASSWORD=password, POSTGRES_DB="apex")
    # By TCP: while the image sets the database up, its server listens on a Unix socket alone.
    server = ContainerServer(
        url=f"postgresql://apex:{password}@127.0.0.1:{port}/apex",
        port=port,
        container=container,
        answers=lambda: container.exec(["pg_isready", "-q", "-h", "127.0.0.1"]).exit_code == 0,
        main_pid='"$(head -n 1 "$PGDATA/postmaster.pid")"',
    )
    async with _running(server):
        yield server


@contextlib.asynccontextmanager
async def _running(server: ContainerServer) -> AsyncGenerator[None]:
    try:
        await asyncio.to_thread(server.container.start)
        await server.ready()
        yield
    finally:
        await asyncio.to_thread(server.container.stop)


def _greets(port: int) -> bool:
    """Whether NATS itself answers, and not just Docker's proxy."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            return connection.recv(5) == b"INFO "
    except OSError:
        return False
