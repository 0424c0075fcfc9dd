"""`apex demo` as a stranger runs it: as expected, twice, and ending whatever it started, however it ends itself."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import components
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.xdist_group("demo")]

SECRET = "sk-that-nobody-may-see"
PATIENCE_S = 120


@pytest.fixture(scope="module", autouse=True)
def servers() -> None:
    components.nats()
    components.postgres()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "with a space" / "demo"


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a demo in the folder; one that still runs at the end of the test is ended."""
    started: list[subprocess.Popen[str]] = []

    def run(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "apex_cli", "demo", "--directory", str(folder), *words]
        environ = {**os.environ, "ANTHROPIC_API_KEY": SECRET, "AI_PLANNER_MODEL": "some-model"}
        process = subprocess.Popen(
            command, env=environ, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


def _left_running(folder: Path) -> list[str]:
    """Processes that have the demo's folder in their command line or environment."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if int(process.name) != os.getpid() and str(folder).encode() in told:
            found.append(f"{process.name}: {told[:200]!r}")
    return found


def _until(condition: Callable[[], bool], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def _wait_for_line(process: subprocess.Popen[str], part: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if part in line:
            return
    pytest.fail(f"the demo ended without saying {part!r}")


def test_it_is_as_expected_shows_what_was_decided_and_leaves_nothing_twice_in_a_row(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    for _ in range(2):
        process = start()
        printed, _errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, printed
        for part in (
            "The model is scripted",
            "Ignored, so that a key spends nothing unasked: AI_PLANNER_MODEL, ANTHROPIC_API_KEY",
            "succeeded on sim-1",
            "Lab-5G",
            "Contacts holds Zoë Ångström",
            "failed on sim-1",
            "no setting and no contact has changed",
            "read back from Postgres",
            "All as expected",
        ):
            assert part in printed
        assert SECRET not in printed
        assert _left_running(folder) == []
    secrets = [each for each in folder.rglob("*") if each.is_file() and SECRET.encode() in each.read_bytes()]
    assert secrets == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_told_to_end_in_the_middle_it_ends_130_and_everything_with_it(
    number: signal.Signals, folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start()
    _wait_for_line(process, "turn 1")
    process.send_signal(number)
    printed, _errors = process.communicate(timeout=30)
    assert process.returncode == 130, printed
    assert "interrupted" in printed
    assert "Traceback" not in printed
    assert _left_running(folder) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the services of a killed demo")
def test_killed_in_the_middle_everything_ends_with_it(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start()
    _wait_for_line(process, "turn 1")
    process.kill()
    process.wait()
    _until(lambda: not _left_running(folder), "something outlived the killed demo")


def test_a_second_one_in_the_same_folder_is_refused_and_the_first_goes_on(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    first = start()
    _wait_for_line(first, "starting the services")
    second = start()
    said, _errors = second.communicate(timeout=30)
    assert second.returncode == 1
    assert "another demo or stack works on" in said
    assert "Traceback" not in said
    printed, _errors = first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 0, printed


def test_a_real_provider_without_its_key_is_refused_before_anything_starts(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start("--provider", "openai")
    said, _errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 5, said
    assert "OPENAI_API_KEY is not set" in said
    assert not folder.exists()
