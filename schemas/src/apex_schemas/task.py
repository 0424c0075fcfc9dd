"""A task from its request to its end."""

from typing import Annotated, Literal

from msgspec import Meta

from apex_schemas.actions import AppName
from apex_schemas.ids import TaskId
from apex_schemas.secrets import SecretName
from apex_schemas.structs import Wire

Status = Literal["succeeded", "failed", "cancelled"]


class TaskRequest(Wire, frozen=True, kw_only=True):
    """What a client asks for on `request.<pool>`, as JSON or msgpack.

    `task` is made from the stored message when it is missing. `timeout_s` counts from the start on a device;
    `not_after` (Unix seconds; default one hour after the request was stored) bounds the wait for one.
    `apps` are the only packages (globs such as `com.android.*`) that may be acted in; none: all. `launch` is opened
    before the first look, and the task fails where that cannot be done; `terminate` are closed after its end.
    `secrets` names what may be typed as `{{secret:NAME}}`; values stay on the phone's host.
    """

    goal: Annotated[str, Meta(min_length=1, max_length=4_000)]
    task: TaskId | None = None
    max_turns: Annotated[int, Meta(ge=1, le=200)] = 30
    timeout_s: Annotated[int, Meta(ge=5, le=86_400)] = 1_800
    not_after: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    apps: Annotated[tuple[AppName, ...], Meta(max_length=32)] = ()
    launch: AppName | None = None
    terminate: Annotated[tuple[AppName, ...], Meta(max_length=8)] = ()
    secrets: Annotated[tuple[SecretName, ...], Meta(max_length=32)] = ()


class TaskStarted(Wire, frozen=True, kw_only=True):
    """A device has taken the task. `request_digest` tells a repeated request from another one under the same id."""

    request: TaskRequest
    pool: str
    request_sequence: int
    request_digest: str
    started_at_ms: int
    traceparent: str | None = None


class TaskFinished(Wire, frozen=True, kw_only=True):
    """How the task ended. What the model claimed and what was found on the screen are kept apart.

    `claimed` is None when nobody claimed anything. `failure_reason` is set when the status is not `succeeded`;
    `stage` names who was late or failed: intake, executor, perception, planner or client.
    """

    status: Status
    turns: int
    finished_at_ms: int
    by: str
    reason: str = ""
    failure_reason: str | None = None
    stage: str | None = None
    claimed: bool | None = None
    evidence: str | None = None
    evidence_found: bool | None = None
    answer: str | None = None
    goal: str = ""


class Approval(Wire, frozen=True, kw_only=True):
    """The operator's answer on `approve.<task>.<turn>` to an act that waits for one, as JSON or msgpack."""

    approved: bool
    by: str = ""


class CancelRequest(Wire, frozen=True, kw_only=True):
    """Published on `cancel.<task>`."""

    reason: str = "cancelled by the client"
