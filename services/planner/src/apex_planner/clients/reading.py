"""Reading answers, in what all wire formats have in common: leniently in form, strictly in what is executed.

A format's own module turns a body into `Parts`; `conclude` turns Parts into exactly one call or a fault. The stop
reason is looked at first, so that a call that was cut off is never executed.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, NoReturn, cast

from apex_planner.text import cut, plain
from apex_schemas.decision import DecisionFault, DecisionReply, ToolCallDecision, Usage

Json = dict[str, Any]
Stop = Literal["ok", "truncated", "refused", "stopped"]

REDACTED: Final = "[redacted]"
_MOST_UNWRAPPED: Final = 2
_INT64: Final = range(-(2**63), 2**63)
_DEEPEST: Final = 64
_THINK: Final = re.compile(r"^\s*<think(?:ing)?>(.*?)</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


class Call(NamedTuple):
    """A tool call as it came; `arguments` may be an object, JSON text, or nothing."""

    tool: str
    arguments: Any


class Parts(NamedTuple):
    """A body taken apart, in order. `stop_reason` is the provider's own word; `ignored` are types not known."""

    stop: Stop = "ok"
    stop_reason: str | None = None
    text: Sequence[str] = ()
    thinking: Sequence[str] = ()
    calls: Sequence[Call] = ()
    usage: Usage = Usage()
    model: str | None = None
    response_id: str | None = None
    detail: str = ""
    ignored: tuple[str, ...] = ()


class Unreadable(NamedTuple):
    """Arguments that are no JSON object, as they came."""

    raw: str


def body_of(raw: str) -> Json | None:
    """The body as a JSON object, cleaned of what cannot be stored; None for anything else."""
    body = _loads(raw)
    return cast(Json, body) if isinstance(body, dict) else None


def conclude(parts: Parts, *, provider: str, model: str) -> DecisionReply:
    """Exactly one call, or the fault that says why not."""
    text, thinking = _joined(parts.text), _joined(parts.thinking)
    inner = _THINK.match(text or "")
    if inner is not None and text is not None:
        text, thinking = text[inner.end() :].strip() or None, _joined([thinking or "", inner[1]])

    def fault(code: str, message: str, *, correctable: bool) -> DecisionFault:
        return DecisionFault(
            code=code,
            message=message,
            correctable=correctable,
            text_output=text,
            thinking=thinking,
            usage=parts.usage,
            provider=provider,
            model=parts.model or model,
            stop_reason=parts.stop_reason,
            response_id=parts.response_id,
        )

    detail = f" ({cut(plain(parts.detail), 300)})" if parts.detail else ""
    match parts.stop:
        case "truncated":
            return fault("truncated", f"the answer was cut off by the token limit{detail}.", correctable=True)
        case "refused":
            return fault("refused", f"the model refused: {parts.stop_reason}{detail}", correctable=False)
        case "stopped":
            return fault("stopped", f"the model stopped with {parts.stop_reason!r}{detail}", correctable=False)
        case "ok":
            pass
    if not parts.calls:
        return fault("no_tool_call", "there was no tool call in it.", correctable=True)
    if len(parts.calls) > 1:
        names = ", ".join(cut(plain(call.tool), 40) for call in parts.calls)
        message = f"it had {len(parts.calls)} tool calls ({names}); none was carried out, since one is allowed."
        return fault("several_tool_calls", message, correctable=True)
    call = parts.calls[0]
    arguments = read_object(call.arguments)
    if isinstance(arguments, Unreadable):
        shown = cut(plain(arguments.raw), 200)
        return fault("bad_arguments", f"the arguments of {call.tool} are no JSON object: {shown}", correctable=True)
    purpose, expected = arguments.pop("purpose", None), arguments.pop("expected_outcome", None)
    return ToolCallDecision(
        tool=call.tool,
        arguments=arguments,
        purpose=purpose if isinstance(purpose, str) else None,
        expected_outcome=expected if isinstance(expected, str) else None,
        text_output=text,
        thinking=thinking,
        usage=parts.usage,
        provider=provider,
        model=parts.model or model,
        stop_reason=parts.stop_reason,
        response_id=parts.response_id,
    )


def read_object(value: Any) -> Json | Unreadable:
    """Arguments as an object: JSON text inside JSON text is unwrapped at most twice; nothing at all means `{}`."""
    first = value
    for _ in range(_MOST_UNWRAPPED + 1):
        if value is None or (isinstance(value, str) and not value.strip()):
            return {}
        if isinstance(value, dict):
            return cast(Json, value).copy()
        if not isinstance(value, str):
            break
        value = _loads(value)
        if value is _NO_JSON:
            break
    return Unreadable(first if isinstance(first, str) else json.dumps(first, default=str))


_NO_JSON: Final = object()


def _loads(text: str) -> Any:
    try:
        return _storable(json.loads(text, parse_constant=_refuse), 0)
    except (ValueError, RecursionError):
        return _NO_JSON


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _storable(value: Any, depth: int) -> Any:
    """The same value without what msgpack or Postgres cannot hold: lone surrogates, NUL, numbers beyond 64 bits."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        items = cast(dict[str, Any], value).items()
        return {storable(key): _storable(each, depth + 1) for key, each in items}
    if isinstance(value, list):
        return [_storable(each, depth + 1) for each in cast(list[Any], value)]
    if isinstance(value, int) and value not in _INT64:
        return float(value) if abs(value) < 10**300 else str(value)
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        raise ValueError("not finite")
    return value


def storable(text: str) -> str:
    """The text without NUL, halves of surrogate pairs joined or replaced."""
    if "\0" in text:
        text = text.replace("\0", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _joined(texts: Sequence[str]) -> str | None:
    """Texts in order, a line each; None when they say nothing."""
    return "\n".join(text.strip() for text in texts if text.strip()) or None


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def word(value: Any) -> str | None:
    """A reason given as text, or as the number that some servers send."""
    return None if value is None or value == "" else str(value)


def count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def object_of(value: Any) -> Json:
    """The value if it is an object, else an empty one."""
    return cast(Json, value) if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[Json]:
    """The objects of a list; nothing for anything else."""
    return (
        [cast(Json, each) for each in cast(list[Any], value) if isinstance(each, dict)]
        if isinstance(value, list)
        else []
    )
