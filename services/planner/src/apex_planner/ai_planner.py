"""AIPlanner: at most one step for a turn, decided anew from the current Scene by one provider call, at most two.

It knows no NATS, SDK or transport: whoever composes it gives it a ToolCallingClient.
"""

from apex_planner.clients.protocol import ToolCallingClient
from apex_planner.decide import Correction, Outcome, PlanFailure, corrective, first_request, read_reply
from apex_planner.tools import ToolSet
from apex_schemas.decision import Picture
from apex_schemas.scene import Scene
from apex_schemas.steps import WorldState


class AIPlanner:
    """Decides turns with a model."""

    def __init__(self, client: ToolCallingClient, *, tool_set: ToolSet = "core") -> None:
        self._client = client
        self._tool_set: ToolSet = tool_set

    async def plan(
        self, scene: Scene, world: WorldState, screenshot: Picture | None = None, *, task: str | None = None
    ) -> Outcome:
        """The step of turn `world.turn`, or why there is none. `task` is needed where the request came without an id.

        There is no retry but one: an answer that cannot be used is asked for once more, with the fault named. What
        the client raises (an endpoint away, a log that does not answer) is let through: nothing is decided then.
        """
        task = task or world.started.request.task or ""
        request = first_request(scene, world, screenshot, task=task, tool_set=self._tool_set)
        if isinstance(request, PlanFailure):
            return request
        outcome = read_reply(await self._client.decide(request), scene, request)
        if isinstance(outcome, Correction):
            request = corrective(request, outcome)
            outcome = read_reply(await self._client.decide(request), scene, request)
        assert not isinstance(outcome, Correction)
        return outcome
