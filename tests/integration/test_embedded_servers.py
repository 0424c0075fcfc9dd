"""The embedded servers start, keep their data, and leave nothing running, however their starter ends."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
import components
import nats
import pytest

from apex_lab.embedded import postgres as embedded_postgres
from apex_lab.embedded import process
from apex_lab.embedded.errors import DidNotStart, FolderInUse, PortUnusable
from apex_lab.embedded.nats import nats_server
from apex_lab.embedded.postgres import postgres_server

STARTER = """
import asyncio, signal, sys
from pathlib import Path
from apex_lab.embedded.nats import nats_server
from apex_lab.embedded.postgres import postgres_server

async def main(folder):
    async with nats_server(folder / "nats") as nats, postgres_server(folder / "postgres") as postgres:
        print(nats.pid, postgres.pid, postgres.data, sep="\\n", flush=True)
        await asyncio.sleep(600)

signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal, also where the tests run in a background
asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture(autouse=True)
def _wheels() -> None:
    components.nats()
    components.postgres()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a space and a letter beyond ASCII, and longer than the path of a Unix socket may be."""
    return tmp_path / ("a folder wïth a long name " * 4).strip()


async def test_nats_keeps_its_messages_and_its_url_when_it_is_killed_and_started_again(folder: Path) -> None:
    async with nats_server(folder) as server:
        await _publish(server.url, "before")
        await server.kill()
        await server.start()
        await _publish(server.url, "after")
    async with nats_server(folder) as server:
        assert await _stored(server.url) == 2


async def test_nats_takes_what_is_added_to_its_configuration(folder: Path) -> None:
    async with nats_server(folder, config='authorization { user: a, password: "b" }') as server:
        client = await nats.connect(server.url, user="a", password="b", allow_reconnect=False, connect_timeout=20)
        assert client.max_payload == 8 * 1024 * 1024
        await client.close()
        with pytest.raises(nats.errors.Error):
            await nats.connect(server.url, allow_reconnect=False, connect_timeout=20)


async def test_a_wrong_configuration_is_an_error_with_the_server_s_own_words(folder: Path) -> None:
    with pytest.raises(DidNotStart, match="no_such_setting"):
        async with nats_server(folder, config="no_such_setting: 1"):
            pass


async def test_a_port_that_is_taken_is_an_error_and_the_stranger_on_it_is_not_taken_for_the_server(
    folder: Path,
) -> None:
    async with nats_server(folder) as other:
        with pytest.raises(PortUnusable, match=f"cannot have port {other.port}: another program"):
            async with nats_server(folder / "second", port=other.port):
                pass


async def test_a_second_server_on_the_folder_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STOP_SECONDS", 0.2)
    async with nats_server(folder):
        with pytest.raises(FolderInUse, match="another server"):
            async with nats_server(folder):
                pass


async def test_postgres_keeps_its_rows_and_its_dsn_when_it_is_killed_restarted_and_started_again(
    folder: Path,
) -> None:
    async with postgres_server(folder) as server:
        dsn = server.dsn
        await _run(dsn, "create table t (n int)")
        await _run(dsn, "insert into t values (1)")
        await server.kill()
        assert not _listens(server.port)
        await server.start()
        await _run(dsn, "insert into t values (2)")
        await server.restart()
        assert await _run(dsn, "select sum(n) from t") == 3
        kept = embedded_postgres_keeps(server.data, folder)
    assert not _listens(server.port)
    async with postgres_server(folder, port=server.port) as server:
        if kept:
            assert server.dsn == dsn
            assert await _run(dsn, "select sum(n) from t") == 3
    assert kept or not server.data.exists()


def embedded_postgres_keeps(data: Path, folder: Path) -> bool:
    """Under root the cluster may have to lie in a temporary folder."""
    return data.is_relative_to(folder.resolve())


async def test_postgres_asks_for_its_password_which_only_its_user_can_read(folder: Path) -> None:
    async with postgres_server(folder) as server:
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(server.dsn, password="guessed")
        assert (server.data.parent / "password").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="what differs for root")
async def test_root_runs_postgres_as_another_user_from_a_temporary_folder_where_it_cannot_reach_the_own_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_postgres, "_open_to_all", lambda _: False)  # the wheel is to be copied as well
    async with postgres_server(folder) as server:
        assert _user_of(server.pid) != 0
        assert await _run(server.dsn, "select 1") == 1
        away = server.data.parent
        assert not away.is_relative_to(folder)
    assert not away.exists()


@pytest.mark.parametrize("killed_by", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_starter_is_ended(folder: Path, killed_by: signal.Signals) -> None:
    starter = subprocess.Popen([sys.executable, "-c", STARTER, folder], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    try:
        pids = [int(starter.stdout.readline()) for _ in range(2)]
        data = Path(starter.stdout.readline().strip())
        starter.send_signal(killed_by)
        starter.wait(timeout=60)  # each server has ten seconds to end in order, and a busy disk
    finally:
        starter.kill()
    starter.stdout.close()
    _until(lambda: not any(_is_running(pid) for pid in pids))
    if not embedded_postgres_keeps(data, folder):
        _until(lambda: not data.parent.exists())


async def test_both_can_be_started_again_at_once_after_the_starter_was_killed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STOP_SECONDS", 60)  # how long whoever comes waits for the folder
    starter = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STARTER, folder, stdout=asyncio.subprocess.PIPE
    )
    assert starter.stdout is not None
    for _ in range(3):
        await starter.stdout.readline()
    starter.kill()
    await starter.wait()
    began = time.monotonic()
    async with nats_server(folder / "nats"), postgres_server(folder / "postgres") as server:
        assert await _run(server.dsn, "select 1") == 1
    assert time.monotonic() - began < process.STOP_SECONDS


async def _publish(url: str, text: str) -> None:
    client = await nats.connect(url)
    stream = client.jetstream()
    await stream.add_stream(name="S", subjects=["s"])
    await stream.publish("s", text.encode())
    await client.close()


async def _stored(url: str) -> int:
    client = await nats.connect(url)
    info = await client.jetstream().stream_info("S")
    await client.close()
    return info.state.messages


async def _run(dsn: str, statement: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _user_of(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def _is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def _until(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass in time"
        time.sleep(0.02)
