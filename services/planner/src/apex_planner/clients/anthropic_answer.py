"""An Anthropic Messages body, taken apart. Pure: recorded bodies can be read again."""

from typing import Final

from apex_planner.clients.reading import (
    REDACTED,
    Call,
    Json,
    Parts,
    Stop,
    body_of,
    count,
    object_of,
    objects_of,
    text_of,
    word,
)
from apex_schemas.decision import Usage

_STOPS: Final[dict[str | None, Stop]] = {
    None: "ok",
    "end_turn": "ok",
    "tool_use": "ok",
    "stop_sequence": "ok",
    "max_tokens": "truncated",
    "refusal": "refused",
}


def read(raw: str) -> Parts | None:
    """None when the body is no Message at all."""
    body = body_of(raw)
    if body is None or not ("content" in body or body.get("type") == "message"):
        return None
    text: list[str] = [text_of(body.get("content"))]
    thinking: list[str] = []
    calls: list[Call] = []
    ignored: list[str] = []
    for block in objects_of(body.get("content")):
        match block.get("type"):
            case "text":
                text.append(text_of(block.get("text")))
            case "thinking":
                thinking.append(text_of(block.get("thinking")))
            case "redacted_thinking":
                thinking.append(REDACTED)
            case "tool_use":
                calls.append(Call(text_of(block.get("name")), block.get("input")))
            case other:
                ignored.append(str(other))
    stop_reason = word(body.get("stop_reason"))
    details = object_of(body.get("stop_details"))
    return Parts(
        stop=_STOPS.get(stop_reason, "stopped"),
        stop_reason=stop_reason,
        text=text,
        thinking=thinking,
        calls=calls,
        usage=_usage(object_of(body.get("usage"))),
        model=text_of(body.get("model")) or None,
        response_id=text_of(body.get("id")) or None,
        detail=text_of(details.get("explanation")) or text_of(details.get("category")),
        ignored=tuple(ignored),
    )


def _usage(usage: Json) -> Usage:
    """`input_tokens` leaves out what was read from and written to the cache; the total has it."""
    read_tokens = count(usage.get("cache_read_input_tokens"))
    write_tokens = count(usage.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=count(usage.get("input_tokens")) + read_tokens + write_tokens,
        output_tokens=count(usage.get("output_tokens")),
        cache_read_tokens=read_tokens,
        cache_write_tokens=write_tokens,
        reasoning_tokens=count(object_of(usage.get("output_tokens_details")).get("thinking_tokens")),
    )
