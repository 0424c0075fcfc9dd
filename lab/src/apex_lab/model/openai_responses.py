"""OpenAI Responses on the wire: a request body in, a `Response` body out. Only OpenAI's own models speak it.

Reasoning comes as an item whose summary is empty unless `reasoning.summary` asks for one.
"""

import msgspec
from msgspec import Struct

from apex_lab.model.answered import Answered
from apex_lab.model.errors import RequestRefused
from apex_lab.model.kinds import OPENAI
from apex_lab.model.openai_chat import CALL_TOKENS, CREATED, forced_tool, unknown_model
from apex_lab.model.reply import Ask, reply
from apex_lab.model.requests import decode, text_of
from apex_lab.model.schema_rules import by_name, check_openai_tool
from apex_lab.model.tools import Json, Tool
from apex_lab.model.usage import Charge, Piece, PrefixCache, count_tokens, piece

_LEAST_OUTPUT = 16
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class ReasoningIn(Struct, frozen=True, forbid_unknown_fields=True):
    """The `reasoning` field of a request."""

    effort: str | None = None
    summary: str | None = None


class ResponsesRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/responses, as far as this server knows it."""

    model: str
    input: str | list[Json]
    instructions: str | None = None
    tools: list[Json] = []
    tool_choice: str | Json | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = None
    reasoning: ReasoningIn | None = None
    store: bool | None = None
    include: list[str] | None = None
    stream: bool = False
    stream_options: Json | None = None
    temperature: float | None = None
    top_p: float | None = None
    text: Json | None = None
    truncation: str | None = None
    metadata: Json | None = None
    user: str | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    previous_response_id: str | None = None


def answer(raw: bytes, *, cache: PrefixCache, serial: int) -> Answered:
    """The answer to POST /v1/responses.

    Raises:
        RequestRefused: what the real API answers with an error.
    """
    request = decode(raw, ResponsesRequest)
    kind = OPENAI.get(request.model)
    if kind is None or not kind.own:
        raise unknown_model(request.model)
    _check(request)
    tools = _tools(request)
    forced = forced_tool(request.tool_choice, tools)
    charge = cache.by_prefix(kind.id, _pieces(request))
    said = reply(Ask(text=_last_user_text(request), tools=tools, forced=forced))
    call = None if request.tool_choice == "none" else said.call
    effort = request.reasoning.effort if request.reasoning else None
    thinking = "" if effort == "none" else said.thinking
    thought = count_tokens(thinking)
    room = request.max_output_tokens or kind.max_tokens
    output: list[Json] = []
    if thinking:
        summarised = request.reasoning is not None and request.reasoning.summary is not None
        summary = [{"type": "summary_text", "text": thinking}] if summarised else []
        output.append({"type": "reasoning", "id": f"rs_scripted_{serial:08d}", "summary": summary})
    spent = thought
    text = "" if forced is not None and call is not None else said.text
    if text:
        kept = text[: max(0, room - spent) * 4]
        spent += count_tokens(text)
        if kept:
            output.append(_message(kept, serial, whole=spent <= room))
    if call is not None:
        arguments = msgspec.json.encode(call.arguments).decode()
        left = max(0, room - spent - CALL_TOKENS) * 4
        spent += count_tokens(arguments) + CALL_TOKENS
        item: Json = {
            "type": "function_call",
            "id": f"fc_scripted_{serial:08d}",
            "call_id": f"call_scripted_{serial:08d}",
            "name": call.name,
            "arguments": arguments if spent <= room else arguments[:left],
            "status": "completed" if spent <= room else "incomplete",
        }
        if left:
            output.append(item)
    return Answered(
        body=_body(request, output, charge, spent=spent, thought=thought, room=room, serial=serial),
        playbook=said.playbook,
        stream=request.stream,
    )


def _body(
    request: ResponsesRequest, output: list[Json], charge: Charge, *, spent: int, thought: int, room: int, serial: int
) -> Json:
    cut, used = spent > room, min(spent, room)
    effort = request.reasoning.effort if request.reasoning else None
    summary = request.reasoning.summary if request.reasoning else None
    return {
        "id": f"resp_scripted_{serial:08d}",
        "object": "response",
        "created_at": CREATED + serial,
        "model": request.model,
        "status": "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "metadata": request.metadata or {},
        "output": output,
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": {"effort": effort or "medium", "summary": summary},
        "store": request.store is not False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": request.tool_choice or "auto",
        "tools": [{"strict": None, **tool} for tool in request.tools],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": charge.total,
            "input_tokens_details": {"cached_tokens": charge.read, "cache_write_tokens": 0},
            "output_tokens": used,
            "output_tokens_details": {"reasoning_tokens": min(thought, used)},
            "total_tokens": charge.total + used,
        },
        "user": request.user,
    }


def _message(text: str, serial: int, *, whole: bool) -> Json:
    return {
        "type": "message",
        "id": f"msg_scripted_{serial:08d}",
        "role": "assistant",
        "status": "completed" if whole else "incomplete",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    }


def _check(request: ResponsesRequest) -> None:
    if request.previous_response_id is not None:
        said = f"Previous response with id '{request.previous_response_id}' not found."
        raise RequestRefused(said, param="previous_response_id", code="previous_response_not_found")
    if request.max_output_tokens is not None and request.max_output_tokens < _LEAST_OUTPUT:
        said = (
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {_LEAST_OUTPUT}, "
            f"but got {request.max_output_tokens} instead."
        )
        raise RequestRefused(said, param="max_output_tokens", code="integer_below_min_value")
    effort = request.reasoning.effort if request.reasoning else None
    if effort is not None and effort not in _EFFORTS:
        said = f"Invalid value: '{effort}'. Supported values are: {', '.join(repr(each) for each in _EFFORTS)}."
        raise RequestRefused(said, param="reasoning.effort", code="invalid_value")
    if request.temperature not in (None, 1, 1.0) and effort != "none":
        said = "Unsupported parameter: 'temperature' is not supported with this model."
        raise RequestRefused(said, param="temperature", code="unsupported_parameter")


def _tools(request: ResponsesRequest) -> dict[str, Tool]:
    found: list[Tool] = []
    for index, tool in enumerate(request.tools):
        if tool.get("type") != "function":
            said = f"Invalid value: '{tool.get('type')}'. This scripted server takes tools of type 'function' alone."
            raise RequestRefused(said, param=f"tools[{index}].type", code="invalid_value")
        found.append(check_openai_tool(index, tool, path=f"tools[{index}]"))
    return by_name(found, refuse=RequestRefused("Function names must be unique.", param="tools"))


def _items(request: ResponsesRequest) -> list[Json]:
    return [{"role": "user", "content": request.input}] if isinstance(request.input, str) else request.input


def _content(item: Json) -> str | list[Json]:
    content = item.get("content", "")
    return content if isinstance(content, str) else msgspec.convert(content, list[Json])


def _last_user_text(request: ResponsesRequest) -> str:
    return next((text_of(_content(item)) for item in reversed(_items(request)) if item.get("role") == "user"), "")


def _pieces(request: ResponsesRequest) -> list[Piece]:
    pieces = [piece(tool) for tool in request.tools]
    pieces += [piece({"instructions": request.instructions})] if request.instructions else []
    for item in _items(request):
        content = _content(item)
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        pieces += [piece({"role": item.get("role"), **part}) for part in parts]
    return pieces
