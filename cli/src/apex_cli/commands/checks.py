"""test: everything that says whether this clone is sound, in the order of what is quickest to know."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import click
import msgspec

from apex_cli.errors import ChecksFailed, NotInstalled
from apex_cli.place import clone

_QUICK: Final = ("tests/unit", "tests/contract", "-m", "not slow")
_FAILED_TESTS: Final = 1
_NO_TESTS: Final = 5
"""pytest's exit codes where tests failed, and where nothing was collected."""
_LAST_FAILED: Final = ".pytest_cache/v/cache/lastfailed"
_SECOND_LOOKS: Final = 3
_AT_ONCE: Final = ("tests/chaos/", "tests/security/")
"""What breaks a promise once has broken it: no second look (docs/adr/0013)."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A program of the clone's own Python, as `python -m module`."""

    name: str
    arguments: tuple[str, ...]


STATIC: Final = (
    Check(name="ruff check", arguments=("-m", "ruff", "check", "--output-format", "concise", ".")),
    Check(name="ruff format", arguments=("-m", "ruff", "format", "--check", ".")),
    Check(
        name="import contracts",
        arguments=("-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-logo"),
    ),
    Check(name="pyright", arguments=("-m", "pyright")),
)


@click.command(
    short_help="Whether this clone is sound: lint, types, tests.", context_settings={"ignore_unknown_options": True}
)
@click.option("--quick", is_flag=True, help="Only what needs no server and no long run: a minute of processor time.")
@click.argument("pytest_arguments", nargs=-1, type=click.UNPROCESSED)
def test(quick: bool, pytest_arguments: tuple[str, ...]) -> None:
    """Lint, format, import contracts, types, then the tests. PYTEST_ARGUMENTS go to pytest, whose tests alone run then.

    Tests whose component (Docker, Node.js, Chromium) is missing are left out and named at the end; with CI=true they
    fail. At most three tests that failed beside others are run once more, alone; those that pass then are named.
    """
    root = clone()
    if root is None:
        raise NotInstalled("the source with its tests")
    static = () if pytest_arguments else STATIC
    checks = (*static, _pytest(quick, pytest_arguments))
    if not static:
        click.echo("arguments for pytest are given: only the tests run, without lint, format, contracts and types")
        failed = [check.name for check in checks if not _passes(check, root)]
    else:
        (root / _LAST_FAILED).unlink(missing_ok=True)
        failed = [check.name for check in checks if not _passes(check, root)]
        if failed == ["tests"] and pass_alone(root):
            failed = []
    if failed:
        raise ChecksFailed(failed)
    click.echo("all checks passed")


def _pytest(quick: bool, given: tuple[str, ...]) -> Check:
    chosen = (*(_QUICK if quick else ()), *given)
    workers = (
        () if any(word.startswith(("-n", "--pdb", "-s")) for word in given) else ("-n", "2", "--dist", "loadgroup")
    )
    return Check(name="tests", arguments=("-m", "pytest", *workers, *chosen))


def pass_alone(root: Path) -> bool:
    """Whether the few tests that failed beside others pass without them; said aloud, since each is to be mended."""
    tests = second_look(root)
    if not tests or not _passes(Check(name="once more, alone", arguments=("-m", "pytest", *tests)), root):
        return False
    click.secho(f"FLAKY, passed only when run again alone: {', '.join(tests)}", fg="yellow", bold=True)
    return True


def second_look(root: Path) -> list[str]:
    """The tests that failed in the last run, when they are to be run once more: few, and none that stands for a
    promise. In pytest's form, without the group that pytest-xdist appends."""
    try:
        recorded = msgspec.json.decode((root / _LAST_FAILED).read_bytes(), type=dict[str, bool])
    except (FileNotFoundError, msgspec.MsgspecError):
        return []
    failed = sorted({re.sub(r"@[\w-]+$", "", test) for test in recorded})
    single = all("::" in test and not test.startswith(_AT_ONCE) for test in failed)
    return failed if single and len(failed) <= _SECOND_LOOKS else []


def _passes(check: Check, root: Path) -> bool:
    click.secho(f"── {check.name}", bold=True)
    sys.stdout.flush()
    began = time.monotonic()
    # The programs of the virtual environment (pyright's Node.js) come before those of the machine.
    scripts = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": os.pathsep.join((scripts, os.environ.get("PATH", os.defpath)))}
    code = subprocess.run([sys.executable, *check.arguments], cwd=root, env=environment, check=False).returncode
    if code == _NO_TESTS and check.name == "tests":
        click.echo("no test was chosen by these arguments")
    click.echo(f"   {'ok' if code == 0 else f'failed (exit {code})'}, {time.monotonic() - began:.1f} s")
    return code == 0
