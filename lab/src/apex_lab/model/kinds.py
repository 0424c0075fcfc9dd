"""The models this server stands for, and in what they differ. Data only.

Three kinds of Claude and three kinds of OpenAI-like server; every display name says that it is scripted.
"""

from typing import Literal

from msgspec import Struct

ThinkingType = Literal["enabled", "adaptive", "disabled", "between_tools"]


class ClaudeKind(Struct, frozen=True, kw_only=True):
    """A model behind Anthropic Messages. Token figures are limits of one request."""

    id: str
    display_name: str
    created_at: str
    accepts: frozenset[ThinkingType]
    thinks_unasked: bool
    shows_thinking: bool
    takes_forced_choice: bool
    takes_prefill: bool
    cache_minimum: int
    max_tokens: int
    max_input_tokens: int = 200_000


class OpenAIKind(Struct, frozen=True, kw_only=True):
    """A model behind OpenAI's APIs. `refuses` are request fields that its server does not know."""

    id: str
    owned_by: str
    own: bool
    """OpenAI's own: speaks Responses too, and takes tools on Chat Completions only without reasoning."""
    refuses: frozenset[str] = frozenset()
    max_tokens: int = 128_000


CLAUDE: dict[str, ClaudeKind] = {
    kind.id: kind
    for kind in (
        ClaudeKind(
            id="scripted-old",
            display_name="Scripted model, of the old kind (not a real Claude)",
            created_at="2025-02-19T00:00:00Z",
            accepts=frozenset({"enabled", "disabled"}),
            thinks_unasked=False,
            shows_thinking=True,
            takes_forced_choice=True,
            takes_prefill=True,
            cache_minimum=1024,
            max_tokens=64_000,
        ),
        ClaudeKind(
            id="scripted-current",
            display_name="Scripted model, of the current kind (not a real Claude)",
            created_at="2026-02-05T00:00:00Z",
            accepts=frozenset({"adaptive", "disabled"}),
            thinks_unasked=True,
            shows_thinking=True,
            takes_forced_choice=True,
            takes_prefill=False,
            cache_minimum=2048,
            max_tokens=128_000,
        ),
        ClaudeKind(
            id="scripted-newest",
            display_name="Scripted model, of the newest kind (not a real Claude)",
            created_at="2026-10-01T00:00:00Z",
            accepts=frozenset({"adaptive"}),
            thinks_unasked=True,
            shows_thinking=False,
            takes_forced_choice=False,
            takes_prefill=False,
            cache_minimum=512,
            max_tokens=128_000,
            max_input_tokens=1_000_000,
        ),
    )
}

OPENAI: dict[str, OpenAIKind] = {
    kind.id: kind
    for kind in (
        OpenAIKind(id="scripted-gpt", owned_by="apex-lab (scripted)", own=True),
        OpenAIKind(id="scripted-compatible", owned_by="apex-lab (scripted, compatible server)", own=False),
        OpenAIKind(
            id="scripted-compatible-plain",
            owned_by="apex-lab (scripted, compatible server that knows few fields)",
            own=False,
            refuses=frozenset(
                {"tool_choice", "parallel_tool_calls", "store", "max_completion_tokens", "reasoning_effort", "strict"}
            ),
        ),
    )
}


def claude_model_info(kind: ClaudeKind) -> dict[str, object]:
    """The body of GET /v1/models/{id} in the shape of anthropic's ModelInfo."""

    def supported(yes: bool) -> dict[str, object]:
        return {"supported": yes}

    types: tuple[ThinkingType, ...] = ("adaptive", "between_tools", "disabled", "enabled")
    efforts = {level: supported("adaptive" in kind.accepts) for level in ("low", "medium", "high", "xhigh", "max")}
    return {
        "type": "model",
        "id": kind.id,
        "display_name": kind.display_name,
        "created_at": kind.created_at,
        "deprecated_at": None,
        "lifecycle": "active",
        "line": None,
        "max_input_tokens": kind.max_input_tokens,
        "max_tokens": kind.max_tokens,
        "retires_at": None,
        "capabilities": {
            "batch": supported(False),
            "citations": supported(False),
            "code_execution": supported(False),
            "context_management": {
                "supported": False,
                "clear_thinking_20251015": supported(False),
                "clear_tool_uses_20250919": supported(False),
                "compact_20260112": supported(False),
            },
            "effort": {"supported": "adaptive" in kind.accepts, **efforts},
            "image_input": supported(True),
            "pdf_input": supported(False),
            "server_tools": {"supported": False, "code_execution": supported(False), "web_search": supported(False)},
            "structured_outputs": supported(True),
            "thinking": {
                "supported": True,
                "types": {name: supported(name in kind.accepts) for name in types},
            },
        },
    }


def openai_model_info(kind: OpenAIKind) -> dict[str, object]:
    """The body of GET /v1/models/{id} in the shape of openai's Model."""
    return {"id": kind.id, "object": "model", "created": 1_767_225_600, "owned_by": kind.owned_by}
