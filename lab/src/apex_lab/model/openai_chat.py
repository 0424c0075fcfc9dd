"""OpenAI Chat Completions on the wire: a request body in, a `ChatCompletion` body out.

Two manners: OpenAI's own (`scripted-gpt`: tools only with `reasoning_effort: "none"`, no `max_tokens`) and compatible
servers (`scripted-compatible*`: thinking in `reasoning_content`, and some know few of the newer fields).
"""

import msgspec
from msgspec import Struct

from apex_lab.model.answered import Answered
from apex_lab.model.errors import RequestRefused
from apex_lab.model.kinds import OPENAI, OpenAIKind
from apex_lab.model.reply import Ask, reply
from apex_lab.model.requests import decode, text_of
from apex_lab.model.schema_rules import by_name, check_openai_tool
from apex_lab.model.tools import Json, Tool, is_json
from apex_lab.model.usage import Charge, Piece, PrefixCache, count_tokens, piece

CREATED = 1_767_225_600
CALL_TOKENS = 12
"""What a tool call costs beside its arguments."""


class ChatMessageIn(Struct, frozen=True):
    """One message; other fields (tool calls, names) are not looked at."""

    role: str
    content: str | list[Json] | None = None


class ChatRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/chat/completions, as far as this server knows it."""

    model: str
    messages: list[ChatMessageIn]
    tools: list[Json] = []
    tool_choice: str | Json | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    reasoning_effort: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    store: bool | None = None
    stream: bool = False
    stream_options: Json | None = None
    user: str | None = None
    metadata: Json | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    verbosity: str | None = None
    chat_template_kwargs: Json | None = None


def answer(raw: bytes, *, cache: PrefixCache, serial: int) -> Answered:
    """The answer to POST /v1/chat/completions.

    Raises:
        RequestRefused: what such a server answers with an error.
    """
    request = decode(raw, ChatRequest)
    kind = OPENAI.get(request.model)
    if kind is None:
        raise unknown_model(request.model)
    _check(request, kind)
    tools = _tools(request)
    forced = forced_tool(request.tool_choice, tools)
    charge = cache.by_prefix(kind.id, _pieces(request))
    said = reply(Ask(text=_last_user_text(request), tools=tools, forced=forced))
    call = None if request.tool_choice == "none" else said.call
    text: str | None = None if forced is not None and call is not None else said.text
    thinking = said.thinking if _reasons(request, kind) else ""
    thought = count_tokens(thinking)
    arguments = msgspec.json.encode(call.arguments).decode() if call else ""
    room = (request.max_completion_tokens or request.max_tokens or kind.max_tokens) - thought
    spent = count_tokens(text or "") + count_tokens(arguments) + (CALL_TOKENS if call else 0)
    cut = spent > room
    if cut:
        left = max(0, room - count_tokens(text or "") - CALL_TOKENS) * 4
        text, arguments = (text or "")[: max(0, room) * 4] or None, arguments[:left]
    message: Json = {"role": "assistant", "content": text, "refusal": None}
    if not kind.own:
        message["reasoning_content"] = thinking or None
    if call is not None and (arguments or not cut):
        function = {"name": call.name, "arguments": arguments}
        message["tool_calls"] = [{"id": f"call_scripted_{serial:08d}", "type": "function", "function": function}]
    body: Json = {
        "id": f"chatcmpl-scripted-{serial:08d}",
        "object": "chat.completion",
        "created": CREATED + serial,
        "model": kind.id,
        "system_fingerprint": "scripted",
        "choices": [
            {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(cut, call is not None)}
        ],
        "usage": _usage(charge, thought + min(spent, max(0, room)), thought),
    }
    return Answered(body=body, playbook=said.playbook, stream=request.stream)


def unknown_model(model: str) -> RequestRefused:
    """The refusal of a model that is not there."""
    said = f"The model `{model}` does not exist or you do not have access to it."
    return RequestRefused(said, status=404, param="model", code="model_not_found")


def forced_tool(choice: str | Json | None, tools: dict[str, Tool]) -> str | None:
    """None (free), "" (any tool) or the name of the tool that must be called; both APIs' notations.

    Raises:
        RequestRefused: the choice is not understood, names no tool, or there are no tools.
    """
    if choice is None:
        return None
    if not tools:
        raise RequestRefused("'tool_choice' is only allowed when 'tools' are specified.", param="tool_choice")
    if isinstance(choice, str):
        if choice not in ("auto", "none", "required"):
            said = f"Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'."
            raise RequestRefused(said, param="tool_choice", code="invalid_value")
        return "" if choice == "required" else None
    function = choice.get("function", choice)
    name = function.get("name") if is_json(function) else None
    if not isinstance(name, str) or name not in tools:
        raise RequestRefused(f"Tool choice '{name}' not found in 'tools' parameter.", param="tool_choice")
    return name


def _check(request: ChatRequest, kind: OpenAIKind) -> None:
    given = {field for field in ChatRequest.__struct_fields__ if getattr(request, field) is not None}
    functions = [tool.get("function") for tool in request.tools]
    if any(is_json(function) and "strict" in function for function in functions):
        given.add("strict")
    for field in sorted(given & kind.refuses):
        raise RequestRefused(
            f"{field}: Extra inputs are not permitted (extra_forbidden)", param=field, code="extra_forbidden"
        )
    if not request.messages:
        raise RequestRefused(
            "Invalid 'messages': empty array. Expected an array with minimum length 1.", param="messages"
        )
    if request.parallel_tool_calls is not None and not request.tools:
        said = "'parallel_tool_calls' is only allowed when 'tools' are specified."
        raise RequestRefused(said, param="parallel_tool_calls")
    if kind.own and request.max_tokens is not None:
        said = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        raise RequestRefused(said, param="max_tokens", code="unsupported_parameter")
    if kind.own and request.tools and request.reasoning_effort != "none":
        said = (
            f"Function tools with reasoning_effort are not supported for {kind.id} in /v1/chat/completions. "
            "Use /v1/responses, or set reasoning_effort to 'none'."
        )
        raise RequestRefused(said, param="reasoning_effort")


def _tools(request: ChatRequest) -> dict[str, Tool]:
    found: list[Tool] = []
    for index, tool in enumerate(request.tools):
        function = tool.get("function")
        if tool.get("type") != "function" or not is_json(function):
            said = f"Missing required parameter: 'tools[{index}].function'."
            raise RequestRefused(said, param=f"tools[{index}].function", code="missing_required_parameter")
        found.append(check_openai_tool(index, function, path=f"tools[{index}].function"))
    return by_name(found, refuse=RequestRefused("Function names must be unique.", param="tools"))


def _last_user_text(request: ChatRequest) -> str:
    return next((text_of(each.content or "") for each in reversed(request.messages) if each.role == "user"), "")


def _reasons(request: ChatRequest, kind: OpenAIKind) -> bool:
    return not kind.own and request.reasoning_effort != "none"


def _finish(cut: bool, called: bool) -> str:
    return "length" if cut else "tool_calls" if called else "stop"


def _pieces(request: ChatRequest) -> list[Piece]:
    pieces = [piece(tool) for tool in request.tools]
    for message in request.messages:
        content = message.content or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        pieces += [piece({"role": message.role, **part}) for part in parts]
    return pieces


def _usage(charge: Charge, spent: int, thought: int) -> Json:
    return {
        "prompt_tokens": charge.total,
        "completion_tokens": spent,
        "total_tokens": charge.total + spent,
        "prompt_tokens_details": {"cached_tokens": charge.read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": thought, "audio_tokens": 0},
    }
