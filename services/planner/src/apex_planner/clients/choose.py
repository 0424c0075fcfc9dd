"""Which dialect a process speaks. An SDK is imported here, for the chosen provider alone: both together are 108 MB."""

import logging
from typing import assert_never

from apex_planner.clients.exchange import Dialect, Exchange
from apex_planner.clients.refusals import Where
from apex_planner.settings import ProviderSettings

log = logging.getLogger(__name__)


def provider_client(settings: ProviderSettings) -> Exchange:
    """The client that calls the provider named by the settings."""
    planner = settings.planner
    if planner.thinking_budget_tokens is not None and planner.provider != "anthropic":
        log.warning("AI_PLANNER_THINKING_BUDGET_TOKENS is for anthropic only and is ignored for %s", planner.provider)
    if planner.reasoning_effort is not None and planner.provider != "openai":
        log.warning("AI_PLANNER_REASONING_EFFORT is for openai only and is ignored for %s", planner.provider)
    where = Where(
        provider=planner.provider,
        model=planner.model,
        base_url=planner.url,
        key_variable=settings.key_variable,
        retries=planner.max_retries,
        timeout_s=planner.timeout_seconds,
    )
    return Exchange(_dialect(settings), where, key=settings.key)


def _dialect(settings: ProviderSettings) -> Dialect:
    match settings.planner.api:
        case "anthropic":
            from apex_planner.clients.anthropic import AnthropicDialect

            return AnthropicDialect(settings)
        case "chat":
            from apex_planner.clients.openai_chat import ChatDialect

            return ChatDialect(settings)
        case "responses":
            from apex_planner.clients.openai_responses import ResponsesDialect

            return ResponsesDialect(settings)
        case _:
            assert_never(settings.planner.api)
