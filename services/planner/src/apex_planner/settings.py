"""AI_PLANNER_*: who decides, and how it is asked. Read once at start; a key is taken here and shown nowhere."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from apex_bus.errors import SettingsError
from apex_bus.settings import load
from apex_planner.tools import ToolSet
from apex_schemas.decision import Provider

PREFIX: Final = "AI_PLANNER_"
LONGEST_TIMEOUT_S: Final = 600.0
SMALLEST_BUDGET: Final = 1024
DEFAULT_BASE_URL: Final[Mapping[Provider, str]] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
}
KEY_VARIABLE: Final[Mapping[Provider, str]] = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
NO_KEY: Final = "none"
"""Sent to a server of one's own that wants no key: the SDKs would look for one on this host otherwise."""

Api = Literal["anthropic", "chat", "responses"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class PlannerSettings(Struct, frozen=True, kw_only=True):
    """One field for each variable. `thinking_budget_tokens` None asks for no thinking."""

    enabled: bool = False
    transport: Literal["cloud-proxy", "direct"] = "cloud-proxy"
    provider: Provider = "anthropic"
    model: str = ""
    base_url: str | None = None
    api_key: str | None = None
    timeout_seconds: Annotated[float, Meta(ge=1, le=LONGEST_TIMEOUT_S)] = 120
    max_retries: Annotated[int, Meta(ge=0, le=10)] = 2
    max_tokens: Annotated[int, Meta(ge=256, le=128_000)] = 4_096
    loop_limit: Annotated[int, Meta(ge=0, le=200)] = 8
    max_tokens_per_task: Annotated[int, Meta(ge=1)] | None = None
    max_concurrency: Annotated[int, Meta(ge=1, le=1_000)] = 32
    thinking_budget_tokens: Annotated[int, Meta(ge=SMALLEST_BUDGET, le=128_000)] | None = None
    reasoning_effort: Effort | None = None
    openai_api: Literal["chat", "responses"] | None = None
    tool_choice: Literal["auto", "forced"] = "auto"
    tools: ToolSet = "core"
    screenshot: Literal["auto", "always", "never"] = "auto"

    @property
    def api(self) -> Api:
        """The wire format. OpenAI's own models are asked by Responses, compatible servers by Chat Completions."""
        if self.provider == "anthropic":
            return "anthropic"
        return self.openai_api or ("chat" if self.base_url else "responses")

    @property
    def url(self) -> str:
        return self.base_url or DEFAULT_BASE_URL[self.provider]


class ProviderSettings(Struct, frozen=True, kw_only=True):
    """What a process needs that calls a provider itself."""

    planner: PlannerSettings
    key: str

    @property
    def key_variable(self) -> str:
        return KEY_VARIABLE[self.planner.provider]


def load_planner(environ: Mapping[str, str]) -> PlannerSettings:
    """Raises SettingsError that names the variable."""
    settings = load(PlannerSettings, environ, prefix=PREFIX)
    if settings.base_url and not settings.base_url.startswith(("http://", "https://")):
        raise SettingsError(f"{PREFIX}BASE_URL", f"{settings.base_url!r} is no http:// or https:// URL")
    return settings


def load_provider(environ: Mapping[str, str]) -> ProviderSettings:
    """For a process that holds the key: model and key must be there. Raises SettingsError."""
    return with_key(load_planner(environ), environ)


def with_key(settings: PlannerSettings, environ: Mapping[str, str]) -> ProviderSettings:
    if not settings.model:
        raise SettingsError(f"{PREFIX}MODEL", f"must be set to a model of {settings.provider}")
    variable = KEY_VARIABLE[settings.provider]
    key = settings.api_key or environ.get(variable, "").strip()
    if not key and settings.base_url is None:
        raise SettingsError(variable, f"must be set (or {PREFIX}API_KEY) to call {settings.provider} directly")
    return ProviderSettings(planner=settings, key=key or NO_KEY)
