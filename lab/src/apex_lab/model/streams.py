"""A finished body as server-sent events, one function per API: the events that the SDKs put together again."""

from collections.abc import Iterator

import msgspec

from apex_lab.model.tools import Json, is_json


def anthropic_events(body: Json) -> Iterator[bytes]:
    """Messages: message_start, blocks with one delta each, message_delta, message_stop."""
    usage = body["usage"]
    yield _event({"type": "message_start", "message": {**body, "content": [], "stop_reason": None}})
    for index, block in enumerate(msgspec.convert(body["content"], list[Json])):
        start, deltas = _anthropic_block(block)
        yield _event({"type": "content_block_start", "index": index, "content_block": start})
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": stop, "usage": usage})
    yield _event({"type": "message_stop"})


def _anthropic_block(block: Json) -> tuple[Json, list[Json]]:
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            deltas: list[Json] = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
            return {**block, "thinking": "", "signature": ""}, deltas
        case _:
            arguments = msgspec.json.encode(block["input"]).decode()
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": arguments}]


def chat_events(body: Json) -> Iterator[bytes]:
    """Chat Completions: one chunk with the whole message, one with the finish reason, one with the usage."""
    head = {key: body[key] for key in ("id", "created", "model", "system_fingerprint")}
    head["object"] = "chat.completion.chunk"
    for choice in msgspec.convert(body["choices"], list[Json]):
        message = choice["message"]
        delta: Json = dict(message) if is_json(message) else {}
        calls = msgspec.convert(delta.pop("tool_calls", []), list[Json])
        if calls:
            delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(calls)]
        yield _data({**head, "choices": [{"index": choice["index"], "delta": delta, "finish_reason": None}]})
        end: Json = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
        yield _data({**head, "choices": [end]})
    yield _data({**head, "choices": [], "usage": body["usage"]})
    yield b"data: [DONE]\n\n"


def responses_events(body: Json) -> Iterator[bytes]:
    """Responses: created, each item added and done, completed."""
    events: list[Json] = [{"type": "response.created", "response": {**body, "status": "in_progress", "output": []}}]
    for index, item in enumerate(msgspec.convert(body["output"], list[Json])):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{body['status']}", "response": body})
    for number, event in enumerate(events):
        yield _event({**event, "sequence_number": number})


def _event(event: Json) -> bytes:
    return f"event: {event['type']}\n".encode() + _data(event)


def _data(event: Json) -> bytes:
    return b"data: " + msgspec.json.encode(event) + b"\n\n"
