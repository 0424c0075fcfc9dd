"""Whoever shows no credentials: let in where only this host reaches the server, and nowhere else unasked."""

import json
import re
import sys
from pathlib import Path

import pytest

from apex_bus.connection import connect
from apex_bus.credentials import main
from apex_bus.errors import NotPermitted, Unreachable
from apex_bus.settings import BusSettings
from apex_lab.embedded.nats import nats_server
from apex_schemas.subjects import Identity

ROOT = Path(__file__).resolve().parents[2]


def configured(folder: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> str:
    """The configuration that the command writes."""
    monkeypatch.setattr(sys, "argv", ["credentials", f"--out={folder}", "--devices=sim-1", *more])
    assert main() == 0
    return (folder / "nats-server.conf").read_text()


@pytest.mark.parametrize(
    ("listen", "more", "let_in"),
    [
        ("127.0.0.1:4222", (), True),
        ("[::1]:4222", (), True),
        ("localhost:4222", (), True),
        ("127.0.0.1:4222", ("--no-guest",), False),
        ("0.0.0.0:4222", (), False),
        ("10.0.0.7:4222", (), False),
        ("[::]:4222", (), False),
        (":4222", (), False),
        ("nats.example.org:4222", (), False),
        ("0.0.0.0:4222", ("--guest",), True),
    ],
)
def test_a_guest_is_let_in_on_loopback_or_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listen: str, more: tuple[str, ...], let_in: bool
) -> None:
    text = configured(tmp_path, monkeypatch, f"--listen={listen}", *more)
    assert ("no_auth_user" in text) is let_in
    assert ('"GUEST"' in text) is let_in


async def test_a_server_set_up_for_the_network_refuses_whoever_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = configured(tmp_path / "credentials", monkeypatch, "--listen=0.0.0.0:4222")
    users = text[text.index("accounts:") :]
    async with nats_server(tmp_path / "server", config=users) as server:
        with pytest.raises((NotPermitted, Unreachable)):
            await connect(Identity.GUEST, BusSettings(url=server.url), timeout_s=2)
        seed = tmp_path / "credentials" / "client.nk"
        bus = await connect(Identity.CLIENT, BusSettings(url=server.url, seed_file=str(seed)))
        await bus.close()


def test_compose_lets_guests_in_and_publishes_the_server_on_loopback_alone() -> None:
    for name in ("docker-compose.yml", "deploy/compose.tls.yml"):
        assert "- --guest " in (ROOT / name).read_text()
    text = (ROOT / "docker-compose.yml").read_text()
    published = [port for line in re.findall(r"ports: (\[.*?\])", text) for port in json.loads(line)]
    assert len(published) >= 2
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []
