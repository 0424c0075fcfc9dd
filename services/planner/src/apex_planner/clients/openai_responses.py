"""Responses: OpenAI's own models, with reasoning summaries when an effort is asked for. Nothing is stored there."""

import base64
from collections.abc import Sequence
from typing import Any, Final

from apex_planner.clients import openai_sdk, responses_answer
from apex_planner.clients.features import MORE_ROOM, Feature, Features, feature
from apex_planner.clients.reading import Json, Parts
from apex_planner.settings import ProviderSettings
from apex_schemas.decision import DecisionRequest

FEATURES: Final = (
    feature("forced tool choice", r"tool_choice", lambda body: body.get("tool_choice") == "required"),
    feature("tool_choice", r"tool_choice", lambda body: "tool_choice" in body),
    feature("parallel_tool_calls", r"parallel_tool_calls", lambda body: "parallel_tool_calls" in body),
    feature("strict", r"\bstrict\b", lambda body: any("strict" in tool for tool in body["tools"])),
    feature("store", r"\bstore\b", lambda body: "store" in body),
    feature("reasoning summary", r"summar", lambda body: "summary" in body.get("reasoning", {})),
    feature("reasoning", r"reasoning", lambda body: "reasoning" in body),
    feature("more room", r"max_output_tokens", lambda body: body["_more_room"]),
)


class ResponsesDialect:
    """How Responses is asked."""

    features: Sequence[Feature] = FEATURES

    def __init__(self, settings: ProviderSettings) -> None:
        planner = settings.planner
        self._model, self._forced = planner.model, planner.tool_choice == "forced"
        self._max_tokens, self._effort = planner.max_tokens, planner.reasoning_effort
        self._sdk = openai_sdk.make_sdk(settings)

    async def body(self, request: DecisionRequest, features: Features) -> Json:
        """The request's body, as far as the server takes it."""
        more_room = request.more_room and "more room" in features
        # Left out, `strict` would be taken as true, and the schemas rewritten.
        strict: Json = {"strict": False} if "strict" in features else {}
        body: Json = {
            "model": self._model,
            "instructions": request.system_prompt,
            "input": [{"role": "user", "content": _content(request)}],
            "tools": [
                {
                    "type": "function",
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": spec.parameters,
                    **strict,
                }
                for spec in request.tools
            ],
            "max_output_tokens": self._max_tokens * (MORE_ROOM if more_room else 1),
            "_more_room": more_room,
        }
        if "store" in features:
            body["store"] = False
        if "tool_choice" in features:
            forced = (request.force_tool or self._forced) and "forced tool choice" in features
            body["tool_choice"] = "required" if forced else "auto"
        if "parallel_tool_calls" in features:
            body["parallel_tool_calls"] = False
        if self._effort is not None and "reasoning" in features:
            reasoning: dict[str, Any] = {"effort": self._effort}
            if self._effort != "none" and "reasoning summary" in features:
                reasoning["summary"] = "auto"
            body["reasoning"] = reasoning
        return body

    async def send(self, body: Json) -> str:
        return await openai_sdk.send(self._sdk.responses.with_raw_response.create, body)

    def read(self, raw: str) -> Parts | None:
        return responses_answer.read(raw)

    async def close(self) -> None:
        await self._sdk.close()


def _content(request: DecisionRequest) -> list[Json]:
    content: list[Json] = [{"type": "input_text", "text": "\n".join(request.user_blocks)}]
    if request.picture is not None:
        data = base64.standard_b64encode(request.picture.data).decode("ascii")
        url = f"data:{request.picture.media_type};base64,{data}"
        content.append({"type": "input_image", "image_url": url, "detail": "high"})
    return content
