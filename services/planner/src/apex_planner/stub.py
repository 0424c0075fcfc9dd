"""The planner without a model: it describes the screen once and is done. The control flow is that of the real one."""

from apex_planner.decide import Outcome
from apex_schemas.actions import Action, DescribeScreen, FinishTask
from apex_schemas.decision import Picture
from apex_schemas.scene import Scene
from apex_schemas.steps import PlannedStep, WorldState


class StubPlanner:
    """Stands where AIPlanner stands when AI_PLANNER_ENABLED is not true."""

    async def plan(
        self, scene: Scene, world: WorldState, screenshot: Picture | None = None, *, task: str | None = None
    ) -> Outcome:
        """`DescribeScreen` first; once that is in the history, the end."""
        described = any(isinstance(event.action, DescribeScreen) for event in world.history)
        action: Action = FinishTask(success=True, reason="screen described") if described else DescribeScreen()
        return PlannedStep(action=action, page=scene.page, fingerprint=scene.fingerprint)
