"""One server process: started, watched until it is ready, and ended, whatever becomes of the process that started it.

Owns three rules. A folder has one server at a time: a lock on it is inherited by the server, so that it is held until
the last of its processes has ended. A server does not outlive its starter: a shell waits at the end of a pipe and ends
the server when the pipe closes, which the system does for a killed process too (`PR_SET_PDEATHSIG` would do on Linux
alone, and watches a thread). A server does not get the terminal's Ctrl-C: its owner ends it in order.
"""

import asyncio
import contextlib
import fcntl
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path

from apex_lab.embedded.errors import DidNotStart, FolderInUse

START_SECONDS = 60.0
STOP_SECONDS = 10.0
POLL_SECONDS = 0.01
LOG_TAIL_BYTES = 2_000
_PORTS = range(20_000, 32_000)

_WATCH = """
while read -r _; do :; done
kill -"$2" "$1" 2>/dev/null
while kill -0 "$1" 2>/dev/null; do sleep 0.1; done
[ -z "$3" ] || rm -rf -- "$3"
"""


class ServerProcess:
    """A server that can be started and ended repeatedly; its port and folder stay. Bound to no event loop.

    `doomed` is a folder that goes when the starter dies; ended in order, whoever made the folder removes it.
    """

    def __init__(
        self,
        name: str,
        command: list[str],
        *,
        log: Path,
        lock: int,
        ready: Callable[[int], bool],
        user: tuple[int, int] | None = None,
        env: Mapping[str, str] | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
        doomed: Path | None = None,
    ) -> None:
        self.name, self.log = name, log
        self._command, self._lock, self._ready, self._user = command, lock, ready, user
        self._env, self._stop_signal, self._doomed = env, stop_signal, doomed
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the server, also after its end. It must have been started."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Return when the server is ready. Raises DidNotStart; the server is then ended."""
        if self.running:
            return
        offset = self.log.stat().st_size if self.log.exists() else 0
        process = self._spawn()
        deadline = time.monotonic() + START_SECONDS
        try:
            while not self._ready(process.pid):
                if process.poll() is not None:
                    raise DidNotStart(self.name, f"it ended with code {process.returncode}", self._tail(offset))
                if time.monotonic() > deadline:
                    raise DidNotStart(self.name, f"not ready after {START_SECONDS:.0f} s", self._tail(offset))
                await asyncio.sleep(POLL_SECONDS)
        except BaseException:
            await self.kill()
            raise

    async def stop(self) -> None:
        """End the server in order; after ten seconds, by force."""
        await self._end(self._stop_signal, STOP_SECONDS)

    async def kill(self) -> None:
        """End the server as `kill -9` does."""
        await self._end(signal.SIGKILL, STOP_SECONDS)

    async def _end(self, first: signal.Signals, patience: float) -> None:
        process = self._process
        if process is None:
            return
        try:
            if process.poll() is None:
                process.send_signal(first)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    await asyncio.to_thread(process.wait, patience)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            self._dismiss_watch()

    def _spawn(self) -> subprocess.Popen[bytes]:
        uid, gid = self._user or (None, None)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=self._env,
                user=uid,
                group=gid,
                extra_groups=None if gid is None else [],
                pass_fds=(self._lock,),
                start_new_session=True,
            )
        name = self._stop_signal.name.removeprefix("SIG")
        self._dismiss_watch()
        self._watch = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "watch", str(self._process.pid), name, str(self._doomed or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        return self._process

    def _dismiss_watch(self) -> None:
        if self._watch is not None:
            self._watch.kill()
            self._watch.wait()
            assert self._watch.stdin is not None
            self._watch.stdin.close()
            self._watch = None

    def _tail(self, offset: int) -> str:
        with self.log.open("rb") as log:
            log.seek(max(offset, log.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            return log.read().decode(errors="replace").strip()


@contextlib.asynccontextmanager
async def owned(directory: Path) -> AsyncGenerator[tuple[Path, int]]:
    """Make the folder and hold it for one server: its real path, and the descriptor of its lock to hand to the server.

    An earlier server that is just ending is waited for; else FolderInUse.
    """
    folder = _made(directory)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + STOP_SECONDS
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise FolderInUse(folder)
            await asyncio.sleep(POLL_SECONDS)
        yield folder, descriptor
    finally:
        os.close(descriptor)


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory.resolve()


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on now.

    Below those that systems give to outgoing connections: one of these could take the port of a server that is down
    for a moment, to be started again.
    """
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
