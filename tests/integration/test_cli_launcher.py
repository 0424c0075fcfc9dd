"""The launcher `./apex` and its installer: where they find Python, when they install, and what they say if they cannot.

The launcher runs against a small clone whose installer and interpreter are stand-ins that note how they are called;
one slow test installs this clone for real.
"""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "cat", "cksum", "dirname", "readlink", "touch", "mkdir", "chmod")

INSTALLER = """\
import pathlib, sys
root = pathlib.Path(__file__).resolve().parents[1]
with (root / "installs").open("a") as log:
    log.write(sys.argv[1] + "\\n")
if (root / "refuse").exists():
    sys.exit(5)
interpreter = root / ".venv" / "bin" / "python"
interpreter.parent.mkdir(parents=True, exist_ok=True)
interpreter.write_text('#!/bin/sh\\necho "ran: $*"\\nexit 7\\n')
interpreter.chmod(0o755)
(root / ".venv" / f"apex-{sys.argv[1]}").write_text(sys.argv[2])
"""


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone in a path with a space, as far as the launcher looks at it."""
    root = tmp_path / "my clone"
    for folder in ("cli", "schemas", "services/planner"):
        (root / folder).mkdir(parents=True)
        (root / folder / "pyproject.toml").write_text(folder)
    shutil.copy(REPOSITORY / "apex", root / "apex")
    (root / "requirements.lock").write_text("a==1")
    (root / "cli" / "install.py").write_text(INSTALLER)
    return root


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with the few programs that the launcher may use, and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def _run(
    launcher: Path, *words: str, path: Path | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environ: Mapping[str, str] = (
        {"PATH": str(path)} if path else {"PATH": os.environ["PATH"], "APEX_PYTHON": sys.executable}
    )
    return subprocess.run([str(launcher), *words], env=environ, cwd=cwd, capture_output=True, text=True, check=False)


def _installs(root: Path) -> list[str]:
    log = root / "installs"
    return log.read_text().split() if log.exists() else []


def test_the_first_run_installs_and_the_second_does_not(clone: Path) -> None:
    for _ in range(2):
        ran = _run(clone / "apex", "tasks", "--limit", "3")
        assert (ran.stdout, ran.returncode) == ("ran: -m apex_cli tasks --limit 3\n", 7)
    assert _installs(clone) == ["runtime"]


def test_it_works_from_another_folder_and_through_a_link(clone: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(Path("my clone") / "apex")
    assert "ran: -m apex_cli show" in _run(link, "show", cwd=Path("/")).stdout
    assert (clone / ".venv").is_dir()


def test_test_asks_for_everything_once(clone: Path) -> None:
    _run(clone / "apex", "tasks")
    _run(clone / "apex", "test", "--quick")
    _run(clone / "apex", "test")
    assert _installs(clone) == ["runtime", "all"]


def test_a_moved_clone_is_installed_anew(clone: Path, tmp_path: Path) -> None:
    _run(clone / "apex", "tasks")
    moved = clone.rename(tmp_path / "elsewhere")
    assert _run(moved / "apex", "tasks").returncode == 7
    assert _installs(moved) == ["runtime", "runtime"]


@pytest.mark.parametrize("file", ["requirements.lock", "cli/pyproject.toml", "services/planner/pyproject.toml"])
def test_a_changed_lock_or_member_is_installed_anew(clone: Path, file: str) -> None:
    _run(clone / "apex", "tasks")
    (clone / file).write_text("b==2")
    _run(clone / "apex", "tasks")
    assert _installs(clone) == ["runtime", "runtime"]


def test_an_interrupted_install_is_made_good(clone: Path) -> None:
    _run(clone / "apex", "tasks")
    (clone / ".venv" / "apex-installing").touch()
    _run(clone / "apex", "tasks")
    assert _installs(clone) == ["runtime", "runtime"]


def test_a_failed_install_ends_with_its_code_and_runs_nothing(clone: Path) -> None:
    (clone / "refuse").touch()
    ran = _run(clone / "apex", "tasks")
    assert (ran.returncode, ran.stdout) == (5, "")


def test_without_python_it_says_what_to_install(clone: Path, tools: Path) -> None:
    ran = _run(clone / "apex", "demo", path=tools)
    assert ran.returncode == 6
    assert "no Python 3.11 or newer was found; install one" in ran.stderr


def test_too_old_a_python_is_named(clone: Path, tools: Path) -> None:
    _program(tools / "python3", "echo 3.9")
    ran = _run(clone / "apex", "demo", path=tools)
    assert ran.returncode == 6
    assert "only python3 (3.9)" in ran.stderr


def test_a_python_without_venv_names_the_package_to_install(clone: Path, tools: Path) -> None:
    _program(tools / "python3.12", "case $2 in *ensurepip*) exit 1 ;; *) echo 3.12 ;; esac")
    ran = _run(clone / "apex", "demo", path=tools)
    assert ran.returncode == 6
    assert "apt-get install python3.12-venv" in ran.stderr


def test_a_python_that_cannot_start_is_passed_over(clone: Path, tools: Path) -> None:
    _program(tools / "python3.13", "echo 'not set up' >&2; exit 127")
    (tools / "python3").symlink_to(sys.executable)
    assert _run(clone / "apex", "demo", path=tools).returncode == 7


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_fresh_clone_installs_runs_and_is_repaired_while_two_start_at_once(tmp_path: Path) -> None:
    clone = tmp_path / "fresh clone"
    ignored = shutil.ignore_patterns(".git", ".venv", ".apex", "node_modules", "tests", "__pycache__", ".*_cache")
    shutil.copytree(REPOSITORY, clone, ignore=ignored)
    environ = {**os.environ, "APEX_PYTHON": sys.executable}
    both = [
        subprocess.Popen(
            [clone / "apex", "--version"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum("installing up to" in errors for _, errors in said) == 1
    again = subprocess.run([clone / "apex", "--version"], env=environ, capture_output=True, text=True, check=True)
    assert again.stderr == ""
    assert again.stdout.startswith("apex, version")
    assert {each.name for each in clone.iterdir()} - {each.name for each in REPOSITORY.iterdir()} <= {".venv", ".apex"}
