"""One turn: what was decided, what is about to be done, what came of it; and the World folded from the turns."""

from apex_schemas.actions import Action, DeviceAction
from apex_schemas.geometry import Bounds
from apex_schemas.scene import Scene, SemanticScene
from apex_schemas.structs import Wire
from apex_schemas.task import TaskStarted


class Target(Wire, frozen=True, kw_only=True):
    """The element that an action names: enough to find it again on the phone, and to speak of it afterwards.

    `app` is that of the Scene in which it was seen.
    """

    element: str
    role: str
    label: str
    bounds: Bounds | None = None
    resource_id: str | None = None
    class_name: str | None = None
    text: str | None = None
    description: str | None = None
    context: str = "native"
    app: str | None = None


class DecisionKey(Wire, frozen=True, kw_only=True):
    """Names the provider call that a step came from: the key of its record."""

    task: str
    turn: int
    call: int


class PlannedStep(Wire, frozen=True, kw_only=True):
    """The one decision of a turn. `purpose` and `expected_outcome` are None for steps that touch no phone.

    `app` is that of the Scene; `tokens_used` counts input and output of all provider calls of the turn.
    `screen_changed`: whether the Scene differs from that of the turn before; None in turn 0 and where it is not known.
    """

    action: Action
    page: str
    target: Target | None = None
    purpose: str | None = None
    expected_outcome: str | None = None
    rationale: str | None = None
    thinking: str | None = None
    decision: DecisionKey | None = None
    ungrounded: bool = False
    fingerprint: str = ""
    evidence_found: bool | None = None
    planned_at_ms: int = 0
    plan_ms: int = 0
    app: str | None = None
    tokens_used: int = 0
    screen_changed: bool | None = None


class ActIntent(Wire, frozen=True, kw_only=True):
    """Written before the phone is touched. `deadline_ms` is how long the act may take, from the writing of this.
    `server` stands for the Appium server that has the session (a hash: its URL may hold a key), so that whoever finds
    the act begun knows where the session can be ended.
    """

    action: DeviceAction
    session: str
    deadline_ms: int
    worker: str = ""
    server: str = ""


class Timings(Wire, frozen=True, kw_only=True):
    """Milliseconds by stage; None where the stage did not take place."""

    wait_ms: int | None = None
    verify_ms: int | None = None
    act_ms: int | None = None
    read_back_ms: int | None = None


class WorldEvent(Wire, frozen=True, kw_only=True):
    """What came of a step. `success` None means unknown: the phone may have been touched, and is not touched again.

    `page` and `fingerprint` are those of the Scene on which the act was decided. `code` is set when the step failed
    or was refused; `tokens_used` and `screen_changed` are the step's: what the act itself changed is told by the event
    of the next turn.
    """

    action: Action
    success: bool | None
    code: str | None = None
    message: str | None = None
    page: str | None = None
    target: Target | None = None
    purpose: str | None = None
    expected_outcome: str | None = None
    rationale: str | None = None
    thinking: str | None = None
    scene_summary: SemanticScene | Scene | None = None
    session: str | None = None
    ungrounded: bool = False
    timings: Timings | None = None
    happened_at_ms: int = 0
    fingerprint: str = ""
    tokens_used: int = 0
    screen_changed: bool | None = None


class WorldState(Wire, frozen=True, kw_only=True):
    """What a planner knows before it decides turn n: the start and all n events before it, in order."""

    started: TaskStarted
    history: tuple[WorldEvent, ...] = ()

    @property
    def turn(self) -> int:
        return len(self.history)

    @property
    def current_page(self) -> str | None:
        """The page of the last step that has one; None before the first."""
        return next((event.page for event in reversed(self.history) if event.page is not None), None)
