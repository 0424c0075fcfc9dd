"""What stands twice in the compose files, and what a new version must bring with it, read without a Docker engine."""

import hashlib
import json
import re
from pathlib import Path

from apex_bus.credentials import authorization
from apex_schemas.subjects import Identity

ROOT = Path(__file__).resolve().parents[2]
LAB_HOST = (ROOT / "docker-compose.yml").read_text("utf-8")


def options(text: str) -> list[str]:
    """What the service `credentials` is started with, in a compose file whose command has a line for each word."""
    command = text.partition("\n  credentials:\n")[2].partition("command:\n")[2]
    found = re.match(r"(?: {6}- .*\n)+", command)
    assert found is not None
    return found[0].split("      - ")[1:]


def test_credentials_with_tls_are_made_as_without_it_but_for_the_certificates() -> None:
    with_tls = options((ROOT / "deploy/compose.tls.yml").read_text("utf-8"))
    assert [option for option in with_tls if not option.startswith("--tls-")] == options(LAB_HOST)
    assert len(with_tls) == len(options(LAB_HOST)) + 3


def test_a_version_with_other_permissions_makes_a_running_server_read_them() -> None:
    users = authorization({identity: identity.value for identity in Identity}, ("device",))
    digest = hashlib.sha256(json.dumps(users, sort_keys=True).encode()).hexdigest()[:12]
    server = LAB_HOST.partition("\n  nats:\n")[2].partition("\n\n")[0]
    assert f'APEX_PERMISSIONS: "{digest}" ' in server, f"its permissions are others now: write {digest}"
