"""Who drives which phone: the record that survives its driver."""

from typing import Annotated, Literal

from msgspec import Meta

from apex_schemas.structs import Wire

DeviceState = Literal["opening", "ready", "busy", "quarantined", "waiting"]
Platform = Literal["android", "ios"]


class SessionHandle(Wire, frozen=True, kw_only=True):
    """An Appium session and where it lives. Whoever deletes it takes the power from every act still queued in it.

    `scale` is pixels of the screenshot per unit of the session's coordinates. `opened_at_ms` is 0 where not known.
    """

    id: str
    url: str
    platform: Platform = "android"
    web: bool = False
    scale: Annotated[float, Meta(gt=0, le=16)] = 1.0
    opened_at_ms: int = 0


class Claim(Wire, frozen=True, kw_only=True):
    """The task that a device is on: the request as it came, so that a resumed claim needs no redelivery."""

    task: str
    request: bytes
    request_sequence: int
    pool: str
    attempt: str
    traceparent: str | None = None


class DeviceRecord(Wire, frozen=True, kw_only=True):
    """Written by compare-and-set alone; no expiry. It is taken over when it has not changed for a lease.

    `waiting_turn` is the turn of the claimed task whose act waits for the operator's approval. `paused` says by whom
    and why the device takes no tasks until it is resumed. `failures` counts how often in a row it could not be used.
    """

    worker: str
    epoch: int
    platform: Platform = "android"
    state: DeviceState = "opening"
    session: SessionHandle | None = None
    claim: Claim | None = None
    renewals: int = 0
    reason: str | None = None
    released: bool = False
    waiting_turn: int | None = None
    paused: str | None = None
    failures: int = 0


class SessionRequest(Wire, frozen=True, kw_only=True):
    """Asked on `session.<device>` by perception when the session it knows of is dead."""

    dead_session: str


class SessionReply(Wire, frozen=True, kw_only=True):
    """`session` is None when the device could not be healed; `reason` says why."""

    session: SessionHandle | None = None
    reason: str | None = None


class DeviceStatus(Wire, frozen=True, kw_only=True):
    """A device as `apex devices` shows it.

    `pools` are what it takes requests from, the first first. `retry_s` is how long until a device that is set aside is
    tried again. `renewed_s` is how long ago its driver last renewed its record; None where the one who answers does not
    drive it. `stale`: that is too long ago to act on the phone, and others may take the device.
    """

    device: str
    platform: str
    state: str
    worker: str
    epoch: int
    task: str | None = None
    session: str | None = None
    reason: str | None = None
    waiting_turn: int | None = None
    pools: tuple[str, ...] = ()
    session_age_s: int | None = None
    paused: bool = False
    failures: int = 0
    retry_s: int | None = None
    renewed_s: int | None = None
    stale: bool = False


class DeviceControl(Wire, frozen=True, kw_only=True):
    """The operator's word on `control.<device>`, in JSON; whoever drives the device answers with its DeviceStatus.

    A paused device takes no task; the one that it is on goes on to its end.
    """

    action: Literal["pause", "resume"]
    by: str = ""
    reason: str = ""


class DeadLetter(Wire, frozen=True, kw_only=True):
    """What could not be handled, without its content (which may hold thinking or typed text)."""

    service: str
    reason: str
    subject: str
    bytes: int
    sha256: str
    stream: str | None = None
    sequence: int | None = None


class HandledAgain(Wire, frozen=True, kw_only=True):
    """What came of a dead letter that the operator handed back, in JSON.

    `handled`: its handler is done with it. `failed`: again, for `reason`. `waiting`: it is being handled, and for
    `reason` not done yet. `ended`: its task had ended before, so nothing was to be done. `gone`: its stream does not
    hold the message any more. `end` is how its task has ended, where it has.
    """

    outcome: Literal["handled", "failed", "waiting", "ended", "gone"]
    reason: str | None = None
    end: str | None = None
