"""`apex up`: found by the other commands while it runs, and by nobody afterwards."""

import asyncio
import os
import socket
from pathlib import Path

import components
import msgspec
import pytest
from integration.otlp_receiver import otlp_receiver

from apex_cli.app import main
from apex_cli.client import connected
from apex_cli.place import RunningStack, find, running_stack, state_file
from apex_cli.text import console
from apex_lab.demo import up
from apex_lab.demo.up import keep_up

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


async def test_a_running_stack_is_found_with_its_credentials_until_it_is_told_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    components.nats()
    components.postgres()
    running = asyncio.create_task(keep_up(tmp_path, phones=2, model=None, fresh=False, nats_port=0, out=console()))
    try:
        async with asyncio.timeout(90):
            while running_stack(tmp_path) is None:
                if running.done():
                    await running
                await asyncio.sleep(0.1)
        async with connected(find({}, tmp_path)) as client:
            assert [each.device for each in await client.devices()] == ["sim-1", "sim-2"]
    finally:
        running.cancel()
        await asyncio.wait([running])
    assert not state_file(tmp_path).exists()
    assert "request.any" in capsys.readouterr().out


def test_a_taken_port_is_one_sentence_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    components.nats()
    (tmp_path / "apex").touch()
    monkeypatch.setattr(up, "clone", lambda: tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["up", "--nats-port", str(port)]) == 5
    said = capsys.readouterr().err
    why = "another program of this machine has it; name another, or 0 for a free one"
    assert said == f"apex: NATS cannot have port {port}: {why}\n"


def test_a_second_stack_in_the_clone_is_refused_and_says_how_the_first_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(up, "clone", lambda: tmp_path)
    file = state_file(tmp_path)
    file.parent.mkdir(parents=True)
    stack = RunningStack(pid=os.getpid(), nats_url="nats://x", seed_file="/s", phone_url="http://p", logs="/l")
    file.write_bytes(msgspec.json.encode(stack))
    assert main(["up"]) == 1
    assert "a stack is already up" in capsys.readouterr().err


async def test_what_the_shell_says_of_telemetry_is_the_services_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    components.nats()
    components.postgres()
    async with otlp_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "500")
        running = asyncio.create_task(keep_up(tmp_path, phones=1, model=None, fresh=False, nats_port=0, out=console()))
        try:
            async with asyncio.timeout(90):
                while not {"apex-executor", "apex-decision-log"} <= {service for service, _, _ in receiver.points}:
                    if running.done():
                        await running
                    await asyncio.sleep(0.1)
        finally:
            running.cancel()
            await asyncio.wait([running])
