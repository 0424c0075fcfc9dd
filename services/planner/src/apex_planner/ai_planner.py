"""AIPlanner: at most one step for a turn, decided anew from the current Scene by one provider call, at most two.

It knows no NATS, SDK or transport: whoever composes it gives it a ToolCallingClient.
"""

import asyncio
import logging

from msgspec import structs

from apex_planner.clients.protocol import ToolCallingClient
from apex_planner.decide import (
    Correction,
    Outcome,
    PlanFailure,
    corrective,
    first_request,
    out_of_tokens,
    read_reply,
)
from apex_planner.errors import PictureUnreadable
from apex_planner.fitting import fitted
from apex_planner.loops import FAIL
from apex_planner.tools import ToolSet
from apex_schemas.decision import DecisionReply, Picture
from apex_schemas.scene import Scene
from apex_schemas.steps import PlannedStep, WorldState

log = logging.getLogger(__name__)


class AIPlanner:
    """Decides turns with a model. `max_tokens_per_task` bounds the tokens, both ways, of all calls of a task;
    `loop_limit` how often an act is repeated on one screen before the task fails, 0 for ever."""

    def __init__(
        self,
        client: ToolCallingClient,
        *,
        tool_set: ToolSet = "core",
        max_tokens_per_task: int | None = None,
        loop_limit: int = FAIL,
    ) -> None:
        self._client, self._loop_limit = client, loop_limit
        self._tool_set: ToolSet = tool_set
        self._most = max_tokens_per_task

    async def plan(
        self, scene: Scene, world: WorldState, screenshot: Picture | None = None, *, task: str | None = None
    ) -> Outcome:
        """The step of turn `world.turn`, or why there is none. `task` is needed where the request came without an id.

        There is no retry but one: an answer that cannot be used is asked for once more, with the fault named. What
        the client raises (an endpoint away, a log that does not answer) is let through: nothing is decided then.
        """
        before = sum(event.tokens_used for event in world.history)
        if (spent := out_of_tokens(before, self._most)) is not None:
            return spent
        picture = await _fitted(screenshot)
        task = task or world.started.request.task or ""
        request = first_request(scene, world, picture, task=task, tool_set=self._tool_set, loop_limit=self._loop_limit)
        if isinstance(request, PlanFailure):
            return request
        reply = await self._client.decide(request)
        used = _tokens(reply)
        outcome = read_reply(reply, scene, request)
        if isinstance(outcome, Correction):
            if (spent := out_of_tokens(before + used, self._most)) is not None:
                return spent
            request = corrective(request, outcome)
            reply = await self._client.decide(request)
            used += _tokens(reply)
            outcome = read_reply(reply, scene, request)
        assert not isinstance(outcome, Correction)
        return structs.replace(outcome, tokens_used=used) if isinstance(outcome, PlannedStep) else outcome


def _tokens(reply: DecisionReply) -> int:
    return reply.usage.input_tokens + reply.usage.output_tokens


async def _fitted(screenshot: Picture | None) -> Picture | None:
    """The picture as it is sent; None where it cannot be read."""
    if screenshot is None:
        return None
    try:
        return await asyncio.to_thread(fitted, screenshot)
    except PictureUnreadable as error:
        log.warning("deciding without a picture: %s", error)
        return None
