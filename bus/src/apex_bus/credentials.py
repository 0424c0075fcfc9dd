"""Who may connect: an nkey for each identity and the configuration of the NATS server that knows them.

`python -m apex_bus.credentials --out DIR` makes what is missing and keeps what is there, so that it can run before
every start. Seeds are owner-only files; the server's configuration holds public keys alone. Two layouts:

    flat      DIR/<identity>.nk, DIR/nats-server.conf, DIR/guest.pub
    volumes   DIR/<identity>/seed, DIR/nats/{nats-server.conf,guest.pub}, DIR/database-{admin,owner,writer}/
              {password,pgpass}: a folder for each volume of the compose file, so that a container is handed its own
              secrets and no others

Consumes the subjects table by way of `apex_bus.permissions`, and APEX_DEVICES, else EXECUTOR_DEVICES, when `--devices`
is not given.
"""

import argparse
import ipaddress
import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import nkeys  # pyright: ignore[reportMissingTypeStubs]

from apex_bus.errors import BusError, SettingsError
from apex_bus.permissions import CLIENTS, Permissions, Shared, permissions, shared
from apex_bus.provision import ProvisionSettings, device_aliases, named_devices
from apex_bus.settings import load
from apex_schemas.subjects import Identity

Layout = Literal["flat", "volumes"]

DATABASE_ROLES: Final = {"database-admin": "apex", "database-owner": "apex_owner", "database-writer": "apex_writer"}
"""Folder → role: who makes the roles, who owns the tables and migrates, who reads and writes rows."""

INSIDE: Final = "APEX"
"""The account of the services and the streams."""

MAX_PAYLOAD: Final = 8 * 2**20
_STORE_HEADROOM: Final = 2**30
_KEPT: Final = "; what was made before is left as it is"
_HEADER: Final = "# Written by apex_bus.credentials from the subjects table, anew at every start: do not edit.\n"


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Where the files are. `authorization` is the part of the configuration that says who may do what; `security` is
    that and TLS."""

    config_path: Path
    seeds: dict[Identity, Path]
    authorization: str
    security: str


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """How the server listens and where it stores. `monitor` is the address of its health page, None for none.

    `guest` lets whoever shows no credentials do what a client may: for a server that only this host can reach.
    `store_mib` is the room of all streams together, as provisioning has it; the server may keep a little more.
    """

    listen: str = "127.0.0.1:4222"
    monitor: str | None = None
    store: Path | None = None
    guest: bool = True
    store_mib: int = ProvisionSettings().store_mib
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_ca: Path | None = None


def config_path(directory: Path, layout: Layout) -> Path:
    """Where the server's configuration stands."""
    return directory / ("nats-server.conf" if layout == "flat" else "nats/nats-server.conf")


def write_credentials(
    directory: Path, devices: tuple[str, ...], server: Server | None = None, *, layout: Layout = "flat"
) -> Credentials:
    """Make the seeds that are missing and write the configuration. Raises OSError where it may not write."""
    server = server or Server()
    _folder(directory)
    seeds = {each: _seed_path(directory, each, layout) for each in Identity if each is not Identity.GUEST}
    keys = {identity: _public_key(path) for identity, path in seeds.items()}
    configuration = config_path(directory, layout)
    if server.guest:
        keys[Identity.GUEST] = _guest_key(configuration.with_name("guest.pub"))
    users = authorization(keys, devices)
    store = server.store or directory / "jetstream"
    _write(configuration, _HEADER + _entries({**_server_config(server, store), **users}))
    if layout == "volumes":
        for name, role in DATABASE_ROLES.items():
            _database_password(directory / name, role)
    security = _entries({**_tls(server), **users})
    return Credentials(config_path=configuration, seeds=seeds, authorization=_entries(users), security=security)


def authorization(keys: Mapping[Identity, str], devices: tuple[str, ...]) -> dict[str, Any]:
    """The accounts of the server, their users and allow lists: the services in one, that has the streams, and each
    outside identity in its own. `keys` are public; without the guest's all have to show one."""
    users = {
        identity: {"nkey": key, "permissions": _allow(permissions(identity, devices))} for identity, key in keys.items()
    }
    outside = [identity for identity in CLIENTS if identity in keys]
    accounts: dict[str, Any] = {
        INSIDE: {
            "jetstream": "enabled",
            "users": [user for identity, user in users.items() if identity not in outside],
            "exports": _exports(outside),
        }
    }
    for identity in outside:
        imports = [{each.kind: {"account": INSIDE, "subject": each.subject}} for each in shared(identity)]
        accounts[account(identity)] = {"users": [users[identity]], "imports": imports}
    config: dict[str, Any] = {"accounts": accounts}
    if Identity.GUEST in keys:
        config["no_auth_user"] = keys[Identity.GUEST]
    return config


def account(identity: Identity) -> str:
    """The name of the server's account in which an identity lives."""
    return str(identity).upper() if identity in CLIENTS else INSIDE


def _exports(outside: list[Identity]) -> list[dict[str, Any]]:
    """What outside accounts may take, each named: an account that is not named cannot import it."""
    takers: dict[Shared, list[str]] = {}
    for identity in outside:
        for each in shared(identity):
            takers.setdefault(each, []).append(account(identity))
    return [
        {each.kind: each.subject, "accounts": names, **({"response": "stream"} if each.many else {})}
        for each, names in takers.items()
    ]


