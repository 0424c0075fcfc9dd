"""A process of the stack: started again after a crash, given up when it cannot run, and ended with its group."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from apex_lab.stack.child import QUICK_ENDS, Child
from apex_lab.stack.errors import ServiceFailed

pytestmark = pytest.mark.timeout(60)

SLEEP = "import time; time.sleep(60)"


class Children:
    def __init__(self, folder: Path) -> None:
        self.folder, self.said, self.made = folder, list[str](), list[Child]()

    def child(self, code: str, **environment: str) -> Child:
        log = self.folder / f"{len(self.made)}.log"
        made = Child("it", [sys.executable, "-c", code], environment=environment, log=log, report=self.said.append)
        self.made.append(made)
        return made


@pytest_asyncio.fixture
async def children(tmp_path: Path) -> AsyncGenerator[Children]:
    made = Children(tmp_path)
    yield made
    for child in made.made:
        await child.kill(again=False)


async def _until(condition: Callable[[], bool]) -> None:
    deadline = asyncio.get_running_loop().time() + 30
    while not condition():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.02)


def _runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_one_that_ends_by_itself_is_started_again_and_that_is_said(children: Children) -> None:
    child = children.child("print('here')")
    await child.start()
    await _until(lambda: child.starts >= 3)
    assert child.log.read_text().count("here") >= 2
    assert "it ended with code 0; starting it again in 0.2 s" in children.said[0]
    assert "in 0.4 s" in children.said[1]


async def test_a_fault_of_its_settings_is_final_and_shows_the_log(children: Children) -> None:
    child = children.child("import sys; print('X_URL must be set'); sys.exit(2)")
    await child.start()
    with pytest.raises(ServiceFailed, match="X_URL must be set"):
        await asyncio.wait_for(child.failed, 15)
    assert child.starts == 1


async def test_one_that_ends_at_each_start_is_given_up_with_the_end_of_its_log(children: Children) -> None:
    child = children.child("import a_module_that_is_not_there")
    await child.start()
    with pytest.raises(ServiceFailed, match="a_module_that_is_not_there"):
        await asyncio.wait_for(child.failed, 30)
    assert child.starts == QUICK_ENDS


async def test_one_that_is_killed_more_often_than_that_is_not_given_up(children: Children) -> None:
    child = children.child(SLEEP)
    await child.start()
    for _ in range(QUICK_ENDS + 1):
        await child.kill()
    assert child.pid is not None
    assert not child.failed.done()
    await child.stop()
    assert child.pid is None


async def test_a_killed_one_comes_again_unless_told_otherwise(children: Children) -> None:
    child = children.child(SLEEP)
    await child.start()
    first = child.pid
    await child.kill()
    assert child.pid not in (None, first)
    await child.kill(again=False)
    assert child.pid is None
    await child.start()
    assert child.pid is not None


async def test_one_that_ignores_the_end_and_is_stopped_ends_with_all_that_it_started(
    children: Children, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("apex_lab.stack.child.STOP_SECONDS", 0.5)
    note = tmp_path / "grandchild"
    code = (
        "import pathlib, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"other = subprocess.Popen([sys.executable, '-c', {SLEEP!r}])\n"
        f"pathlib.Path({str(note)!r}).write_text(str(other.pid))\n"
        "time.sleep(60)"
    )
    child = children.child(code)
    await child.start()
    await _until(lambda: note.exists() and note.read_text() != "")
    pid, grandchild = child.pid, int(note.read_text())
    assert pid is not None
    child.signal(signal.SIGSTOP)
    await child.stop()
    await _until(lambda: not _runs(pid) and not _runs(grandchild))


async def test_it_sees_the_environment_it_is_given_and_nothing_of_ours(
    children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "secret")
    child = children.child("import os; print(sorted(k for k in os.environ if k != 'LC_CTYPE'))", ONLY="this")
    await child.run_to_end()
    assert child.log.read_text() == "['ONLY']\n"


async def test_one_shot_work_that_fails_raises_with_its_log(children: Children) -> None:
    child = children.child("import sys; sys.exit('no such table')")
    with pytest.raises(ServiceFailed, match="no such table"):
        await child.run_to_end()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends the children of a killed process")
async def test_a_child_does_not_outlive_a_killed_starter(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    starter = f"""
import asyncio, os, pathlib, sys
from apex_lab.stack.child import Child
async def main():
    child = Child("it", [sys.executable, "-c", {SLEEP!r}], environment={{}}, log=pathlib.Path(os.devnull), report=print)
    await child.start()
    pathlib.Path({str(note)!r}).write_text(str(child.pid))
    await asyncio.sleep(60)
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", starter, env=dict(os.environ))
    await _until(lambda: note.exists() and note.read_text() != "")
    process.kill()
    await process.wait()
    await _until(lambda: not _runs(int(note.read_text())))
