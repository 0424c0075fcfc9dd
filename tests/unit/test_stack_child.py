"""A process of the stack: started again after a crash, given up when it cannot even start."""

import asyncio
import sys
from pathlib import Path

import pytest

from apex_lab.stack.child import QUICK_ENDS, Child
from apex_lab.stack.errors import ServiceFailed


async def test_process_that_ends_at_each_start_is_given_up_with_the_end_of_its_log(tmp_path: Path) -> None:
    said: list[str] = []
    command = [sys.executable, "-c", "import a_module_that_is_not_there"]
    child = Child("planner", command, environment={}, log=tmp_path / "log", report=said.append)
    await child.start()
    with pytest.raises(ServiceFailed, match="a_module_that_is_not_there"):
        await asyncio.wait_for(child.failed, 30)
    assert child.starts == QUICK_ENDS
    await child.stop()


async def test_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    child = Child("planner", command, environment={}, log=tmp_path / "log", report=lambda _: None)
    await child.start()
    for _ in range(QUICK_ENDS + 1):
        await child.kill()
    assert child.pid is not None
    assert not child.failed.done()
    await child.stop()
    assert child.pid is None
