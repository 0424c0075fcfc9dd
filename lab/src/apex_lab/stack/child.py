"""One process of the stack: started, started again when it ends by itself, and ended with all that it started.

Owns the process's log (appended to) and its process group. A child does not see the terminal's Ctrl-C and does not
outlive the stack's process, however that ends (Linux: PR_SET_PDEATHSIG; elsewhere only an orderly end is covered).
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from apex_lab.stack.errors import ServiceFailed

STOP_SECONDS: Final = 8.0
SETTLED_SECONDS: Final = 30.0
"""A process that ran this long is started again without delay."""
QUICK_SECONDS: Final = 3.0
QUICK_ENDS: Final = 4
"""A process that ends by itself so soon, and so often in a row, has a fault that no new start cures."""
FIRST_BACKOFF_S: Final = 0.2
LONGEST_BACKOFF_S: Final = 10.0
SETUP_FAULT: Final = 2
"""The exit code of a service that finds its own settings wrong: starting it again would not help."""

_PR_SET_PDEATHSIG: Final = 1


class Child:
    """A supervised process. `failed` is done with a ServiceFailed when starting it again is of no use."""

    def __init__(
        self, name: str, command: list[str], *, environment: Mapping[str, str], log: Path, report: Callable[[str], None]
    ) -> None:
        self.name, self.log = name, log
        self._command, self._environment, self._report = command, dict(environment), report
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def start(self) -> None:
        """Start it and keep it running. Does nothing while it runs."""
        if self._watch is not None and not self._watch.done():
            return
        await self._spawn()
        self._watch = asyncio.create_task(self._keep_running(), name=f"keep {self.name} running")

    async def stop(self) -> None:
        """End it in order, after eight seconds by force, and leave it ended."""
        await self._unwatch()
        process = self._process
        if process is None:
            return
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        self.signal(signal.SIGKILL)
        await process.wait()

    async def kill(self, *, again: bool = True) -> None:
        """As `kill -9`. With `again` it is started anew at once, as after a crash."""
        await self._unwatch()
        self.signal(signal.SIGKILL)
        if self._process is not None:
            await self._process.wait()
        if again:
            await self.start()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and all that it started; nothing when they are gone."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def run_to_end(self) -> None:
        """For one-shot work: start, wait for the end. Raises ServiceFailed unless it ended well."""
        await self._spawn()
        assert self._process is not None
        try:
            code = await self._process.wait()
        finally:
            self.signal(signal.SIGKILL)
        if code:
            raise ServiceFailed(self.name, f"ended with code {code}", self.log)

    async def _spawn(self) -> None:
        starter = os.getpid()
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                preexec_fn=(lambda: _end_with(starter)) if sys.platform == "linux" else None,
            )
        self.starts += 1

    async def _keep_running(self) -> None:
        backoff = FIRST_BACKOFF_S
        loop = asyncio.get_running_loop()
        quick_ends = 0
        while True:
            assert self._process is not None
            began = loop.time()
            code = await self._process.wait()
            ran = loop.time() - began
            if code == SETUP_FAULT and ran < SETTLED_SECONDS:
                self.failed.set_exception(ServiceFailed(self.name, "cannot run with its settings", self.log))
                self.failed.exception()  # marked as seen: whoever awaits it still gets it
                return
            quick_ends = quick_ends + 1 if ran < QUICK_SECONDS and code > 0 else 0
            if quick_ends == QUICK_ENDS:
                self.failed.set_exception(ServiceFailed(self.name, f"ended {QUICK_ENDS} times at its start", self.log))
                self.failed.exception()
                return
            backoff = FIRST_BACKOFF_S if ran > SETTLED_SECONDS else backoff
            self._report(f"{self.name} ended with code {code}; starting it again in {backoff:g} s (log: {self.log})")
            await asyncio.sleep(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF_S)
            await self._spawn()

    async def _unwatch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
            self._watch = None


def _end_with(starter: int) -> None:
    """In the child, before it becomes its program: ask the kernel to end it when the starter ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != starter:
        os._exit(1)  # it ended before the kernel was asked
