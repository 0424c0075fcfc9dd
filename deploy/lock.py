"""Compile the lock of each member from its own dependencies, at the versions of the workspace's requirements.lock.

    .venv/bin/python deploy/lock.py

Emits `<member>/requirements.lock`, which the member's image installs and nothing else, and `deploy/image/build.lock`
with what builds the members there. Needs uv, which the workspace brings, and a package index.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
MEMBERS: Final = (
    "bus",
    "services/perception",
    "services/planner",
    "services/executor",
    "services/decision-log",
    "cli",
    "lab",
)
OWN: Final = ("apex-schemas", "apex-bus", "apex-cli")
_BUILD: Final = (
    "hatchling\nsetuptools\n"  # the members are built with the one, nkeys, which has no wheel, with the other
)


def compile_lock(source: str, *, stdin: str | None = None) -> str:
    """The text of a lock: pinned, with hashes, naming no index and no path. Raises CalledProcessError."""
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "pip", "compile", source, "-c", "requirements.lock", "--universal", "--python-version", "3.11"]
    command += ["--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate", "--quiet"]
    for name in OWN:
        command += ["--no-emit-package", name]
    return subprocess.run(command, cwd=ROOT, input=stdin, check=True, capture_output=True, text=True).stdout


def main() -> int:
    try:
        locks = {ROOT / each / "requirements.lock": compile_lock(f"{each}/pyproject.toml") for each in MEMBERS}
        locks[ROOT / "deploy" / "image" / "build.lock"] = compile_lock("-", stdin=_BUILD)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"{' '.join(error.cmd)} failed:\n{error.stderr}")
        return 1
    for path, text in locks.items():
        path.write_text(text, encoding="utf-8")
        sys.stderr.write(
            f"{path.relative_to(ROOT)}: {sum(line[0] not in ' #' for line in text.splitlines())} distributions\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
