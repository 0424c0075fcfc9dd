"""The envelope around every stored message: what it is and where it belongs, around the body as raw bytes.

A reader decodes the envelope first, so that an unknown kind is skipped instead of failing, and compares it with the
subject, since any client of NATS can have a stored message published again elsewhere.
"""

import math
from functools import cache
from typing import Any, Final

import msgspec

from apex_schemas import decision, devices, scene, steps, task
from apex_schemas.errors import SubjectMismatch, TooLarge, Undecodable, UnknownKind
from apex_schemas.slots import Kind, Slot, parse_slot
from apex_schemas.structs import Wire

MAX_MESSAGE_BYTES: Final = 6 * 1024 * 1024
"""Our own cap, below NATS's `max_payload` of 8 MB: exceeding that one closes the connection for good."""

KINDS: Final[dict[str, type[Wire]]] = {
    "task_started.v1": task.TaskStarted,
    "task_finished.v1": task.TaskFinished,
    "scene.v1": scene.Scene,
    "semantic_scene.v1": scene.SemanticScene,
    "planned_step.v1": steps.PlannedStep,
    "act_intent.v1": steps.ActIntent,
    "world_event.v1": steps.WorldEvent,
    "decision_record.v1": decision.DecisionRecord,
    "planner_claim.v1": decision.PlannerClaim,
    "device_record.v1": devices.DeviceRecord,
    "dead_letter.v1": devices.DeadLetter,
    "cancel_request.v1": task.CancelRequest,
}
_KIND_OF: Final = {type_: kind for kind, type_ in KINDS.items()}

HOLDS: Final[dict[Kind, type[Wire]]] = {
    "started": task.TaskStarted,
    "scene": scene.Scene,
    "planned": steps.PlannedStep,
    "acting": steps.ActIntent,
    "event": steps.WorldEvent,
    "finished": task.TaskFinished,
}
"""What a slot of each kind of the task log holds; a SemanticScene is a Scene."""


class Envelope(Wire, frozen=True, kw_only=True):
    """`turn` is None at the end of a task and where there is no turn; `task` and `device` likewise."""

    kind: str
    body: msgspec.Raw
    task: str | None = None
    device: str | None = None
    turn: int | None = None
    attempt: str = ""


class Message(Wire, frozen=True, kw_only=True):
    """An envelope with its body decoded."""

    kind: str
    body: Any
    task: str | None = None
    device: str | None = None
    turn: int | None = None
    attempt: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode_envelope = msgspec.msgpack.Decoder(Envelope).decode
_decode_json_envelope = msgspec.json.Decoder(Envelope).decode


@cache
def _decoder(type_: type[Wire]) -> msgspec.msgpack.Decoder[Wire]:
    return msgspec.msgpack.Decoder(type_)


@cache
def _json_decoder(type_: type[Wire]) -> msgspec.json.Decoder[Wire]:
    return msgspec.json.Decoder(type_)


def kind_of(body: Wire) -> str:
    return _KIND_OF[type(body)]


def encode(
    body: Wire, *, task: str | None = None, device: str | None = None, turn: int | None = None, attempt: str = ""
) -> bytes:
    """The message as msgpack. Raises TooLarge, so that nothing is sent that the server would close us for."""
    raw = msgspec.Raw(_encode(body))
    data = _encode(Envelope(kind=kind_of(body), body=raw, task=task, device=device, turn=turn, attempt=attempt))
    if len(data) > MAX_MESSAGE_BYTES:
        raise TooLarge(f"a {kind_of(body)} message", len(data), MAX_MESSAGE_BYTES)
    return data


def decode(data: bytes) -> Message:
    """Read a message in msgpack or, where it starts with `{`, in JSON.

    Raises TooLarge, Undecodable or UnknownKind.
    """
    if len(data) > MAX_MESSAGE_BYTES:
        raise TooLarge("a message", len(data), MAX_MESSAGE_BYTES)
    in_json = data[:1] == b"{"
    try:
        envelope = _decode_json_envelope(data) if in_json else _decode_envelope(data)
        type_ = KINDS.get(envelope.kind)
        if type_ is None:
            raise UnknownKind(envelope.kind)
        decoder = _json_decoder(type_) if in_json else _decoder(type_)
        body = decoder.decode(envelope.body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Undecodable("a message", str(error) or type(error).__name__) from error
    if not _arguments_are_finite(body):
        raise Undecodable(f"a {envelope.kind} message", "a number is not finite")
    return Message(
        kind=envelope.kind,
        body=body,
        task=envelope.task,
        device=envelope.device,
        turn=envelope.turn,
        attempt=envelope.attempt,
    )


def _arguments_are_finite(body: Wire) -> bool:
    """Whether a record's free-form arguments hold no NaN or infinity: msgpack carries them, JSON and Postgres cannot.

    All other numbers of the wire are bounded by their types, which NaN does not pass.
    """
    match body:
        case decision.DecisionRecord(reply=decision.ToolCallDecision(arguments=arguments)):
            return _is_finite(arguments)
        case _:
            return True


def _is_finite(root: dict[str, Any]) -> bool:
    stack: list[Any] = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, float) and not math.isfinite(value):
            return False
        if isinstance(value, dict):
            stack.extend(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        elif isinstance(value, list):
            stack.extend(value)  # pyright: ignore[reportUnknownArgumentType]
    return True


def check_subject(message: Message, subject: str, *, task: str | None, device: str | None, turn: int | None) -> None:
    """Raise SubjectMismatch unless the envelope says what the tokens of its subject say."""
    if (message.task, message.device, message.turn) != (task, device, turn):
        raise SubjectMismatch(subject, f"task {message.task}, device {message.device}, turn {message.turn}")


def check_slot(message: Message, subject: str) -> Slot:
    """The slot that a message fills. Raises SubjectMismatch unless its subject is one, and the message what belongs
    there."""
    slot = parse_slot(subject)
    check_subject(message, subject, task=slot.task, device=slot.device, turn=slot.turn)
    if not isinstance(message.body, HOLDS[slot.kind]):
        raise SubjectMismatch(subject, f"another kind of slot, being a {message.kind}")
    return slot
