"""Makes or mends .venv beside this clone's `apex`: pinned packages by hash, then the members, editable.

Run by the launcher with any Python from 3.11 on, so it uses the standard library alone. Arguments: the level
(`runtime` or `all`) and the stamp that the launcher compares the next time. Several at once wait for each
other; what an interrupted one left behind is made anew. pip's whole output goes to .apex/install.log.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STATE = ROOT / ".apex"
LOG = STATE / "install.log"
UNPACKED = LOG.parent / "unpacked"
UNFINISHED = VENV / "apex-installing"
MEMBERS = (
    "schemas",
    "bus",
    "services/perception",
    "services/planner",
    "services/executor",
    "services/decision-log",
    "cli",
    "lab",
)
BUILDERS = ("hatchling", "editables", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers")
"""What turns the members' folders into installed distributions."""
LEVELS = ("runtime", "all")
"""Each includes those before it."""
NOT_INSTALLED, INTERRUPTED = 6, 130
"""Exit codes, as the command's own are."""


class InstallFailed(Exception):
    """Its text says what failed, where, and what to do."""


def main(level: str, stamp: str) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        STATE.mkdir(exist_ok=True)
        with (STATE / "install.lock").open("w") as turn:
            _wait_for_turn(turn.fileno())
            if not _is_installed(level, stamp):
                _install(level, stamp)
    except PermissionError as error:
        say(f"cannot write to {error.filename}; run as the owner of {ROOT}, or in a clone of your own")
        return NOT_INSTALLED
    except OSError as error:
        say(f"could not install into {VENV}: {error}; mend that and run this again")
        return NOT_INSTALLED
    except InstallFailed as failure:
        say(str(failure))
        return NOT_INSTALLED
    except KeyboardInterrupt:
        say("interrupted; the next run makes .venv anew")
        return INTERRUPTED
    return 0


def _install(level: str, stamp: str) -> None:
    began = time.monotonic()
    if not _is_usable(stamp):
        say(f"making .venv with Python {sys.version.split()[0]}")
        shutil.rmtree(VENV, ignore_errors=True)
        VENV.mkdir(exist_ok=True)
        UNFINISHED.touch()
        _run("make .venv", [sys.executable, "-I", "-m", "venv", str(VENV)], mode="w")
    UNFINISHED.touch()
    for name in LEVELS:
        (VENV / f"apex-{name}").unlink(missing_ok=True)
    lock = _lock_of(level)
    names = _entries(lock)
    say(f"installing up to {len(names)} packages (a minute or two the first time)")
    _pip("install the packages", ["--require-hashes", "--no-deps", "-r", str(lock)], progress=True)
    say("installing the members of this clone")
    editable = [argument for member in MEMBERS for argument in ("-e", str(ROOT / member))]
    _pip("install the members", ["--no-deps", "--no-build-isolation", *editable])
    for name in LEVELS[: LEVELS.index(level) + 1]:
        (VENV / f"apex-{name}").write_text(stamp)
    UNFINISHED.unlink()
    shutil.rmtree(UNPACKED, ignore_errors=True)
    say(f"ready after {time.monotonic() - began:.0f} s")


def _is_installed(level: str, stamp: str) -> bool:
    """Whether another one has done it while this one waited."""
    mark = VENV / f"apex-{level}"
    return not UNFINISHED.exists() and mark.is_file() and mark.read_text() == stamp and os.access(PYTHON, os.X_OK)


def _is_usable(stamp: str) -> bool:
    """Whether the .venv that is there can be added to: whole, made for this place, its Python there and new enough."""
    if UNFINISHED.exists() or not os.access(PYTHON, os.X_OK):
        return False
    place = stamp.rsplit(" ", 2)[0]
    if any(mark.read_text().rsplit(" ", 2)[0] != place for mark in VENV.glob("apex-*")):
        return False
    check = "import sys, pip; sys.exit(sys.version_info < (3, 11) or sys.prefix != sys.argv[1])"
    return subprocess.run([PYTHON, "-I", "-c", check, str(VENV)], capture_output=True, check=False).returncode == 0


def _lock_of(level: str) -> Path:
    """The workspace's lock; for `runtime` the part that the members name in locks of their own, and their build."""
    whole = ROOT / "requirements.lock"
    own = [path for member in MEMBERS if (path := ROOT / member / "requirements.lock").is_file()]
    if level == "all" or not own:
        return whole
    wanted = {*BUILDERS, *(name for path in own for name in _entries(path))}
    part = STATE / "runtime.lock"
    part.write_text("".join(text for name, text in _entries(whole).items() if name in wanted))
    return part


def _entries(lock: Path) -> dict[str, str]:
    """The pinned packages of a lock by name, each with its hashes, as text."""
    entries: dict[str, str] = {}
    name = ""
    for line in lock.read_text().splitlines(keepends=True):
        if line[0].isalnum():
            name = line.split("==")[0]
        entries[name] = entries.get(name, "") + line
    return {name: text for name, text in entries.items() if name}


def _pip(what: str, arguments: list[str], *, progress: bool = False) -> None:
    # The caller's own pip settings name its index; isolation from them would leave a closed network without one.
    command = [str(PYTHON), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    _run(what, [*command, "--no-warn-script-location", "--progress-bar", "off", *arguments], progress=progress)


def _run(what: str, command: list[str], *, mode: str = "a", progress: bool = False) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    UNPACKED.mkdir(parents=True, exist_ok=True)
    environment["TMPDIR"] = str(UNPACKED)  # pip leaves its folders behind when it is interrupted: in the clone, then
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
    )
    assert process.stdout is not None
    tail: list[str] = []
    counter = Progress() if progress else None
    try:
        with LOG.open(mode) as log:
            for line in process.stdout:
                log.write(line)
                tail = [*tail[-11:], line.rstrip()]
                if counter:
                    counter.see(line)
    except BaseException:
        process.terminate()
        raise
    finally:
        process.wait()
        if counter:
            counter.end()
    if process.returncode:
        shown = "\n".join(f"    {line}" for line in tail)
        hint = "is the package index reachable? (pip's own settings say which one)"
        raise InstallFailed(f"could not {what}; {hint}\n{shown}\n  the whole output is in {LOG}")


class Progress:
    """Tells how far pip is: one line that is written over on a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        self.tty = sys.stderr.isatty()
        self.count = 0
        self.told = time.monotonic()

    def see(self, line: str) -> None:
        if line.startswith("Collecting "):
            self.count += 1
            self._tell(f"{self.count} fetched, now {line.split()[1].split('==')[0]}")
        elif line.startswith("Installing collected packages"):
            self._tell(f"unpacking {self.count} packages", force=True)

    def end(self) -> None:
        if self.tty:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _tell(self, text: str, *, force: bool = False) -> None:
        if self.tty:
            print(f"\r\033[K  {text}", end="", file=sys.stderr, flush=True)
        elif force or time.monotonic() - self.told > 5:
            self.told = time.monotonic()
            say(f"  {text}")


def _wait_for_turn(lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("another run is installing; waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)


def say(text: str) -> None:
    print(f"apex: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
