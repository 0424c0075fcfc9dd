"""One decision without any server but the provider's: what `apex plan` does, and what it prints."""

from collections.abc import Sequence

from msgspec import Struct

from apex_planner.ai_planner import AIPlanner
from apex_planner.clients.protocol import Answer, ProviderClient
from apex_planner.decide import PlanFailure
from apex_planner.recorded import record_of
from apex_planner.tools import ToolSet
from apex_schemas.decision import DecisionRecord, DecisionReply, DecisionRequest, Picture
from apex_schemas.ids import new_task_id
from apex_schemas.scene import Scene
from apex_schemas.steps import PlannedStep, WorldEvent, WorldState
from apex_schemas.task import TaskRequest, TaskStarted


class PlanReport(Struct, frozen=True, kw_only=True):
    """`outcome` is `planned` or the code of the failure; `records` has one entry for each provider call."""

    outcome: str
    step: PlannedStep | None = None
    error: str | None = None
    records: tuple[DecisionRecord, ...] = ()


class _Remembering:
    """A ToolCallingClient that keeps what was asked and answered."""

    def __init__(self, provider: ProviderClient) -> None:
        self._provider = provider
        self.records: list[DecisionRecord] = []

    async def decide(self, request: DecisionRequest) -> DecisionReply:
        answer: Answer = await self._provider.ask(request)
        self.records.append(record_of(request, answer))
        return answer.reply


async def plan_once(
    scene: Scene,
    goal: str,
    client: ProviderClient,
    *,
    picture: Picture | None = None,
    history: Sequence[WorldEvent] = (),
    max_turns: int = 30,
    tool_set: ToolSet = "core",
    max_tokens_per_task: int | None = None,
) -> PlanReport:
    """Decide one turn on a saved Scene; `clients.choose.provider_client` makes the client. Nothing is stored."""
    task = new_task_id()
    request = TaskRequest(goal=goal, task=task, max_turns=max_turns)
    started = TaskStarted(request=request, pool="none", request_sequence=0, request_digest="", started_at_ms=0)
    remembering = _Remembering(client)
    planner = AIPlanner(remembering, tool_set=tool_set, max_tokens_per_task=max_tokens_per_task)
    outcome = await planner.plan(scene, WorldState(started=started, history=tuple(history)), picture)
    records = tuple(remembering.records)
    match outcome:
        case PlannedStep():
            return PlanReport(outcome="planned", step=outcome, records=records)
        case PlanFailure(code=code, reason=reason):
            return PlanReport(outcome=code, error=reason, records=records)
