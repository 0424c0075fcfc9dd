"""Where the server is and who we are there, from the environment, a running `apex up`, or the defaults.

Consumes APEX_NATS_* and the file that `apex up` keeps in the clone while it runs (`.apex/up.json`, a RunningStack).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from apex_bus.settings import BusSettings, bus_settings
from apex_schemas.subjects import Identity

HOW_TO_FIND: Final = """\b
Server and identity are found in this order:
  1. APEX_NATS_URL and APEX_NATS_SEED_FILE (an nkey seed; without it you are the guest),
     with APEX_NATS_TLS_CA, _TLS_CERT and _TLS_KEY where the server wants TLS
  2. an `apex up` that runs in this clone (.apex/up.json says where)
  3. nats://127.0.0.1:4222, as the guest"""


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
    if environ.get("APEX_NATS_URL") or environ.get("APEX_NATS_SEED_FILE"):
        return Place(settings=settings, identity=identity, found=f"{settings.url} (from APEX_NATS_*)")
    if (stack := running_stack(root)) is not None:
        settings = BusSettings(url=stack.nats_url, seed_file=stack.seed_file)
        return Place(settings=settings, identity=Identity.CLIENT, found=f"{stack.nats_url} (a running apex up)")
    return Place(settings=settings, identity=identity, found=f"{settings.url} (the default)")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
