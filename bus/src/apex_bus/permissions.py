"""What each identity may publish and subscribe to on the NATS server, made from the subjects table.

Consumes the tables of `apex_schemas`; owns the rules that turn them into subjects of the server. Allow lists only: what
is not listed is refused. A row's writers may publish its pattern. Its triggers may pull from their consumers, by exact
name, and acknowledge; or, where the row has no stream, subscribe to it and answer. Its readers may ask for single
messages of its pattern (DIRECT.GET), never for the stream (the batched form); so may its triggers, for what was dead
and is handled again. REQUESTS alone, whose subjects hold many messages, is read by sequence, by the executor, who is
given all of it. Nobody but the provisioner makes a consumer: whoever makes one picks where its messages are delivered.

Each outside identity lives in an account of its own, that shares with the services' account what its lists say and
nothing else (`shared`). Within one account whoever publishes picks the subject of the answer, and the server itself
would write its acknowledgement there, with its own rights; over accounts an answer comes back to who asked or nowhere.

Consumer names of devices are listed one by one, as a wildcard of NATS is a whole token and `*` on TASKS would let an
executor pull from PERCEPTION: a new device needs new credentials (`apex_bus.credentials`) and a reload of the server.
"""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from apex_schemas.consumers import consumers
from apex_schemas.streams import STREAMS
from apex_schemas.subjects import TABLE, Identity

SERVICES: Final = (
    Identity.PERCEPTION,
    Identity.PLANNER,
    Identity.ENDPOINT,
    Identity.EXECUTOR,
    Identity.DECISION_LOG,
)
CLIENTS: Final = (Identity.CLIENT, Identity.OPERATOR, Identity.GUEST)

_PINGS: Final = {
    Identity.EXECUTOR: (Identity.PERCEPTION, Identity.PLANNER),
    Identity.PLANNER: (Identity.ENDPOINT,),
}
"""Whose life a service asks after: a device needs perception and planner, a planner its endpoint."""

_VERBS: Final = ("PING", "INFO", "STATS")
_TASK_ROWS: Final = tuple(row for row in TABLE if row.stream == "TASKS")


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """A subject that an outside account takes from the services' account: to ask on (`service`) or to follow.

    `many`: more than one may answer.
    """

    subject: str
    kind: Literal["service", "stream"]
    many: bool = False


class Responses(msgspec.Struct, frozen=True, kw_only=True):
    """A service may answer the reply subject of a request that it was given: `most` messages within `within_s`."""

    most: int
    within_s: int


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """Allow lists, sorted. `responses` is None for whoever serves nothing."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    responses: Responses | None = None


_ONE_ANSWER: Final = Responses(most=1, within_s=300)
_PROGRESS_AND_ANSWER: Final = Responses(most=10_000, within_s=1_800)
"""A decision reports progress while the provider thinks, for as long as its time-out may be set."""


def permissions(identity: Identity, devices: tuple[str, ...]) -> Permissions:
    """The allow lists of one identity in an installation with these device aliases."""
    if identity is Identity.PROVISIONER:
        return Permissions(publish=tuple(sorted(_provisioning())), subscribe=(f"_INBOX_{identity}.>",))
    responses = None
    if identity in SERVICES:
        responses = _PROGRESS_AND_ANSWER if identity is Identity.ENDPOINT else _ONE_ANSWER
    return Permissions(
        publish=tuple(sorted({*_writes(identity), *_pulls(identity, devices), *_reads(identity), *_asks(identity)})),
        subscribe=tuple(sorted({*_inboxes(identity), *_follows(identity), *_serves(identity)})),
        responses=responses,
    )


def shared(identity: Identity) -> tuple[Shared, ...]:
    """What the account of an outside identity shares with that of the services: its allow lists, without its inboxes.

    Every instance answers a ping; every executor answers for the devices that it knows.
    """
    granted = permissions(identity, ())
    asked = {row.pattern for row in TABLE if row.stream is None and Identity.EXECUTOR in row.triggers}
    services = [
        Shared(subject=subject, kind="service", many=subject in asked or subject.startswith("$SRV."))
        for subject in granted.publish
    ]
    return (*services, *(Shared(subject=subject, kind="stream") for subject in sorted({*_follows(identity)})))


def _writes(identity: Identity) -> Iterator[str]:
    for row in TABLE:
        if identity in row.writers:
            yield f"dead.{identity}" if row.stream == "DEAD" else row.pattern


def _pulls(identity: Identity, devices: tuple[str, ...]) -> Iterator[str]:
    """Next message, state, and both forms of the acknowledgement (the longer one has domain and account hash)."""
    for consumer in consumers(devices):
        if consumer.identity is identity:
            place = f"{consumer.stream}.{consumer.name}"
            yield f"$JS.API.CONSUMER.MSG.NEXT.{place}"
            yield f"$JS.API.CONSUMER.INFO.{place}"
            yield f"$JS.ACK.{place}.>"
            yield f"$JS.ACK.*.*.{place}.>"


def _reads(identity: Identity) -> Iterator[str]:
    rows = [row for row in TABLE if identity in row.reads]
    for row in rows:
        yield f"$JS.API.DIRECT.GET.{row.stream}.{row.pattern}"
    for row in TABLE:
        if row.stream is not None and identity in row.triggers:
            yield f"$JS.API.DIRECT.GET.{row.stream}" + ("" if row.stream == "REQUESTS" else f".{row.pattern}")
    if all(row in rows for row in _TASK_ROWS):
        # Whoever may read every slot may ask for the newest slot of a task: a request for `task.<device>.<task>.>`,
        # whose last token is to the server a token like any other. One for `task.>` is too short to match.
        yield "$JS.API.DIRECT.GET.TASKS.task.*.*.>"
    if identity is Identity.OPERATOR:
        yield "$JS.API.DIRECT.GET.DEAD"  # by sequence: older dead letters of a service than its last


def _asks(identity: Identity) -> Iterator[str]:
    """Life signs. What a service asks of another is among its rows."""
    yield from (f"$SRV.PING.{service}" for service in _PINGS.get(identity, ()))
    if identity in CLIENTS:
        for verb in _VERBS:
            yield from (f"$SRV.{verb}", f"$SRV.{verb}.>")


def _inboxes(identity: Identity) -> Iterator[str]:
    """Own answers only. Outside, in an account of its own, also the inbox that every NATS client uses untold."""
    yield f"_INBOX_{identity}.>"
    if identity in CLIENTS:
        yield "_INBOX.>"


def _follows(identity: Identity) -> Iterator[str]:
    return (row.pattern for row in TABLE if identity in row.follows)


def _serves(identity: Identity) -> Iterator[str]:
    if identity not in SERVICES:
        return
    yield from (row.pattern for row in TABLE if row.stream is None and identity in row.triggers)
    for verb in _VERBS:
        yield from (f"$SRV.{verb}", f"$SRV.{verb}.{identity}", f"$SRV.{verb}.{identity}.*")


def _provisioning() -> Iterator[str]:
    for stream in STREAMS:
        for verb in ("CREATE", "INFO", "UPDATE"):
            yield f"$JS.API.STREAM.{verb}.{stream.name}"
        yield f"$JS.API.CONSUMER.CREATE.{stream.name}.>"
        yield f"$JS.API.CONSUMER.INFO.{stream.name}.*"
