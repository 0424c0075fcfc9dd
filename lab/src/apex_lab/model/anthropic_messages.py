"""Anthropic Messages on the wire: a request body in, a `Message` body out.

Consumes the raw body; the only state it touches is the `PrefixCache` it is given. What is refused, and in which
words, is in `anthropic_rules`.
"""

import base64
import hashlib

from apex_lab.model.answered import Answered
from apex_lab.model.anthropic_rules import MessagesRequest, check_request, thinks
from apex_lab.model.kinds import CLAUDE, ClaudeKind
from apex_lab.model.reply import Ask, Reply, reply
from apex_lab.model.requests import decode, text_of
from apex_lab.model.tools import Json, Tool
from apex_lab.model.usage import Charge, Piece, PrefixCache, count_tokens, piece


def answer(raw: bytes, *, betas: str, cache: PrefixCache, serial: int) -> Answered:
    """The answer to POST /v1/messages.

    Raises:
        RequestRefused: what the real API answers with an error.
    """
    request = decode(raw, MessagesRequest)
    tools = check_request(request, betas=betas)
    kind = CLAUDE[request.model]
    charge = cache.at_breakpoints(kind.id, _pieces(request), minimum=kind.cache_minimum)
    said = reply(Ask(text=_last_user_text(request), tools=tools, forced=_forced(request, tools)))
    content, stop, spent, thought = _content(request, kind, said, serial)
    body: Json = {
        "id": f"msg_scripted_{serial:08d}",
        "type": "message",
        "role": "assistant",
        "model": kind.id,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": _usage(charge, spent, thought),
    }
    return Answered(body=body, playbook=said.playbook, stream=request.stream)


def _last_user_text(request: MessagesRequest) -> str:
    return next((text_of(each.content) for each in reversed(request.messages) if each.role == "user"), "")


def _forced(request: MessagesRequest, tools: dict[str, Tool]) -> str | None:
    choice = request.tool_choice
    if choice is None or not tools or choice.type in ("auto", "none"):
        return None
    return choice.name or ""


def _content(request: MessagesRequest, kind: ClaudeKind, said: Reply, serial: int) -> tuple[list[Json], str, int, int]:
    """Blocks, stop reason, output tokens and the thinking tokens among them; cut where max_tokens is reached."""
    room = request.max_tokens
    content: list[Json] = []
    thought = count_tokens(said.thinking) if thinks(request, kind) else 0
    if thought:
        content.append({"type": "thinking", "thinking": _shown(request, kind, said), "signature": _signature(said)})
    if thought >= room:
        return content, "max_tokens", room, room
    choice = request.tool_choice.type if request.tool_choice else "auto"
    forced = choice in ("any", "tool")
    # The real ones disagree on a forced choice while thinking came unasked: they answer, and do not call.
    call = None if choice == "none" or (forced and thought) else said.call
    text = "" if forced and call is not None else said.text
    spent = thought + count_tokens(text)
    if spent > room:
        return [*content, {"type": "text", "text": text[: (room - thought) * 4]}], "max_tokens", room, thought
    if text:
        content.append({"type": "text", "text": text})
    if call is None:
        return content, "end_turn", max(1, spent), thought
    block: Json = {"type": "tool_use", "id": f"toolu_scripted_{serial:08d}", "name": call.name, "input": call.arguments}
    spent += piece(call.arguments).tokens + 12
    if spent > room:
        return [*content, {**block, "input": {}}], "max_tokens", room, thought
    return [*content, block], "tool_use", spent, thought


def _shown(request: MessagesRequest, kind: ClaudeKind, said: Reply) -> str:
    display = request.thinking.display if request.thinking else None
    shown = display == "summarized" or (display is None and kind.shows_thinking)
    return said.thinking if shown else ""


def _signature(said: Reply) -> str:
    return base64.b64encode(hashlib.sha256(said.thinking.encode()).digest()).decode()


def _usage(charge: Charge, spent: int, thought: int) -> Json:
    return {
        "input_tokens": charge.fresh,
        "cache_read_input_tokens": charge.read,
        "cache_creation_input_tokens": charge.written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": charge.written - charge.written_1h,
            "ephemeral_1h_input_tokens": charge.written_1h,
        },
        "output_tokens": spent,
        "output_tokens_details": {"thinking_tokens": thought},
        "service_tier": "standard",
    }


def _pieces(request: MessagesRequest) -> list[Piece]:
    """The prompt in cache order: tools, system, messages. The breakpoints are no part of the content."""
    blocks: list[tuple[Json, object]] = [({**tool}, tool.get("cache_control")) for tool in request.tools]
    system = [{"type": "text", "text": request.system}] if isinstance(request.system, str) else request.system
    blocks += [({"system": True, **block}, block.get("cache_control")) for block in system if block.get("text")]
    for each in request.messages:
        parts = [{"type": "text", "text": each.content}] if isinstance(each.content, str) else each.content
        blocks += [({"role": each.role, **part}, part.get("cache_control")) for part in parts]
    if request.cache_control is not None and blocks:
        blocks[-1] = (blocks[-1][0], request.cache_control)
    pieces: list[Piece] = []
    for block, control in blocks:
        block.pop("cache_control", None)
        mark = str(control.get("ttl", "5m")) if isinstance(control, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        pieces.append(piece(block, mark))
    return pieces
