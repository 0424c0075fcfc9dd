"""An OpenAI Responses body, taken apart. Pure."""

from typing import Final

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

_INCOMPLETE: Final[dict[str | None, Stop]] = {"max_output_tokens": "truncated", "content_filter": "refused"}


def read(raw: str) -> Parts | None:
    """None when the body has no list of output items and no error."""
    body = body_of(raw)
    if body is None or not (isinstance(body.get("output"), list) or body.get("status") == "failed"):
        return None
    text: list[str] = []
    thinking: list[str] = []
    calls: list[Call] = []
    ignored: list[str] = []
    call_id = refusal = ""
    cut_off = False
    for item in objects_of(body.get("output")):
        match item.get("type"):
            case "reasoning":
                parts = objects_of(item.get("summary")) or objects_of(item.get("content"))
                thinking.extend(text_of(part.get("text")) for part in parts)
            case "message":
                for part in objects_of(item.get("content")):
                    refusal = text_of(part.get("refusal")) or refusal
                    text.append(text_of(part.get("text")))
            case "function_call":
                calls.append(Call(text_of(item.get("name")), item.get("arguments")))
                call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
                cut_off = cut_off or item.get("status") == "incomplete"
            case other:
                ignored.append(str(other))
    stop, stop_reason, detail = _stop(body)
    if stop == "ok" and cut_off:
        stop = "truncated"
    if stop == "ok" and refusal and not calls:
        stop, stop_reason, detail = "refused", "refusal", refusal
    return Parts(
        stop=stop,
        stop_reason=stop_reason,
        text=text,
        thinking=thinking,
        calls=calls,
        usage=_usage(object_of(body.get("usage"))),
        model=text_of(body.get("model")) or None,
        # A call's id comes again in later turns; together with the response's it is unique.
        response_id="/".join(filter(None, (text_of(body.get("id")), call_id))) or None,
        detail=detail,
        ignored=tuple(ignored),
    )


def _stop(body: Json) -> tuple[Stop, str | None, str]:
    status = word(body.get("status"))
    match status:
        case None | "completed":
            return "ok", status, ""
        case "incomplete":
            reason = word(object_of(body.get("incomplete_details")).get("reason"))
            return _INCOMPLETE.get(reason, "stopped"), reason or status, ""
        case _:
            error = object_of(body.get("error"))
            return "stopped", word(error.get("code")) or status, text_of(error.get("message"))


def _usage(usage: Json) -> Usage:
    prompt, output = object_of(usage.get("input_tokens_details")), object_of(usage.get("output_tokens_details"))
    return Usage(
        input_tokens=count(usage.get("input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        cache_read_tokens=count(prompt.get("cached_tokens")),
        cache_write_tokens=count(prompt.get("cache_write_tokens")),
        reasoning_tokens=count(output.get("reasoning_tokens")),
    )
