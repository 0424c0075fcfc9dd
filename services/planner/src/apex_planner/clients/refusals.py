"""What an error status means: what to set, whether asking again helps, and whether it was the model's own fault."""

import re
from typing import Final, NamedTuple

from apex_planner.clients.reading import body_of, object_of, storable, text_of
from apex_planner.errors import ProviderRefused, ProviderUnreachable
from apex_planner.text import cut, plain
from apex_schemas.decision import DecisionFault

_MODELS_FAULT: Final = re.compile(
    r"tool_use_failed|failed to call a function|did not call a tool|tool call validation failed"
    r"|failed to parse tool call|invalid tool call arguments|failed_generation",
    re.IGNORECASE,
)
_TOO_LONG: Final = re.compile(
    r"prompt is too long|context_length_exceeded|maximum context length|context window|too many (input )?tokens"
    r"|request_too_large|exceeds? the (maximum|context)",
    re.IGNORECASE,
)
_NO_MODEL: Final = re.compile(
    r"model_not_found|model\b[^.]{0,80}(does not exist|not found|not supported)", re.IGNORECASE
)
_NO_CREDIT: Final = re.compile(r"insufficient_quota|credit balance|billing", re.IGNORECASE)


class Where(NamedTuple):
    """Who is asked, for sentences: never the key itself, but the variable that holds it."""

    provider: str
    model: str
    base_url: str
    key_variable: str
    retries: int
    timeout_s: float


def fault_of(refused: ProviderRefused, where: Where) -> DecisionFault:
    """An HTTP error as a fault."""
    said = _message(refused.body)
    named = f"; request id {refused.request_id}" if refused.request_id else ""
    detail = f": {said}{named}" if said else named
    status, body = refused.status, refused.body
    asked = f"{where.provider} answered {status}{detail}"
    if status in (400, 422) and _MODELS_FAULT.search(body):
        message = f"the server rejected the tool call: {said}."
        return _fault("rejected_by_server", message, where, correctable=True, text_output=_failed_generation(body))
    if status in (400, 413) and (status == 413 or _TOO_LONG.search(body)):
        return _fault("too_long", f"{asked}. Set AI_PLANNER_MODEL to a model with a larger context window.", where)
    if status == 402 or (status in (400, 403, 429) and _NO_CREDIT.search(body)):
        return _fault("denied", f"{asked}. The account has no credit; see the provider's billing page.", where)
    if status == 401:
        return _fault("denied", f"{asked}. Set {where.key_variable} to a key that is valid at {where.base_url}.", where)
    if status == 403:
        return _fault("denied", f"{asked}. The key in {where.key_variable} may not use {where.model}.", where)
    if status == 404 or (status == 400 and _NO_MODEL.search(body)):
        hint = f"AI_PLANNER_MODEL is {where.model!r} and the base URL {where.base_url}: one of them is wrong"
        return _fault("configuration", f"{asked}. {hint}.", where)
    if status in (408, 409, 429) or status >= 500:
        return _fault("unavailable", f"{asked}. It was tried {where.retries + 1} times; try later.", where)
    return _fault("configuration", f"{asked}. The request is not accepted; check the AI_PLANNER_* settings.", where)


def fault_of_silence(unreachable: ProviderUnreachable, where: Where) -> DecisionFault:
    if unreachable.timed_out:
        message = f"{where.provider} gave no answer within {where.timeout_s:g} s (AI_PLANNER_TIMEOUT_SECONDS)"
        return _fault("timeout", message, where)
    message = (
        f"{where.provider} cannot be reached at {where.base_url}: {unreachable.reason}; tried {where.retries + 1} times"
    )
    return _fault("unavailable", message, where)


def not_a_completion(raw: str, where: Where) -> DecisionFault:
    """A success status around something else: a proxy's page, or another kind of server."""
    said = _message(raw) or cut(plain(raw), 120) or "nothing"
    message = f"{where.base_url} answered, but with no completion ({said}); check AI_PLANNER_BASE_URL"
    return _fault("not_a_completion", message, where)


def _fault(
    code: str, message: str, where: Where, *, correctable: bool = False, text_output: str | None = None
) -> DecisionFault:
    return DecisionFault(
        code=code,
        message=storable(message),
        correctable=correctable,
        text_output=text_output,
        provider=where.provider,
        model=where.model,
    )


def _message(body: str) -> str:
    """The provider's own sentence, or the beginning of what came instead."""
    read = body_of(body)
    if read is None:
        return cut(plain(body), 200)
    error = object_of(read.get("error"))
    found = text_of(error.get("message")) or text_of(read.get("message")) or text_of(read.get("detail"))
    found = found or text_of(read.get("error"))
    return cut(plain(found), 300).rstrip(".")


def _failed_generation(body: str) -> str | None:
    error = object_of(object_of(body_of(body)).get("error"))
    return text_of(error.get("failed_generation")) or None
