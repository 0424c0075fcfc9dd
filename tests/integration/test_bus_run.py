"""How a service's process begins, beats and ends: as processes, by their exit code and by what they say."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from integration.bus_rig import provisioned, until, until_answered
from integration.conftest import Nats, RunNats

from apex_bus.connection import Bus

SERVICE = Path(__file__).with_name("bus_service.py")
FORBIDDING = """
authorization {
  users: [ {user: lab, password: "s3cret", permissions: {publish: ["$JS.API.>"], subscribe: ["_INBOX_executor.>"]}} ]
}
"""


@contextlib.asynccontextmanager
async def process(url: str, what: str, folder: Path, **environ: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("APEX_", "OTEL_"))}
    started = await asyncio.create_subprocess_exec(
        sys.executable, SERVICE, what,
        env={**clean, "APEX_NATS_URL": url, "APEX_HEALTH_FILE": str(folder / "beat"), **environ},
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()


async def ended(
    started: asyncio.subprocess.Process, *, within_s: float = 30
) -> tuple[int | None, list[dict[str, str]]]:
    """The exit code, and the lines of the log."""
    _, said = await asyncio.wait_for(started.communicate(), within_s)
    return started.returncode, [json.loads(line) for line in said.decode().splitlines()]


async def up(bus: Bus) -> None:
    async def answers() -> bool:
        return await bus.ping("lab", timeout_s=0.3)

    await until_answered(answers, "the service answers", within_s=20)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_service_that_is_told_to_end_ends_with_zero_and_takes_its_beat_with_it(
    nats_server: Nats, tmp_path: Path, number: signal.Signals
) -> None:
    async with provisioned(nats_server.url) as bus, process(nats_server.url, "endless", tmp_path) as started:
        await up(bus)
        await until((tmp_path / "beat").exists, "it beats")
        started.send_signal(number)
        code, lines = await ended(started, within_s=20)
        assert code == 0
        assert lines[-1]["message"] == "executor has stopped"
        assert not [name for name in os.listdir(tmp_path) if name.startswith("beat")]


async def test_service_that_is_told_to_end_while_no_server_answers_ends_at_once(tmp_path: Path) -> None:
    called = asyncio.Event()

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(mute, "127.0.0.1", 0) as server:
        url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with process(url, "endless", tmp_path) as started:
            await asyncio.wait_for(called.wait(), 20)
            started.send_signal(signal.SIGTERM)
            code, _ = await ended(started, within_s=20)
    assert code == 0


async def test_service_that_is_told_to_end_while_it_is_being_composed_ends_at_once(
    nats_server: Nats, tmp_path: Path
) -> None:
    async with process(nats_server.url, "hangs", tmp_path) as started:
        assert started.stderr is not None
        assert b"composing" in await asyncio.wait_for(started.stderr.readline(), 20)
        started.send_signal(signal.SIGTERM)
        code, _ = await ended(started, within_s=20)
    assert code == 0


async def test_service_that_is_told_to_end_while_the_server_is_away_ends_with_zero(
    nats_server: Nats, tmp_path: Path
) -> None:
    async with provisioned(nats_server.url) as bus, process(nats_server.url, "endless", tmp_path) as started:
        await up(bus)
        await nats_server.kill()
        await until(lambda: (tmp_path / "beat").read_text() == "disconnected", "it has noticed")
        started.send_signal(signal.SIGTERM)
        code, _ = await ended(started, within_s=20)
        assert code == 0


async def test_beat_says_whether_the_server_is_there_and_the_probe_believes_it(
    nats_server: Nats, tmp_path: Path
) -> None:
    async def probe() -> int:
        environ = {**os.environ, "APEX_HEALTH_FILE": str(tmp_path / "beat")}
        asked = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "apex_bus.health", env=environ, stderr=asyncio.subprocess.PIPE
        )
        await asked.communicate()
        assert asked.returncode is not None
        return asked.returncode

    async with provisioned(nats_server.url) as bus:
        assert await probe() == 1, "not started"
        async with process(nats_server.url, "endless", tmp_path):
            await up(bus)
            file = tmp_path / "beat"
            await until(lambda: file.exists() and file.read_text() == "ok", "it beats")
            assert await probe() == 0
            await nats_server.kill()
            await until(lambda: file.read_text() == "disconnected", "it says so")
            assert await probe() == 1
            await nats_server.start()
            await until(lambda: file.read_text() == "ok", "it is connected again")
            os.utime(file, (1, 1))
            assert await probe() == 1, "stale"


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"LAB_COUNT": "many"}, "LAB_COUNT"),
        ({"APEX_LOG_LEVEL": "loud"}, "APEX_LOG_LEVEL"),
        ({"APEX_NATS_URL": "nats://user:s3cret@"}, "APEX_NATS_URL"),
        ({"APEX_NATS_SEED_FILE": "missing.nk"}, "APEX_NATS_SEED_FILE"),
        ({"APEX_NATS_TLS_CA": "missing.pem"}, "APEX_NATS_TLS_CA"),
    ],
)
async def test_setting_that_is_not_allowed_ends_the_service_with_two_and_one_line_that_names_it(
    nats_server: Nats, tmp_path: Path, environ: dict[str, str], named: str
) -> None:
    async with process(nats_server.url, "endless", tmp_path, **environ) as started:
        code, lines = await ended(started)
    assert code == 2
    assert [line["level"] for line in lines] == ["critical"]
    assert named in lines[0]["message"]
    assert "s3cret" not in json.dumps(lines)
    assert "error" not in lines[0], "no traceback"


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        ("drifts", 2, "consumer MISSING exists with another configuration"),
        ("ends", 1, "ends has ended"),
        ("fails", 1, "ZeroDivisionError"),
    ],
)
async def test_loop_that_ends_or_fails_ends_the_service_and_says_why(
    nats_server: Nats, tmp_path: Path, what: str, code: int, said: str
) -> None:
    async with provisioned(nats_server.url), process(nats_server.url, what, tmp_path) as started:
        found, lines = await ended(started)
    assert found == code
    assert said in lines[-1]["message"] + lines[-1].get("error", "")
    assert "sub-exception" not in lines[-1]["message"], "the error itself, not the group that it came in"


async def test_service_without_a_right_that_its_code_needs_ends_with_two_and_names_the_subject(
    run_nats: RunNats, tmp_path: Path
) -> None:
    server = await run_nats(config=FORBIDDING)
    url = server.url.replace("nats://", "nats://lab:s3cret@")
    async with process(url, "forbidden", tmp_path) as started:
        code, lines = await ended(started)
    assert code == 2
    assert "is not permitted: publish task.not.mine.0.scene" in lines[-1]["message"]


async def test_service_whose_key_the_server_does_not_know_ends_with_two_and_shows_no_password(
    run_nats: RunNats, tmp_path: Path
) -> None:
    server = await run_nats(config=FORBIDDING)
    async with process(server.url.replace("nats://", "nats://lab:wr0ng@"), "endless", tmp_path) as started:
        code, lines = await ended(started)
    assert code == 2
    assert "does not accept its key" in lines[-1]["message"]
    assert "wr0ng" not in json.dumps(lines)
