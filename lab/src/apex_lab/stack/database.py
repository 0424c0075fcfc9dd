"""The database as the lab host has it: one role that makes the roles, one that owns the tables, one that writes rows.

Owns three password files in the stack's folder, made anew at each start. Nobody but the role's own process is told of
one, and none stands in an environment: libpq's PGPASSFILE names it.
"""

import os
import secrets
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

import msgspec

Role = Literal["admin", "owner", "writer"]

_NAMES: Final[dict[Role, str]] = {"admin": "apex", "owner": "apex_owner", "writer": "apex_writer"}


class Database(msgspec.Struct, frozen=True, kw_only=True):
    """`place` is `host:port/name`; `folder` holds `<role>.password` and `<role>.pgpass`."""

    place: str
    folder: Path

    def url(self, role: Role) -> str:
        """Without a password."""
        return f"postgresql://{_NAMES[role]}@{self.place}"

    def environment(self, role: Role) -> dict[str, str]:
        """What a process of the decision-log needs to reach the database as this role."""
        return {"DECISION_LOG_DATABASE_URL": self.url(role), "PGPASSFILE": str(self.folder / f"{role}.pgpass")}

    def passwords(self) -> dict[str, str]:
        """What makes `migrate roles` set the passwords of the other two."""
        return {
            f"DECISION_LOG_{role.upper()}_PASSWORD_FILE": str(self.folder / f"{role}.password")
            for role in ("owner", "writer")
        }


def database(dsn: str, folder: Path) -> Database:
    """Write the files for a server whose superuser's URL, with its password, is `dsn`."""
    parts = urlsplit(dsn)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for role, name in _NAMES.items():
        password = unquote(parts.password or "") if role == "admin" else secrets.token_urlsafe(24)
        _write(folder / f"{role}.password", password)
        _write(folder / f"{role}.pgpass", f"*:*:*:{name}:{password}\n")
    return Database(place=f"{parts.hostname}:{parts.port}{parts.path}", folder=folder)


def _write(file: Path, text: str) -> None:
    """For its owner alone from the first byte on: libpq reads no other."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as written:
        written.write(text)
