"""A provider call on a span and in metrics, by OpenTelemetry's conventions for generative AI.

What was said is left out unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for it (`true`, `span_only`
or `span_and_event`); a picture never goes in.
"""

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from opentelemetry.trace import Span

from apex_bus import metrics
from apex_bus.tracing import mark_failed
from apex_planner.errors import PricesUnreadable
from apex_planner.prices import Prices, load_prices
from apex_schemas.decision import DecisionFault, DecisionReply, DecisionRequest, ToolCallDecision, Usage

CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS: Final = ("true", "span_only", "span_and_event")


def describe(current: Span, request: DecisionRequest, reply: DecisionReply, seconds: float) -> float | None:
    """Put a call that is over on its span, and count it. Returns what it cost, in dollars, where that is known."""
    usage = reply.usage
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": reply.provider,
        "gen_ai.request.model": reply.model,
    }
    current.update_name(f"chat {reply.model}".strip())
    current.set_attributes(
        {
            **about,
            "apex.turn": request.key.turn,
            "apex.call": request.key.call,
            **{f"gen_ai.usage.{name}": tokens for name, tokens in _by_name(usage).items()},
        }
    )
    if reply.stop_reason:
        current.set_attribute("gen_ai.response.finish_reasons", [reply.stop_reason])
    if reply.response_id:
        current.set_attribute("gen_ai.response.id", reply.response_id)
    if isinstance(reply, ToolCallDecision):
        current.set_attribute("apex.action", reply.tool)
    if captures(os.environ):
        current.set_attributes(content(request, reply))
    if isinstance(reply, DecisionFault):
        mark_failed(current, reply.code, reply.message)
        metrics.add(metrics.REFUSALS, 1, {"stage": "chat", "code": reply.code})
    if request.key.call:
        metrics.add(metrics.RETRIES, 1, {"what": "corrective"})
    _count(about, reply, seconds)
    cost = _priced(os.environ.get("AI_PLANNER_PRICES_FILE", "")).cost(reply.model, usage)
    if cost is not None:
        current.set_attribute("apex.cost_usd", cost)
        metrics.add(metrics.COST, cost, {"gen_ai.request.model": reply.model})
    return cost


def captures(environ: Mapping[str, str]) -> bool:
    """Whether prompts and answers may go into traces."""
    return environ.get(CAPTURE, "").strip().lower() in _ON_SPANS


def content(request: DecisionRequest, reply: DecisionReply) -> dict[str, str]:
    """Prompts and answer as the conventions' JSON."""
    asked = [{"role": "user", "parts": [_text(block) for block in request.user_blocks]}]
    answered: list[dict[str, Any]] = []
    if reply.thinking:
        answered.append({"type": "reasoning", "content": reply.thinking})
    if reply.text_output:
        answered.append(_text(reply.text_output))
    if isinstance(reply, ToolCallDecision):
        answered.append({"type": "tool_call", "name": reply.tool, "arguments": reply.arguments})
    said = [{"role": "assistant", "parts": answered, "finish_reason": reply.stop_reason or "stop"}]
    parts = {
        "gen_ai.system_instructions": [_text(request.system_prompt)],
        "gen_ai.input.messages": asked,
        "gen_ai.output.messages": said,
    }
    return {name: json.dumps(value, ensure_ascii=False) for name, value in parts.items()}


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "content": words}


def _by_name(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read.input_tokens": usage.cache_read_tokens,
        "cache_write.input_tokens": usage.cache_write_tokens,
        "reasoning.output_tokens": usage.reasoning_tokens,
    }


def _count(about: dict[str, str], reply: DecisionReply, seconds: float) -> None:
    usage = reply.usage
    tokens = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
        "reasoning": usage.reasoning_tokens,
    }
    for type_, count in tokens.items():
        if count:
            metrics.record(metrics.TOKENS, count, {**about, "gen_ai.token.type": type_})
    error = {"error.type": reply.code} if isinstance(reply, DecisionFault) else {}
    metrics.record(metrics.CALL_DURATION, seconds, {**about, **error})


@lru_cache(maxsize=1)
def _priced(_: str) -> Prices:
    """The table of prices; an unreadable one costs no call, and nothing is priced."""
    try:
        return load_prices(os.environ)
    except PricesUnreadable:
        return Prices(date="1970-01-01", models={})
