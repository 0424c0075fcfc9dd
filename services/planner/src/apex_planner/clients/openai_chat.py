"""Chat Completions: what servers compatible with OpenAI speak, with thinking in `reasoning_content` or `reasoning`."""

import base64
from collections.abc import Sequence
from typing import Final

from apex_planner.clients import chat_answer, openai_sdk
from apex_planner.clients.features import MORE_ROOM, Feature, Features, feature
from apex_planner.clients.reading import Json, Parts
from apex_planner.settings import ProviderSettings
from apex_schemas.decision import DecisionRequest, Picture

FEATURES: Final = (
    feature("forced tool choice", r"tool_choice", lambda body: body.get("tool_choice") == "required"),
    feature("tool_choice", r"tool_choice", lambda body: "tool_choice" in body),
    feature("parallel_tool_calls", r"parallel_tool_calls", lambda body: "parallel_tool_calls" in body),
    # OpenAI's own newest models take tools on this API only without reasoning.
    feature("reasoning", r"reasoning", lambda body: body.get("reasoning_effort") != "none"),
    feature("reasoning_effort", r"reasoning", lambda body: "reasoning_effort" in body),
    feature("more room", r"max_(completion_)?tokens", lambda body: body["_more_room"]),
    feature("max_completion_tokens", r"max_completion_tokens", lambda body: "max_completion_tokens" in body),
)


class ChatDialect:
    """How Chat Completions is asked."""

    features: Sequence[Feature] = FEATURES

    def __init__(self, settings: ProviderSettings) -> None:
        planner = settings.planner
        self._model, self._forced = planner.model, planner.tool_choice == "forced"
        self._max_tokens, self._effort = planner.max_tokens, planner.reasoning_effort
        self._sdk = openai_sdk.make_sdk(settings)

    async def body(self, request: DecisionRequest, features: Features) -> Json:
        """The request's body, as far as the server takes it."""
        more_room = request.more_room and "more room" in features
        limit = "max_completion_tokens" if "max_completion_tokens" in features else "max_tokens"
        body: Json = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": request.system_prompt},
                {"role": "user", "content": _content("\n".join(request.user_blocks), request.picture)},
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters},
                }
                for spec in request.tools
            ],
            limit: self._max_tokens * (MORE_ROOM if more_room else 1),
            "_more_room": more_room,
        }
        if "tool_choice" in features:
            forced = (request.force_tool or self._forced) and "forced tool choice" in features
            body["tool_choice"] = "required" if forced else "auto"
        if "parallel_tool_calls" in features:
            body["parallel_tool_calls"] = False
        effort = self._effort if "reasoning" in features else "none"
        if effort is not None and "reasoning_effort" in features:
            body["reasoning_effort"] = effort
        return body

    async def send(self, body: Json) -> str:
        return await openai_sdk.send(self._sdk.chat.completions.with_raw_response.create, body)

    def read(self, raw: str) -> Parts | None:
        return chat_answer.read(raw)

    async def close(self) -> None:
        await self._sdk.close()


def _content(text: str, picture: Picture | None) -> str | list[Json]:
    """Plain text where there is no picture: not every compatible server takes a list."""
    if picture is None:
        return text
    data = base64.standard_b64encode(picture.data).decode("ascii")
    image = {"url": f"data:{picture.media_type};base64,{data}", "detail": "high"}
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": image}]
