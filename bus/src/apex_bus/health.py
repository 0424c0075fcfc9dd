"""The liveness probe: `python -m apex_bus.health` ends 0 while the process of this container beats and can work.

A running service writes a small file every few seconds while its loop turns: that all is well, that NATS is gone, or
which of its stores is full; the probe reads it and imports nothing of NATS, so that a health check every few seconds
costs next to nothing.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

BEAT_SECONDS = 2.0
STALE_SECONDS = 12.0
_WELL = "ok"


def beat_file() -> Path:
    return Path(os.environ.get("APEX_HEALTH_FILE") or Path(tempfile.gettempdir()) / "apex-health")


def beat(file: Path, trouble: str | None) -> None:
    """Say that the process lives, and what keeps it from its work, if anything does."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")  # written beside it: a probe never reads half of it
    fresh.write_text(trouble or _WELL, encoding="utf-8")
    fresh.replace(file)


def main() -> int:
    file = beat_file()
    try:
        state, age = file.read_text(encoding="utf-8"), time.time() - file.stat().st_mtime
    except FileNotFoundError:
        sys.stderr.write("not started\n")
        return 1
    if age > STALE_SECONDS or state != _WELL:
        sys.stderr.write(f"{state}, {age:.0f} s ago\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
