"""What a process takes of this machine, as Linux tells it."""

import asyncio
import os
import time
from pathlib import Path


def resident_mib(pid: int | None) -> float:
    assert pid is not None
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


async def cpu_share(pid: int, seconds: float) -> float:
    """How much of one core it takes, over so many seconds."""

    def cpu_s() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    began, used = time.monotonic(), cpu_s()
    await asyncio.sleep(seconds)
    return (cpu_s() - used) / (time.monotonic() - began)
