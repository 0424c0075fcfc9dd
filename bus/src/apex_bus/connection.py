"""One connection to NATS, by the rules that were measured (see docs/adr): it reconnects for ever, answers `get` by
direct single reads, and turns a permission error, which NATS reports beside the call, into a fatal one.
"""

import asyncio
import logging
import re
import secrets
import socket
import ssl
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import nats.errors
import nkeys  # pyright: ignore[reportMissingTypeStubs]
from nats.aio.client import Client

from apex_bus.cancellation import heeded
from apex_bus.copies import COPIED, CopyTellingClient
from apex_bus.errors import (
    LogUnavailable,
    NotPermitted,
    SettingsError,
    StoreFull,
    Transient,
    Unacknowledged,
    Unreachable,
)
from apex_bus.settings import BusSettings
from apex_schemas.errors import TooLarge
from apex_schemas.subjects import Identity

log = logging.getLogger(__name__)

FENCE_REFUSALS: Final = (10071, 10164, 10158, 10077)
"""Error codes that mean: the slot, or the log it is fenced by, is not as the writer believed. 10077 also means full."""

_STREAM_FULL: Final = 10077
FULL: Final = (10002, 10023, 10047, _STREAM_FULL)
"""Error codes of a store that takes no message; 10077 that it has none to spare for this subject is a refusal, the
others speak of the whole server."""

_FULL_SECONDS: Final = 30.0
"""For so long a store that was full counts as being so; what waits for it tries several times as often."""

MAX_PUBLISH_BYTES: Final = 7 * 1024 * 1024
_HEADER_ROOM: Final = 16 * 1024
_REFUSED_SUBJECT = re.compile(r'permissions violation for (\w+).*?"([^"]+)"', re.IGNORECASE)


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a stream. `timestamp_ns` is the server's clock. `data` is empty where the server copied the message
    to its place for somebody: no reader takes such a copy for the word of whoever may write there."""

    subject: str
    data: bytes
    sequence: int
    timestamp_ns: int
    headers: dict[str, str]


class Refused(Exception):
    """The stream did not take a message, with the server's error code."""

    def __init__(self, subject: str, code: int, description: str) -> None:
        super().__init__(f"{subject} was not stored: {description} ({code})")
        self.code, self.description = code, description


class _ApiError(msgspec.Struct):
    err_code: int = 0
    description: str = ""


class _PubAck(msgspec.Struct):
    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    error: _ApiError | None = None


_decode_ack = msgspec.json.Decoder(_PubAck).decode


class ServerClock:
    """Ages of stored messages, by the server's clock, however wrong the one of this host is."""

    def __init__(self) -> None:
        self._offset_ns = 0

    def observe(self, server_ns: int, local_ns: int) -> None:
        self._offset_ns = server_ns - local_ns

    def age_s(self, timestamp_ns: int, local_ns: int) -> float:
        return max(0.0, (local_ns + self._offset_ns - timestamp_ns) / 1e9)


