"""A provider call: what is asked, what is answered, and the record that explains it afterwards."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from apex_schemas.geometry import Size
from apex_schemas.steps import DecisionKey
from apex_schemas.structs import Wire

Provider = Literal["anthropic", "openai"]


class ToolSpec(Wire, frozen=True, kw_only=True):
    """A tool as offered to a model; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class Picture(Wire, frozen=True, kw_only=True):
    """A screenshot as sent to a model, `size` in its own pixels. Hash and size of the original stand for it in every
    record: `sha256` and `original_bytes` (0: `data` is the original)."""

    data: bytes
    media_type: str
    size: Size
    sha256: str
    original_bytes: int = 0


class DecisionRequest(Wire, frozen=True, kw_only=True):
    """One question to a model. Provider, model and budget are the asked process's own, never the request's.

    `user_blocks` are the parts of the user message, oldest and most stable first; `stable_blocks` counts how many of
    them will stand unchanged in the next turn, for prompt caches.
    """

    key: DecisionKey
    system_prompt: str
    user_blocks: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    stable_blocks: int = 0
    force_tool: bool = False
    more_room: bool = False
    picture: Picture | None = None


class Usage(Wire, frozen=True, kw_only=True):
    """Tokens. `input_tokens` is the total with cache reads and writes; `reasoning_tokens` are part of the output."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


class ToolCallDecision(Wire, tag_field="type", tag="tool_call", frozen=True, kw_only=True):
    """Exactly one tool call, as the provider gave it: `arguments` are read, not yet checked against the tool.

    `purpose` and `expected_outcome` are taken out of the arguments; `text_output` is the text before the call.
    """

    tool: str
    arguments: dict[str, Any]
    purpose: str | None = None
    expected_outcome: str | None = None
    text_output: str | None = None
    thinking: str | None = None
    usage: Usage = Usage()
    provider: str = ""
    model: str = ""
    stop_reason: str | None = None
    response_id: str | None = None
    latency_ms: int = 0


class DecisionFault(Wire, tag_field="type", tag="fault", frozen=True, kw_only=True):
    """No usable tool call. `correctable` faults are worth the one corrective retry; the others fail the task.

    `code` is one of: no_tool_call, several_tool_calls, bad_arguments, truncated, refused, stopped, rejected_by_server,
    not_a_completion, unavailable, timeout, denied, configuration, too_long.
    """

    code: str
    message: str
    correctable: bool
    text_output: str | None = None
    thinking: str | None = None
    usage: Usage = Usage()
    provider: str = ""
    model: str = ""
    stop_reason: str | None = None
    response_id: str | None = None
    latency_ms: int = 0


DecisionReply = ToolCallDecision | DecisionFault


class DecisionProgress(Wire, tag_field="type", tag="progress", frozen=True, kw_only=True):
    """Sent by the endpoint while it waits for the provider, so that its death is noticed early."""

    waited_ms: int


class DecisionRecord(Wire, frozen=True, kw_only=True):
    """All of one provider call. Hash and size stand for a picture; `raw_answer` is the provider's body as text.

    `cost_usd` is by list price at the time of the call; None where the model's price was not known.
    """

    key: DecisionKey
    system_prompt: str
    user_prompt: str
    tools: tuple[str, ...]
    reply: DecisionReply
    raw_answer: str | None = None
    screenshot_sha256: str | None = None
    screenshot_bytes: int | None = None
    requested_at_ms: int = 0
    worker: str = ""
    cost_usd: Annotated[float, Meta(ge=0, le=1e6)] | None = None


class PlannerClaim(Wire, frozen=True, kw_only=True):
    """Held on `claim.<task>.<turn>` while a provider call is under way; expires when it is no longer renewed."""

    worker: str
    call: int
