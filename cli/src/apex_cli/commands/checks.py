"""test: everything that says whether this clone is sound, in the order of what is quickest to know."""

import os
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
_NO_TESTS: Final = 5
"""pytest's exit code where nothing was collected."""


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
    fail.
    """
    root = clone()
    if root is None:
        raise NotInstalled("the source with its tests")
    static = () if pytest_arguments else STATIC
    checks = (*static, _pytest(quick, pytest_arguments))
    if not static:
        click.echo("arguments for pytest are given: only the tests run, without lint, format, contracts and types")
    failed = [check.name for check in checks if not _passes(check, root)]
    if failed:
        raise ChecksFailed(failed)
    click.echo("all checks passed")


def _pytest(quick: bool, given: tuple[str, ...]) -> Check:
    chosen = (*(_QUICK if quick else ()), *given)
    workers = (
        () if any(word.startswith(("-n", "--pdb", "-s")) for word in given) else ("-n", "2", "--dist", "loadgroup")
    )
    return Check(name="tests", arguments=("-m", "pytest", *workers, *chosen))


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