class Bus:
    """A connection with an identity. `worker` names this process in records and attempts.

    `fatal` is done when the connection cannot do what its code asks of it; `apex_bus.run` ends the process then.
    """

    def __init__(self, client: Client, identity: Identity, fatal: "asyncio.Future[None]") -> None:
        self.client = client
        self.identity = identity
        self.worker = f"{identity}-{socket.gethostname()[:24]}-{secrets.token_hex(4)}"
        self.clock = ServerClock()
        self.fatal = fatal
        self._woken: list[Callable[[], None]] = []
        self._full: dict[str, tuple[float, StoreFull]] = {}

    def on_reconnect(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever the connection is there again: requests made before are lost."""
        self._woken.append(wake)

    def off_reconnect(self, wake: Callable[[], None]) -> None:
        self._woken.remove(wake)

    def reconnected(self) -> None:
        for wake in self._woken:
            wake()

    @property
    def connected(self) -> bool:
        return self.client.is_connected

    @property
    def trouble(self) -> str | None:
        """What keeps the work from going on, for who looks at this process's health: None while nothing does."""
        if not self.connected:
            return "disconnected"
        since = time.monotonic() - _FULL_SECONDS
        return next((str(full) for seen_at, full in self._full.values() if seen_at > since), None)

    async def publish(
        self, subject: str, data: bytes, *, headers: dict[str, str] | None = None, timeout_s: float = 5.0
    ) -> int:
        """Store a message and return its sequence.

        Raises Refused with the server's code, StoreFull, TooLarge, or Unacknowledged when nobody answered: the
        message may then be stored all the same.
        """
        limit = min(MAX_PUBLISH_BYTES, self.client.max_payload - _HEADER_ROOM)
        if len(data) > limit:
            raise TooLarge(f"the message for {subject}", len(data), limit)
        try:
            reply = await heeded(self.client.request(subject, data, timeout=timeout_s, headers=headers))
        except (nats.errors.Error, TimeoutError) as error:
            raise Unacknowledged(self._unacknowledged(subject, error, timeout_s)) from error
        ack = _decode_ack(reply.data)
        if ack.error is not None:
            if ack.error.err_code in FULL and "per subject" not in ack.error.description:
                whole = ack.error.err_code != _STREAM_FULL
                full = StoreFull(ack.stream or subject, ack.error.description, whole=whole)
                self._full[full.stream] = time.monotonic(), full
                raise full
            raise Refused(subject, ack.error.err_code, ack.error.description)
        self._full.pop(ack.stream, None)
        return ack.seq

    def _unacknowledged(self, subject: str, error: Exception, timeout_s: float) -> str:
        """What a lost acknowledgement may mean. A server whose disk takes nothing does not answer at all, and goes on
        so until it is started again (measured for a full and for a read-only disk)."""
        what = f"no acknowledgement for {subject}"
        if isinstance(error, nats.errors.NoRespondersError):
            return f"{what}: no stream takes it, or JetStream is off (see the server's log)"
        if self.connected and isinstance(error, TimeoutError):
            return (
                f"{what} within {timeout_s:g} s, though the server is there: its store cannot be written, or it is "
                "very busy, as its log tells (once its disk is mended, restart it)"
            )
        return f"{what} ({why(error)})"

    async def get(self, stream: str, subject: str, *, timeout_s: float = 5.0) -> Stored | None:
        """The last message on a subject; with wildcards the newest match. None when there is none.

        On a replicated stream a lagging replica may answer: None proves nothing there.
        """
        return await self._get(f"{stream}.{subject}", b"", subject, timeout_s)

    async def get_at(self, stream: str, sequence: int, *, timeout_s: float = 5.0) -> Stored | None:
        """The message at a place in a stream; None when there is none any more."""
        body = msgspec.json.encode({"seq": sequence})
        return await self._get(stream, body, f"message {sequence} of {stream}", timeout_s)

    async def _get(self, place: str, body: bytes, what: str, timeout_s: float) -> Stored | None:
        try:
            reply = await heeded(self.client.request(f"$JS.API.DIRECT.GET.{place}", body, timeout=timeout_s))
        except (nats.errors.Error, TimeoutError) as error:
            raise LogUnavailable(f"{what} could not be read ({why(error)})") from error
        headers = reply.headers or {}
        if "Nats-Sequence" not in headers:  # a stored message may have a header Status of its own
            if headers.get("Status") == "404":
                return None
            said = f"{headers.get('Status', 'no status')} {headers.get('Description', '')}"
            raise LogUnavailable(f"{what} could not be read: {said}")
        return Stored(
            subject=headers["Nats-Subject"],
            data=b"" if COPIED in headers else reply.data,
            sequence=int(headers["Nats-Sequence"]),
            timestamp_ns=_timestamp_ns(headers["Nats-Time-Stamp"]),
            headers=headers,
        )

    async def request(
        self, subject: str, data: bytes, *, timeout_s: float, headers: dict[str, str] | None = None
    ) -> bytes:
        """Ask a service. Raises Transient when nobody serves the subject, or answers in time, or when it failed."""
        try:
            reply = await heeded(self.client.request(subject, data, timeout=timeout_s, headers=headers))
        except nats.errors.NoRespondersError as error:
            raise Transient(f"nobody serves {subject}") from error
        except (nats.errors.Error, TimeoutError) as error:
            reason = f" within {timeout_s:g} s" if isinstance(error, TimeoutError) else f": {why(error)}"
            raise Transient(f"no answer on {subject}{reason}") from error
        if (failure := (reply.headers or {}).get("Nats-Service-Error")) is not None:
            raise Transient(f"{subject}: {failure}")
        return reply.data

    async def api(self, subject: str, body: bytes = b"", *, timeout_s: float = 5.0) -> dict[str, Any]:
        """Call JetStream's API and return its answer, errors included."""
        reply = await self.request(f"$JS.API.{subject}", body, timeout_s=timeout_s)
        return msgspec.json.decode(reply, type=dict[str, Any])

    async def ping(self, service: str, *, timeout_s: float = 1.0) -> bool:
        """Whether at least one instance of a NATS micro service answers."""
        try:
            await self.request(f"$SRV.PING.{service}", b"", timeout_s=timeout_s)
        except Transient:
            return False
        return True

    async def close(self) -> None:
        try:
            await self.client.close()
        except OSError as error:  # what was still to be sent to a server that is gone
            log.info("the connection to NATS ended before it was closed: %s", error)


async def flushed(client: Client) -> None:
    """Return once the server has taken all that was sent: subscriptions are in force, publications on their way.

    The client's own `flush` writes its PING ahead of what is still buffered, so that one alone proves nothing.
    """
    await client.flush()
    await client.flush()


def why(error: BaseException) -> str:
    """In words what a call over the connection ended with."""
    match error:
        case nats.errors.NoRespondersError():
            return "nobody is there to answer"
        case TimeoutError():
            return "no answer in time"
        case _:
            return str(error).removeprefix("nats: ") or type(error).__name__


def _timestamp_ns(text: str) -> int:
    """Nanoseconds since the epoch from the server's RFC 3339 time, which has up to nine decimals."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    seconds = int(datetime.fromisoformat(f"{whole}+00:00").timestamp())
    return seconds * 1_000_000_000 + int((fraction or "0").ljust(9, "0")[:9])


parse_timestamp_ns = _timestamp_ns


_ANSWERS: Final = ("_inbox", "_r_.")
"""What answers are published to, in the server's error: inboxes of this account, and those of others."""
_SHARED_INBOX: Final = (Identity.CLIENT, Identity.GUEST)


class _Watch:
    """What NATS reports beside the calls: until the connection is `up` only noted, afterwards it may be fatal."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.fatal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.up = False
        self.reason = "no answer"
        self.bus: Bus | None = None

    async def on_reconnected(self) -> None:
        if self.bus is not None:
            log.info("connected to NATS again")
            self.bus.reconnected()

    async def on_error(self, error: Exception) -> None:
        reason = why(error)
        if "authorization" not in self.reason.lower():  # what follows a refused key is only its echo
            self.reason = reason
        found = _REFUSED_SUBJECT.search(reason)
        if found and found[1].lower() == "publish" and found[2].lower().startswith(_ANSWERS):
            # We may answer whoever asked over the same connection: after a reconnect that right is gone, as is the
            # answer. It is asked for again.
            log.warning("an answer could not be sent any more: %s", reason)
        elif found:
            log.error("permission refused: %s", reason)
            self._fail(NotPermitted(self.identity, f"{found[1]} {found[2]}"))
        elif self.up:
            log.warning("connection error: %s", reason)

    async def on_closed(self) -> None:
        self._fail(LogUnavailable("the connection to NATS was closed for good"))

    def _fail(self, error: Exception) -> None:
        if self.up and not self.fatal.done():
            self.fatal.set_exception(error)
            self.fatal.exception()  # marked as seen: whoever awaits it still gets it


async def connect(identity: Identity, settings: BusSettings, *, timeout_s: float = 30.0) -> Bus:
    """Connect and stay connected.

    Raises Unreachable when no server answers within `timeout_s`, NotPermitted when it does not know the identity,
    SettingsError for an address or a file that cannot be used.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    place = _place(settings.url)
    while True:
        watch, client = _Watch(identity), CopyTellingClient()
        options = _options(identity, settings, watch)
        try:
            # The client tries its first connection for ever without a word: each try is bounded here instead.
            async with asyncio.timeout(3):
                await heeded(client.connect(**options))
        except (OSError, TimeoutError, nats.errors.Error) as error:
            reason = watch.reason if isinstance(error, TimeoutError) else why(error)
            await client.close()
            if "authorization" in (reason + watch.reason).lower():
                raise NotPermitted(identity, "the server does not accept its key") from error
            if loop.time() >= deadline:
                raise Unreachable(place, reason) from error
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            await client.close()
            raise
        else:
            watch.up = True
            watch.bus = Bus(client, identity, watch.fatal)
            return watch.bus


def _options(identity: Identity, settings: BusSettings, watch: _Watch) -> dict[str, Any]:
    options: dict[str, Any] = {
        "servers": [settings.url],
        "name": identity.value,
        "inbox_prefix": "_INBOX" if identity in _SHARED_INBOX else f"_INBOX_{identity}",
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.5,
        "ping_interval": 5,
        "max_outstanding_pings": 2,
        "drain_timeout": 5,
        "error_cb": watch.on_error,
        "closed_cb": watch.on_closed,
        "reconnected_cb": watch.on_reconnected,
        "tls": _tls(settings),
    }
    if settings.seed_file:
        options["nkeys_seed_str"] = _seed(Path(settings.seed_file))
    return options


def _place(url: str) -> str:
    """The address without user and password, for messages."""
    try:
        parts = urlsplit(url if "://" in url else f"nats://{url}")
        if parts.hostname and parts.scheme in ("nats", "tls", "ws", "wss"):
            return f"{parts.scheme}://{parts.hostname}:{parts.port or 4222}"
    except ValueError:
        pass  # said below, without the address: it may hold a password
    raise SettingsError("APEX_NATS_URL", "is no address of a NATS server, such as nats://127.0.0.1:4222")


def _seed(file: Path) -> str:
    try:
        seed = file.read_text(encoding="ascii").strip()
        nkeys.from_seed(bytearray(seed.encode()))  # pyright: ignore[reportUnknownMemberType]
    except OSError as error:
        raise SettingsError("APEX_NATS_SEED_FILE", f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, nkeys.NkeysError):
        raise SettingsError("APEX_NATS_SEED_FILE", f"{file} holds no nkey seed") from None
    return seed


def _tls(settings: BusSettings) -> ssl.SSLContext | None:
    if settings.tls_ca is None:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca)
        if settings.tls_cert is not None:
            context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except OSError as error:
        reason = error.strerror or why(error)
        raise SettingsError("APEX_NATS_TLS_CA, _CERT or _KEY", f"cannot be used: {reason}") from error
    return context
