"""Where the database is: `DECISION_LOG_*`, read once at start. The URL may hold a password and is never echoed."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from apex_bus.errors import SettingsError
from apex_bus.settings import load

PREFIX = "DECISION_LOG_"
URL = f"{PREFIX}DATABASE_URL"


class DecisionLogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`database_url_file` names a file that holds the URL, for passwords in mounted secrets."""

    database_url: str | None = None
    database_url_file: str | None = None


def database_url(environ: Mapping[str, str]) -> str:
    """The URL of the database. Raises SettingsError, which names the variable and not its value.

    Without a password in it, libpq's PGPASSFILE and ~/.pgpass are looked into.
    """
    settings = load(DecisionLogSettings, environ, prefix=PREFIX)
    url = settings.database_url
    if settings.database_url_file is not None:
        if url is not None:
            raise SettingsError(URL, f"is set beside {URL}_FILE; set one of them")
        url = secret_of(f"{URL}_FILE", settings.database_url_file)
    if url is None:
        raise SettingsError(URL, "must be set, e.g. postgresql://apex_writer@127.0.0.1:5432/apex")
    try:
        fits = urlsplit(url).scheme in ("postgresql", "postgres")
    except ValueError:
        fits = False
    if not fits:
        raise SettingsError(URL, "must be a URL that starts with postgresql://")
    return url


def secret_of(variable: str, path: str) -> str:
    """What a file holds, without the white space around it. Raises SettingsError."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(variable, f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(variable, f"{path} is no text in UTF-8") from None
    if not text:
        raise SettingsError(variable, f"{path} is empty")
    return text
