"""A disk that takes nothing, under a running server: each of its processes may write no byte to any file.

Such a write fails as it does on a full or read-only disk, and needs no rights of its own; what nats-server and
PostgreSQL make of it was compared with an ext4 that went read-only, and with a full one, under them.
"""

import os
import shutil
import subprocess
from pathlib import Path

import components


def required() -> None:
    found = shutil.which("prlimit") is not None
    components.require("prlimit", found, "it is part of util-linux, and Linux alone has it")


def unwritable(pid: int) -> None:
    """For a process and all below it, until they end."""
    for each in (pid, *_below(pid)):
        _limit(each, "0")


def writable(pid: int) -> None:
    """Again, for those that have not ended."""
    for each in (pid, *_below(pid)):
        _limit(each, "unlimited")


def _limit(pid: int, most_bytes: str) -> None:
    """As the process's own user: another, root included, may not be allowed to."""
    try:
        owner = os.stat(f"/proc/{pid}")
    except FileNotFoundError:
        return  # it has ended
    user = {"user": owner.st_uid, "group": owner.st_gid} if owner.st_uid != os.getuid() else {}
    command = ["prlimit", f"--pid={pid}", f"--fsize={most_bytes}:"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, **user)  # type: ignore[call-overload]
    assert done.returncode == 0 or _ended(pid), done.stderr


def _ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return True


def _below(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
    found = [child for child, parent in parents.items() if parent == pid]
    return [*found, *(each for child in found for each in _below(child))]
