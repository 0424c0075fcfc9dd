"""Scenes, Worlds and replies for the planner's tests: small, and spelled by what differs."""

from typing import Any

from apex_schemas.actions import Action, Tap
from apex_schemas.decision import ToolCallDecision
from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.scene import Element, Scene, Screen
from apex_schemas.steps import Target, WorldEvent, WorldState
from apex_schemas.task import TaskRequest, TaskStarted

TASK = "0af7651916cd43dd8448eb211c80319c"
SIZE = Size(width=1080, height=2400)


def element(number: int, role: str = "button", label: str = "", *, top: int | None = None, **more: Any) -> Element:
    """A row of the screen, 100 pixels high; interactive unless said otherwise."""
    y = 100 * number if top is None else top
    bounds = more.pop("bounds", Bounds(left=0, top=y, right=1080, bottom=y + 100))
    more.setdefault("interactive", role != "text")
    more.setdefault("tap_point", bounds.center if bounds else None)
    return Element(id=f"e{number}", role=role, label=label, bounds=bounds, **more)


def scene(*elements: Element, **more: Any) -> Scene:
    more.setdefault("app", "com.apex.settings")
    more.setdefault("page", "Settings > Network")
    more.setdefault("fingerprint", "f1")
    return Scene(screen=Screen(size=SIZE), elements=elements, **more)


def network() -> Scene:
    """A page with a switch, a field, a secret field and a text."""
    return scene(
        element(1, "button", "Navigate up"),
        element(2, "switch", "Wi-Fi", checked=False),
        element(3, "field", "Name", editable=True, value="Zoë", focused=True),
        element(4, "field", "Password", editable=True, password=True, value="hunter2"),
        element(5, "text", "Connected to ApexLab"),
    )


def event(action: Action | None = None, *, success: bool | None = True, **more: Any) -> WorldEvent:
    more.setdefault("page", "Settings")
    more.setdefault("rationale", "The list is shown. Next: open Network.")
    more.setdefault("target", Target(element="e7", role="row", label="Network & internet"))
    return WorldEvent(action=action or Tap(at=Point(x=7, y=77)), success=success, **more)


def world(*events: WorldEvent, goal: str = "turn on Wi-Fi", max_turns: int = 30) -> WorldState:
    request = TaskRequest(goal=goal, task=TASK, max_turns=max_turns)
    started = TaskStarted(request=request, pool="any", request_sequence=1, request_digest="", started_at_ms=1)
    return WorldState(started=started, history=events)


def call(tool: str, *, purpose: str | None = "to get on", expected: str | None = "it is on", **arguments: Any):
    """A reply as a client gives it."""
    return ToolCallDecision(tool=tool, arguments=arguments, purpose=purpose, expected_outcome=expected)
