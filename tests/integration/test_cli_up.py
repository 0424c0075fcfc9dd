"""`apex up`: found by the other commands while it runs, and by nobody afterwards."""

import asyncio
from pathlib import Path

import components
import pytest

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
