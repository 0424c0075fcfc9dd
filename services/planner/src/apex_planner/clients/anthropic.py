"""Anthropic Messages: native tool use, thinking in the form that the model takes, a cache breakpoint after the history.

Every turn is a fresh conversation of one user message. The SDK is imported with this module, and with no other.
"""

import base64
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

import anthropic
from anthropic.types import ModelInfo

from apex_planner.clients import anthropic_answer
from apex_planner.clients.features import MORE_ROOM, Feature, Features, feature
from apex_planner.clients.reading import Json, Parts
from apex_planner.errors import ProviderRefused, ProviderUnreachable
from apex_planner.settings import ProviderSettings
from apex_schemas.decision import DecisionRequest

log = logging.getLogger(__name__)

_INTERLEAVED: Final = "interleaved-thinking-2025-05-14"


class Kind(NamedTuple):
    """What a model takes. None where the server did not say."""

    enabled: bool | None = None
    adaptive: bool | None = None
    most_tokens: int | None = None


def _choice(body: Json) -> str:
    return body.get("tool_choice", {}).get("type", "")


FEATURES: Final = (
    feature(
        "disable_parallel_tool_use",
        r"disable_parallel_tool_use",
        lambda body: "disable_parallel_tool_use" in body.get("tool_choice", {}),
    ),
    feature("forced tool choice", r"tool.?choice", lambda body: _choice(body) == "any"),
    feature("tool_choice", r"tool.?choice", lambda body: "tool_choice" in body),
    feature("this form of thinking", r"thinking", lambda body: "thinking" in body),
    feature("thinking beta header", r"anthropic-beta|interleaved", lambda body: "extra_headers" in body),
    feature(
        "cache_control",
        r"cache_control",
        lambda body: any("cache_control" in block for block in body["messages"][0]["content"]),
    ),
    feature("more room", r"max_tokens", lambda body: body["max_tokens"] > body["_usual_max_tokens"]),
)


class AnthropicDialect:
    """How Messages is asked."""

    features: Sequence[Feature] = FEATURES

    def __init__(self, settings: ProviderSettings) -> None:
        planner = settings.planner
        self._model, self._forced = planner.model, planner.tool_choice == "forced"
        self._allowance, self._budget = planner.max_tokens, planner.thinking_budget_tokens
        self._kind: Kind | None = None
        # Everything that the SDK would otherwise look up in environment and disk is given here.
        self._sdk = anthropic.AsyncAnthropic(
            api_key=settings.key,
            base_url=planner.url,
            timeout=planner.timeout_seconds,
            max_retries=planner.max_retries,
            open_telemetry=False,  # our own span of the call is the one source
        )

    async def body(self, request: DecisionRequest, features: Features) -> Json:
        """The request's body, as far as the server takes it."""
        force = (request.force_tool or self._forced) and "forced tool choice" in features
        kind = await self._known_kind() if force or self._budget else Kind()
        thinking = self._thinking(kind, features)
        usual = self._allowance + (self._budget or 0 if thinking else 0)
        room = usual
        if request.more_room and "more room" in features:
            room = min(usual + (MORE_ROOM - 1) * self._allowance, kind.most_tokens or 1_000_000)
        body: Json = {
            "model": self._model,
            "max_tokens": room,
            "_usual_max_tokens": usual,
            "system": request.system_prompt,
            "tools": [_tool(spec.name, spec.description, spec.parameters) for spec in request.tools],
            "messages": [{"role": "user", "content": _content(request, cached="cache_control" in features)}],
        }
        if "tool_choice" in features:
            # Models that think by themselves answer a forced choice with 400, or with no call.
            forced = force and not thinking and not kind.adaptive
            choice: Json = {"type": "any" if forced else "auto"}
            if "disable_parallel_tool_use" in features:
                choice["disable_parallel_tool_use"] = True
            body["tool_choice"] = choice
        if thinking:
            body["thinking"] = thinking
        if thinking and thinking["type"] == "enabled" and "thinking beta header" in features:
            body["extra_headers"] = {"anthropic-beta": _INTERLEAVED}
        return body

    def _thinking(self, kind: Kind, features: Features) -> Json | None:
        """The form in which the model takes thinking; a refusal changes to the other form once, then to none."""
        if self._budget is None:
            return None
        adaptive = bool(kind.adaptive) and not kind.enabled
        if "this form of thinking" not in features:
            if kind.adaptive is not None:
                return None  # the server said what it takes, and refused that
            adaptive = True
        if adaptive:
            return {"type": "adaptive", "display": "summarized"}  # the newest give no text unasked
        return {"type": "enabled", "budget_tokens": self._budget}

    async def _known_kind(self) -> Kind:
        """What the server says about the model: asked once, unless it could not be reached."""
        if self._kind is None:
            try:
                self._kind = _kind_of(await self._sdk.models.retrieve(self._model))
            except anthropic.APIConnectionError as error:
                log.info("capabilities of %s could not be read: %s", self._model, type(error).__name__)
                return Kind()
            except (anthropic.APIError, AttributeError, TypeError) as error:
                log.info("capabilities of %s are not told: %s", self._model, type(error).__name__)
                self._kind = Kind()
        return self._kind

    async def send(self, body: Json) -> str:
        sent: Json = {name: value for name, value in body.items() if not name.startswith("_")}
        try:
            return await _text(self._sdk.messages.with_raw_response.create, sent)
        except anthropic.APIStatusError as error:
            raise ProviderRefused(error.status_code, error.response.text, request_id=error.request_id) from None
        except anthropic.APITimeoutError:
            raise ProviderUnreachable("time-out", timed_out=True) from None
        except anthropic.APIConnectionError as error:
            reason = str(error.__cause__ or error) or type(error).__name__
            raise ProviderUnreachable(reason, timed_out=False) from None

    def read(self, raw: str) -> Parts | None:
        return anthropic_answer.read(raw)

    async def close(self) -> None:
        await self._sdk.close()


async def _text(create: Callable[..., Awaitable[Any]], body: Json) -> str:
    response = await create(**body)
    return str(await response.text())


def _kind_of(info: ModelInfo) -> Kind:
    if info.capabilities is None:
        return Kind(most_tokens=info.max_tokens)
    types = info.capabilities.thinking.types
    return Kind(enabled=types.enabled.supported, adaptive=types.adaptive.supported, most_tokens=info.max_tokens)


def _tool(name: str, description: str, schema: Json) -> Json:
    return {"name": name, "description": description, "input_schema": schema}


def _content(request: DecisionRequest, *, cached: bool) -> list[Json]:
    """The blocks as they come; the breakpoint is on the last one that the next turn will repeat."""
    content: list[Json] = [{"type": "text", "text": text} for text in request.user_blocks]
    if cached and request.stable_blocks:
        content[request.stable_blocks - 1]["cache_control"] = {"type": "ephemeral"}
    if request.picture is not None:
        data = base64.standard_b64encode(request.picture.data).decode("ascii")
        source = {"type": "base64", "media_type": request.picture.media_type, "data": data}
        content.append({"type": "image", "source": source})
    return content
