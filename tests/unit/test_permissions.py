"""The rules that make allow lists from the table, looked at without a server (tests/security has one)."""

import re
from pathlib import Path

import pytest

from apex_bus.credentials import Server, write_credentials
from apex_bus.permissions import CLIENTS, permissions
from apex_schemas.consumers import Consumer, consumers
from apex_schemas.subjects import TABLE, Identity, Row

DEVICES = ("sim-1", "pixel-8")
EVERYONE = tuple(Identity)
STORED = [row for row in TABLE if row.stream and row.payload != "reserved"]


def overlap(one: str, other: str) -> bool:
    """Whether there is a subject that both patterns stand for."""
    for a, b in zip(one.split("."), other.split("."), strict=False):
        if ">" in (a, b):
            return True
        if "*" not in (a, b) and a != b:
            return False
    return one.count(".") == other.count(".")


@pytest.mark.parametrize("identity", EVERYONE)
def test_no_list_is_empty_since_the_server_takes_that_for_everything(identity: Identity) -> None:
    granted = permissions(identity, ())
    assert granted.publish
    assert granted.subscribe


@pytest.mark.parametrize("identity", EVERYONE)
def test_reads_are_of_single_messages_of_a_named_kind(identity: Identity) -> None:
    reads = [each for each in permissions(identity, DEVICES).publish if each.startswith("$JS.API.DIRECT.GET")]
    batched = [each for each in reads if each.count(".") == 4]
    whole = {Identity.OPERATOR: ["$JS.API.DIRECT.GET.DEAD"], Identity.EXECUTOR: ["$JS.API.DIRECT.GET.REQUESTS"]}
    assert batched == whole.get(identity, [])
    assert all(re.match(r"[a-z]+\.", each.split(".", 5)[5]) for each in reads if each not in batched)


@pytest.mark.parametrize("identity", [each for each in EVERYONE if each is not Identity.PROVISIONER])
def test_only_the_provisioner_makes_consumers_or_streams(identity: Identity) -> None:
    made = [each for each in permissions(identity, DEVICES).publish if re.search(r"CREATE|UPDATE|DELETE|PURGE", each)]
    assert made == []


@pytest.mark.parametrize("identity", CLIENTS)
def test_clients_pull_from_no_consumer_and_answer_nothing(identity: Identity) -> None:
    granted = permissions(identity, DEVICES)
    assert not [each for each in granted.publish if "CONSUMER" in each or "$JS.ACK" in each]
    assert granted.responses is None


def test_an_unknown_device_gets_no_consumer() -> None:
    granted = permissions(Identity.EXECUTOR, ("sim-1",)).publish
    assert "$JS.API.CONSUMER.MSG.NEXT.TASKS.DEVICE_sim-1" in granted
    assert "$JS.API.CONSUMER.MSG.NEXT.REQUESTS.POOL_sim-1" in granted
    assert not [each for each in granted if each.startswith("$JS.API.CONSUMER") and "*" in each]


@pytest.mark.parametrize("row", STORED, ids=lambda row: row.pattern)
def test_every_trigger_of_a_stored_row_has_a_consumer(row: Row) -> None:
    for identity in row.triggers:
        bring = [
            consumer
            for consumer in consumers(DEVICES)
            if consumer.identity is identity and any(overlap(filter_, row.pattern) for filter_ in consumer.filters)
        ]
        assert bring, identity


@pytest.mark.parametrize("consumer", consumers(DEVICES), ids=lambda consumer: consumer.name)
def test_no_consumer_brings_what_its_identity_is_not_triggered_by(consumer: Consumer) -> None:
    for filter_ in consumer.filters:
        brought = [row for row in TABLE if row.stream == consumer.stream and overlap(filter_, row.pattern)]
        assert brought, filter_
        assert all(consumer.identity in row.triggers for row in brought), filter_


@pytest.mark.parametrize("layout", ["flat", "volumes"])
def test_seeds_are_owner_only_kept_and_not_in_the_configuration(tmp_path: Path, layout: str) -> None:
    made = write_credentials(tmp_path / "c", DEVICES, layout=layout)  # pyright: ignore[reportArgumentType]
    before = {identity: path.read_text().strip() for identity, path in made.seeds.items()}
    again = write_credentials(tmp_path / "c", (*DEVICES, "new-1"), layout=layout)  # pyright: ignore[reportArgumentType]
    assert {identity: path.read_text().strip() for identity, path in again.seeds.items()} == before
    assert len(set(before.values())) == len(before) == len(Identity) - 1
    text = again.config_path.read_text()
    assert "DEVICE_new-1" in text
    assert not [seed for seed in before.values() if seed in text]
    files = [path for path in (tmp_path / "c").rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_each_role_of_the_database_has_a_password_of_its_own_that_is_kept(tmp_path: Path) -> None:
    roles = {"database-admin": "apex", "database-owner": "apex_owner", "database-writer": "apex_writer"}
    write_credentials(tmp_path, (), layout="volumes")
    first = {folder: (tmp_path / folder / "password").read_text() for folder in roles}
    write_credentials(tmp_path, (), layout="volumes")
    assert {folder: (tmp_path / folder / "password").read_text() for folder in roles} == first
    assert len(set(first.values())) == 3
    for folder, role in roles.items():
        assert (tmp_path / folder / "pgpass").read_text() == f"*:*:*:{role}:{first[folder]}\n"
        assert len(first[folder]) >= 32


def test_tls_is_asked_of_clients_when_an_authority_is_named(tmp_path: Path) -> None:
    tls = Server(tls_cert=Path("/tls/cert.pem"), tls_key=Path("/tls/key.pem"), tls_ca=Path("/tls/ca.pem"), guest=False)
    text = write_credentials(tmp_path, (), tls).config_path.read_text()
    assert '"verify": true' in text
    assert "no_auth_user" not in text
