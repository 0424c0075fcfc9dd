"""What Anthropic Messages refuses: the request's type, and the checks that a real server makes before a model sees
it.
"""

from msgspec import Struct

from apex_lab.model.errors import RequestRefused
from apex_lab.model.kinds import CLAUDE, ClaudeKind
from apex_lab.model.schema_rules import by_name, check_anthropic_tool
from apex_lab.model.tools import Json, Tool

BETAS = frozenset(
    {
        "prompt-caching-2024-07-31",
        "output-128k-2025-02-19",
        "token-efficient-tools-2025-02-19",
        "extended-cache-ttl-2025-04-11",
        "dev-full-thinking-2025-05-14",
        "interleaved-thinking-2025-05-14",
        "fine-grained-tool-streaming-2025-05-14",
        "context-management-2025-06-27",
        "context-1m-2025-08-07",
        "model-context-window-exceeded-2025-08-26",
        "structured-outputs-2025-11-13",
        "thinking-token-count-2026-05-13",
        "thinking-display-updates-2026-08-18",
    }
)
_LEAST_BUDGET = 1024
_BREAKPOINTS = 4


class ThinkingIn(Struct, frozen=True, forbid_unknown_fields=True):
    """The `thinking` field of a request."""

    type: str
    budget_tokens: int | None = None
    display: str | None = None


class ToolChoiceIn(Struct, frozen=True, forbid_unknown_fields=True):
    """The `tool_choice` field of a request."""

    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class MessageIn(Struct, frozen=True, forbid_unknown_fields=True):
    """One message; content is text or blocks."""

    role: str
    content: str | list[Json]


class MessagesRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/messages, as far as this server knows it; other fields are refused by name."""

    model: str
    max_tokens: int
    messages: list[MessageIn]
    system: str | list[Json] = ""
    tools: list[Json] = []
    tool_choice: ToolChoiceIn | None = None
    thinking: ThinkingIn | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    stream: bool = False
    metadata: Json | None = None
    service_tier: str | None = None
    output_config: Json | None = None
    cache_control: Json | None = None


def thinks(request: MessagesRequest, kind: ClaudeKind) -> bool:
    """Whether the answer to this (accepted) request begins with thinking."""
    if request.thinking is None:
        return kind.thinks_unasked
    return request.thinking.type in ("enabled", "adaptive")


def check_request(request: MessagesRequest, *, betas: str) -> dict[str, Tool]:
    """The request's tools by name.

    Raises:
        RequestRefused: what the real API refuses, in its words.
    """
    kind = CLAUDE.get(request.model)
    if kind is None:
        raise RequestRefused(f"model: {request.model}", status=404, kind="not_found_error")
    _check_betas(betas)
    if not 1 <= request.max_tokens <= kind.max_tokens:
        limit = f"{request.max_tokens} > {kind.max_tokens}, which is the maximum allowed number of output tokens"
        low = "Input should be greater than or equal to 1"
        raise RequestRefused(f"max_tokens: {limit if request.max_tokens > 0 else low} for {kind.id}")
    _check_messages(request, kind)
    found = [check_anthropic_tool(index, tool) for index, tool in enumerate(request.tools)]
    tools = by_name(found, refuse=RequestRefused("tools: Tool names must be unique."))
    _check_thinking(request, kind)
    _check_choice(request, kind, tools)
    return tools


def _check_betas(betas: str) -> None:
    unknown = [name for name in (part.strip() for part in betas.split(",")) if name and name not in BETAS]
    if unknown:
        values = ", ".join(f"`{name}`" for name in unknown)
        raise RequestRefused(f"Unexpected value(s) {values} for the `anthropic-beta` header.")


def _check_messages(request: MessagesRequest, kind: ClaudeKind) -> None:
    if not request.messages:
        raise RequestRefused("messages: at least one message is required")
    blocks: list[Json] = [*request.tools, *(request.system if isinstance(request.system, list) else [])]
    for index, message in enumerate(request.messages):
        if message.role not in ("user", "assistant", "system"):
            raise RequestRefused(f"messages.{index}.role: Input should be 'user', 'assistant' or 'system'")
        if not message.content:
            raise RequestRefused(f"messages.{index}: user messages must have non-empty content")
        parts = message.content if isinstance(message.content, list) else []
        blocks += parts
        for at, part in enumerate(parts):
            if part.get("type") == "text" and not str(part.get("text") or "").strip():
                raise RequestRefused(
                    f"messages.{index}.content.{at}: text content blocks must contain non-whitespace text"
                )
    if request.messages[-1].role == "assistant" and not kind.takes_prefill:
        said = "This model does not support assistant message prefill. The conversation must end with a user message."
        raise RequestRefused(said)
    marks = sum(1 for block in blocks if block.get("cache_control")) + (request.cache_control is not None)
    if marks > _BREAKPOINTS:
        raise RequestRefused(f"A maximum of {_BREAKPOINTS} blocks with cache_control may be provided. Found {marks}.")
    size = sum(len(str(block)) for block in blocks) // 4
    if size > kind.max_input_tokens:
        raise RequestRefused(f"prompt is too long: {size} tokens > {kind.max_input_tokens} maximum")


def _check_thinking(request: MessagesRequest, kind: ClaudeKind) -> None:
    thinking = request.thinking
    if thinking is not None:
        if thinking.type not in ("enabled", "adaptive", "disabled", "between_tools"):
            expected = "'adaptive', 'between_tools', 'disabled', 'enabled'"
            raise RequestRefused(
                f"thinking: Input tag '{thinking.type}' does not match any of the expected tags: {expected}"
            )
        if thinking.type not in kind.accepts:
            taken = " or ".join(f'"{name}"' for name in sorted(kind.accepts))
            said = f'"thinking.type.{thinking.type}" is not supported for this model. Use thinking.type {taken}.'
            raise RequestRefused(said)
        if thinking.display not in (None, "summarized", "omitted"):
            raise RequestRefused(f"thinking.{thinking.type}.display: Input should be 'summarized' or 'omitted'")
        if thinking.type == "enabled":
            _check_budget(thinking.budget_tokens, request.max_tokens)
        elif thinking.budget_tokens is not None:
            raise RequestRefused(f"thinking.{thinking.type}.budget_tokens: Extra inputs are not permitted")
    if request.temperature not in (None, 1, 1.0) and thinks(request, kind):
        raise RequestRefused("`temperature` may only be set to 1 when thinking is enabled.")


def _check_budget(budget: int | None, max_tokens: int) -> None:
    if budget is None:
        raise RequestRefused("thinking.enabled.budget_tokens: Field required")
    if budget < _LEAST_BUDGET:
        least = f"Input should be greater than or equal to {_LEAST_BUDGET}"
        raise RequestRefused(f"thinking.enabled.budget_tokens: {least}")
    if budget >= max_tokens:
        raise RequestRefused("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _check_choice(request: MessagesRequest, kind: ClaudeKind, tools: dict[str, Tool]) -> None:
    choice = request.tool_choice
    if choice is None:
        return
    if choice.type not in ("auto", "any", "tool", "none"):
        expected = "'auto', 'any', 'tool', 'none'"
        raise RequestRefused(
            f"tool_choice: Input tag '{choice.type}' does not match any of the expected tags: {expected}"
        )
    if not tools and choice.type != "none":
        raise RequestRefused("tool_choice may only be specified while providing tools.")
    if choice.type in ("auto", "none"):
        return
    if choice.type == "tool" and choice.name not in tools:
        raise RequestRefused(f"Tool '{choice.name}' not found in provided tools")
    if not kind.takes_forced_choice:
        raise RequestRefused(f'tool_choice: type "{choice.type}" is not supported for this model. Use "auto".')
    if request.thinking is not None and request.thinking.type in ("enabled", "adaptive"):
        raise RequestRefused("Thinking may not be enabled when tool_choice forces tool use.")
