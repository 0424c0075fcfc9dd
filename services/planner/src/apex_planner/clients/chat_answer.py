"""A Chat Completions body, of OpenAI's or of a compatible server's making, taken apart. Pure."""

from typing import Any, Final

from apex_planner.clients.reading import (
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
    "stop": "ok",
    "tool_calls": "ok",
    "function_call": "ok",
    "length": "truncated",
    "content_filter": "refused",
}


def read(raw: str) -> Parts | None:
    """None when there is no choice with a message in it."""
    body = body_of(raw)
    choices = objects_of(body.get("choices")) if body is not None else []
    if body is None or not choices or not ("message" in choices[0] or choices[0].get("finish_reason")):
        return None
    message = object_of(choices[0].get("message"))
    text, thinking, ignored = _content(message.get("content"))
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    calls = _calls(message)
    stop_reason = word(choices[0].get("finish_reason"))
    stop = _STOPS.get(stop_reason, "stopped")
    refusal = text_of(message.get("refusal"))
    if stop == "ok" and refusal and not calls:
        stop, stop_reason = "refused", "refusal"
    return Parts(
        stop=stop,
        stop_reason=stop_reason,
        text=text,
        thinking=[text_of(reasoning), *thinking],
        calls=calls,
        usage=_usage(object_of(body.get("usage"))),
        model=text_of(body.get("model")) or None,
        response_id=text_of(body.get("id")) or None,
        detail=refusal,
        ignored=ignored,
    )


def _content(content: Any) -> tuple[list[str], list[str], tuple[str, ...]]:
    """Text, thinking and unknown types of a content that may be text, a list of chunks, or absent."""
    if not isinstance(content, list):
        return [text_of(content)], [], ()
    text: list[str] = []
    thinking: list[str] = []
    ignored: list[str] = []
    for chunk in objects_of(content):  # pyright: ignore[reportUnknownArgumentType]
        match chunk.get("type"):
            case "text" | "output_text":
                text.append(text_of(chunk.get("text")))
            case "thinking" | "reasoning":
                inner = chunk.get("thinking") or chunk.get("text")
                parts = [text_of(each.get("text")) for each in objects_of(inner)]
                thinking.append(text_of(inner) or "".join(parts))
            case other:
                ignored.append(str(other))
    return text, thinking, tuple(ignored)


def _calls(message: Json) -> list[Call]:
    calls: list[Call] = []
    for call in objects_of(message.get("tool_calls")):
        function = object_of(call.get("function")) or object_of(call.get("custom"))
        calls.append(Call(text_of(function.get("name")), function.get("arguments", function.get("input"))))
    legacy = object_of(message.get("function_call"))
    if legacy and not calls:
        calls.append(Call(text_of(legacy.get("name")), legacy.get("arguments")))
    return calls


def _usage(usage: Json) -> Usage:
    prompt, output = object_of(usage.get("prompt_tokens_details")), object_of(usage.get("completion_tokens_details"))
    return Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        cache_read_tokens=count(prompt.get("cached_tokens")) or count(usage.get("prompt_cache_hit_tokens")),
        cache_write_tokens=count(prompt.get("cache_write_tokens")),
        reasoning_tokens=count(output.get("reasoning_tokens")),
    )
