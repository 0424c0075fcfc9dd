"""TLS on a real server: who shows a certificate of our authority comes in, with its key; whoever does not, does not."""

import ssl
import subprocess
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import components
import msgspec
import nats
import nats.errors
import pytest
import pytest_asyncio

from apex_bus.connection import connect, flushed
from apex_bus.credentials import Credentials, Server, write_credentials
from apex_bus.errors import BusError, NotPermitted, SettingsError, Unreachable
from apex_bus.provision import provision
from apex_bus.settings import BusSettings, bus_settings
from apex_lab.embedded.nats import nats_server
from apex_schemas.subjects import Identity

I = Identity  # noqa: E741


def openssl(*words: str, folder: Path) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def authority(folder: Path, name: str) -> Path:
    """An authority and a certificate by it for each of server and client, made as deploy/README.md says."""
    folder.mkdir()
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl(
        "req", "-x509", *curve, "-keyout", "ca-key.pem", "-out", "ca.pem", "-days", "30", "-subj", f"/CN={name}",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        folder=folder,
    )  # fmt: skip
    for each in ("server", "client"):
        openssl(
            "req", "-x509", *curve, "-keyout", f"{each}-key.pem", "-out", f"{each}.pem", "-days", "30",
            "-subj", f"/CN={each}", "-CA", "ca.pem", "-CAkey", "ca-key.pem",
            "-addext", "subjectAltName=DNS:localhost,DNS:nats,IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE",
            folder=folder,
        )  # fmt: skip
    return folder


@dataclass(frozen=True)
class Secured:
    url: str
    ours: Path
    theirs: Path
    credentials: Credentials

    def settings(self, identity: Identity, *, folder: Path | None = None) -> BusSettings:
        """What APEX_NATS_* says, with TLS by a folder of certificates."""
        seed = self.credentials.seeds.get(identity)
        environ = {"APEX_NATS_URL": self.url, "APEX_NATS_SEED_FILE": str(seed or "")}
        if folder is not None:
            environ |= {
                "APEX_NATS_TLS_CA": str(folder / "ca.pem"),
                "APEX_NATS_TLS_CERT": str(folder / "client.pem"),
                "APEX_NATS_TLS_KEY": str(folder / "client-key.pem"),
            }
        return bus_settings(environ)


@pytest_asyncio.fixture(params=[True, False], ids=["client certificates", "server's alone"])
async def secured(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[Secured]:
    components.nats()
    ours, theirs = authority(tmp_path / "ours", "ours"), authority(tmp_path / "theirs", "theirs")
    server = Server(
        tls_cert=ours / "server.pem",
        tls_key=ours / "server-key.pem",
        tls_ca=ours / "ca.pem" if request.param else None,
    )
    credentials = write_credentials(tmp_path / "credentials", ("sim-1",), server)
    async with nats_server(tmp_path / "nats", config=credentials.security) as running:
        yield Secured(running.url.replace("127.0.0.1", "localhost"), ours, theirs, credentials)


async def test_every_identity_works_with_a_certificate_of_ours(secured: Secured) -> None:
    bus = await connect(I.PROVISIONER, secured.settings(I.PROVISIONER, folder=secured.ours))
    await provision(bus, ("sim-1",), store_mib=512)
    await bus.close()
    for identity in (I.EXECUTOR, I.GUEST):
        bus = await connect(identity, secured.settings(identity, folder=secured.ours))
        try:
            subject = "request.any" if identity is I.GUEST else "device.sim-1"
            assert await bus.publish(subject, b"{}") > 0
        finally:
            await bus.close()


async def test_a_client_that_does_not_know_our_authority_does_not_talk_to_the_server(secured: Secured) -> None:
    settings = replace_ca(secured.settings(I.EXECUTOR, folder=secured.ours), secured.theirs / "ca.pem")
    with pytest.raises(Unreachable):
        await connect(I.EXECUTOR, settings, timeout_s=1)


async def test_a_client_that_wants_no_tls_does_not_come_in(secured: Secured) -> None:
    with pytest.raises(BusError):
        await connect(I.EXECUTOR, secured.settings(I.EXECUTOR), timeout_s=1)


@pytest.mark.parametrize("secured", [True], indirect=True)
async def test_a_client_without_a_certificate_of_ours_does_not_come_in_whatever_its_key(secured: Secured) -> None:
    own = secured.settings(I.EXECUTOR, folder=secured.ours)
    without = replace_pair(own, None, None)
    foreign = replace_pair(own, secured.theirs / "client.pem", secured.theirs / "client-key.pem")
    for settings in (without, foreign):
        with pytest.raises((Unreachable, NotPermitted)):
            await connect(I.EXECUTOR, settings, timeout_s=1)


async def test_a_certificate_does_not_stand_for_a_key(secured: Secured) -> None:
    context = ssl.create_default_context(cafile=secured.ours / "ca.pem")
    context.load_cert_chain(secured.ours / "client.pem", secured.ours / "client-key.pem")
    refusals: list[str] = []

    async def note(error: Exception) -> None:
        refusals.append(str(error))

    client = await nats.connect(secured.url, tls=context, error_cb=note)
    try:
        await client.publish("device.sim-1", b"{}")
        await flushed(client)
    finally:
        await client.close()
    assert "device.sim-1" in " ".join(refusals)


async def test_a_certificate_that_is_none_is_named_by_its_setting(secured: Secured, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    settings = replace_ca(secured.settings(I.GUEST, folder=secured.ours), tmp_path / "ca.pem")
    with pytest.raises(SettingsError, match="APEX_NATS_TLS_CA"):
        await connect(I.GUEST, settings, timeout_s=1)


def replace_ca(settings: BusSettings, ca: Path) -> BusSettings:
    return msgspec.structs.replace(settings, tls_ca=str(ca))


def replace_pair(settings: BusSettings, cert: Path | None, key: Path | None) -> BusSettings:
    return msgspec.structs.replace(settings, tls_cert=cert and str(cert), tls_key=key and str(key))