def _allow(granted: Permissions) -> dict[str, Any]:
    allowed: dict[str, Any] = {
        "publish": {"allow": list(granted.publish)},
        "subscribe": {"allow": list(granted.subscribe)},
    }
    if granted.responses is not None:
        allowed["allow_responses"] = {"max": granted.responses.most, "expires": f"{granted.responses.within_s}s"}
    return allowed


def _server_config(server: Server, store: Path) -> dict[str, Any]:
    config: dict[str, Any] = {
        "listen": server.listen,
        "max_payload": MAX_PAYLOAD,
        "feature_flags": {"js_ack_fc_v2": False},
        "jetstream": {
            "store_dir": str(store),
            "max_file": server.store_mib * 2**20 + _STORE_HEADROOM,
            "sync_interval": "always",
        },
    }
    if server.monitor is not None:
        config["http"] = server.monitor
    return {**config, **_tls(server)}


def _tls(server: Server) -> dict[str, Any]:
    """With an authority, clients have to show a certificate by it, beside their keys."""
    if server.tls_cert is None or server.tls_key is None:
        return {}
    tls: dict[str, Any] = {"cert_file": str(server.tls_cert), "key_file": str(server.tls_key), "min_version": "1.3"}
    if server.tls_ca is not None:
        tls |= {"ca_file": str(server.tls_ca), "verify": True}
    return {"tls": tls}


def _entries(config: Mapping[str, Any]) -> str:
    """As the server reads it: JSON, without the braces around the whole, so that parts can be joined."""
    return "".join(f"{name}: {json.dumps(value, indent=2, ensure_ascii=False)}\n" for name, value in config.items())


def _seed_path(directory: Path, identity: Identity, layout: Layout) -> Path:
    return directory / f"{identity}.nk" if layout == "flat" else directory / identity / "seed"


def _public_key(path: Path) -> str:
    """The public key of a seed, which is made when there is none."""
    if not path.exists():
        _write(path, _new_seed() + "\n")
    return _public(path.read_text(encoding="ascii").strip())


def _guest_key(path: Path) -> str:
    """A public key whose seed nobody has: the guest is let in for having none. It stays, since the server reloads no
    configuration with another one."""
    if not path.exists():
        _write(path, _public(_new_seed()) + "\n")
    return path.read_text(encoding="ascii").strip()


def _new_seed() -> str:
    seed: bytes = nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER)  # pyright: ignore[reportUnknownMemberType]
    return seed.decode("ascii")


def _public(seed: str) -> str:
    pair: Any = nkeys.from_seed(seed.encode("ascii"))  # pyright: ignore[reportUnknownMemberType]
    return str(pair.public_key, "ascii")


def _database_password(directory: Path, role: str) -> None:
    """For Postgres, which reads `password`, and for its clients, whose library reads `pgpass`."""
    password = directory / "password"
    if not password.exists():
        _write(password, secrets.token_urlsafe(32))
    _write(directory / "pgpass", f"*:*:*:{role}:{password.read_text(encoding='ascii')}\n")


def _folder(path: Path) -> None:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def _write(path: Path, text: str) -> None:
    """Owner-only from its first byte on, and whole or not at all: a crash in between leaves no half seed."""
    _folder(path.parent)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="apex_bus.credentials", description="Make identities and server configuration"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--devices", help="aliases, separated by commas")
    parser.add_argument("--or-keep", action="store_true", help="a list that cannot be read changes nothing made before")
    parser.add_argument("--layout", choices=("flat", "volumes"), default="flat")
    parser.add_argument("--listen", default="127.0.0.1:4222", metavar="HOST:PORT")
    parser.add_argument("--monitor", metavar="HOST:PORT", help="where the server answers /healthz")
    parser.add_argument("--store", type=Path, metavar="DIR", help="where the server keeps its streams")
    parser.add_argument(
        "--guest",
        action=argparse.BooleanOptionalAction,
        help="let in whoever shows no credentials; by default where --listen is loopback",
    )
    for name in ("cert", "key", "ca"):
        parser.add_argument(f"--tls-{name}", type=Path, metavar="FILE")
    return parser


def _is_loopback(listen: str) -> bool:
    host = listen.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def main() -> int:
    arguments = _arguments().parse_args()
    try:
        store_mib = load(ProvisionSettings, os.environ, prefix="APEX_").store_mib
    except SettingsError as error:
        sys.stderr.write(f"credentials: {error}\n")
        return 2
    server = Server(
        store_mib=store_mib,
        listen=arguments.listen,
        monitor=arguments.monitor,
        store=arguments.store,
        guest=_is_loopback(arguments.listen) if arguments.guest is None else arguments.guest,
        tls_cert=arguments.tls_cert,
        tls_key=arguments.tls_key,
        tls_ca=arguments.tls_ca,
    )
    text, variable = (arguments.devices, "--devices") if arguments.devices is not None else named_devices(os.environ)
    try:
        devices = device_aliases(text, variable)
        made = write_credentials(arguments.out, devices, server, layout=arguments.layout)
    except SettingsError as error:
        kept = arguments.or_keep and config_path(arguments.out, arguments.layout).exists()
        sys.stderr.write(f"credentials: {error}{_KEPT if kept else ''}\n")
        return 0 if kept else 2
    except (BusError, OSError) as error:
        sys.stderr.write(f"credentials: {error}\n")
        return 2
    sys.stderr.write(f"credentials: {len(made.seeds)} identities, {len(devices)} devices, {made.config_path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
