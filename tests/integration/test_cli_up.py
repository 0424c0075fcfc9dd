"""`apex up`: found by the other commands while it runs, and by nobody afterwards."""

import asyncio
from pathlib import Path

import components
import pytest
from integration.otlp_receiver import otlp_receiver

from apex_cli.client import connected
from apex_cli.place import find, running_stack, state_file
from apex_cli.text import console
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
