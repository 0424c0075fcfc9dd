"""Where the server is and who we are there, from the environment, a running `apex up`, or the defaults.

Consumes APEX_NATS_*, the file that `apex up` keeps in the clone while it runs (`.apex/up.json`, a RunningStack), and
of the clone's `.env` the one variable by which compose moves NATS to another port: whoever sets it has another server
on the usual one, which is the last that should be asked.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from apex_bus.errors import SettingsError
from apex_bus.settings import BusSettings, bus_settings
from apex_schemas.subjects import Identity

HOW_TO_FIND: Final = """\b
Server and identity are found in this order:
  1. APEX_NATS_URL and APEX_NATS_SEED_FILE (an nkey seed; without it you are the guest),
     with APEX_NATS_TLS_CA, _TLS_CERT and _TLS_KEY where the server wants TLS
  2. an `apex up` that runs in this clone (.apex/up.json says where)
  3. nats://127.0.0.1 as the guest, at APEX_NATS_PORT of the environment or of the
     clone's .env, as docker compose reads it; else at 4222"""

PORT: Final = "APEX_NATS_PORT"
_LINE: Final = re.compile(rf"\s*(?:export\s+)?{PORT}\s*=\s*(?P<quote>[\"']?)(?P<value>.*?)(?P=quote)\s*(?:\s#.*)?")


class RunningStack(msgspec.Struct, frozen=True, kw_only=True):
    """What a running `apex up` tells: its process, its server, and the client's credentials."""

    pid: int
    nats_url: str
    seed_file: str
    phone_url: str
    logs: str


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A server, our identity there, and in words how it was found."""

    settings: BusSettings
    identity: Identity
    found: str


def clone() -> Path | None:
    """The folder of the clone that this command runs from; None for an installation without one."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "apex").is_file() else None


def state_file(root: Path) -> Path:
    return root / ".apex" / "up.json"


def running_stack(root: Path | None) -> RunningStack | None:
    """The `apex up` of this clone, if its process lives."""
    if root is None:
        return None
    try:
        stack = msgspec.json.decode(state_file(root).read_bytes(), type=RunningStack)
    except (OSError, msgspec.MsgspecError):
        return None
    return stack if _lives(stack.pid) else None


def find(environ: Mapping[str, str], root: Path | None) -> Place:
    """Raises SettingsError when a variable is not allowed."""
    settings = bus_settings(environ)
    identity = Identity.CLIENT if settings.seed_file else Identity.GUEST
    if environ.get("APEX_NATS_URL"):
        return Place(settings=settings, identity=identity, found=f"{settings.url} (from APEX_NATS_*)")
    if not settings.seed_file and (stack := running_stack(root)) is not None:
        settings = BusSettings(url=stack.nats_url, seed_file=stack.seed_file)
        return Place(settings=settings, identity=Identity.CLIENT, found=f"{stack.nats_url} (a running apex up)")
    port, whence = _port(environ, root)
    if port is not None:
        settings = msgspec.structs.replace(settings, url=f"nats://127.0.0.1:{port}")
    return Place(settings=settings, identity=identity, found=f"{settings.url} ({whence})")


def _port(environ: Mapping[str, str], root: Path | None) -> tuple[int | None, str]:
    """The port that compose publishes NATS on, and in words who says so. The environment goes first, as there."""
    if text := environ.get(PORT, "").strip():
        return _checked(text, "the environment"), f"from {PORT}"
    file = (root / ".env") if root is not None else None
    if file is not None and (text := _written(file)):
        return _checked(text, str(file)), f"from {PORT} in {file}"
    return None, "the default"


def _written(file: Path) -> str | None:
    """What `.env` sets the port to; the last line counts, as with compose."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None  # compose says what is wrong with it; nothing of it is ours
    found = [match["value"].strip() for line in lines if (match := _LINE.fullmatch(line))]
    return found[-1] if found else None


def _checked(text: str, where: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65_536):
        raise SettingsError(PORT, f"in {where} is no port: a number from 1 to 65535; or set APEX_NATS_URL")
    return int(text)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
