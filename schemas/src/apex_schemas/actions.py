"""What can be done in a turn: a tagged union, so that an action carries just the fields that it needs.

`Tap` to `FinishTask` are the model's six tools. `DescribeScreen` is the stub planner's; `Look` stands for a turn
without an act and is never offered to a model. The rest is the opt-in extended set.
"""

from typing import Annotated, Literal

from msgspec import Meta

from apex_schemas.geometry import Point
from apex_schemas.structs import Wire

Milliseconds = Annotated[int, Meta(ge=0, le=60_000)]
AppName = Annotated[str, Meta(min_length=1, max_length=256)]
"""A package or bundle id, or the label under an icon."""


class _Action(Wire, tag_field="type", frozen=True, kw_only=True):
    pass


class Tap(_Action, tag="tap", frozen=True, kw_only=True):
    at: Point


class Swipe(_Action, tag="swipe", frozen=True, kw_only=True):
    """A finger's movement: the content follows the finger."""

    start: Point
    end: Point
    duration_ms: Milliseconds = 300


class InputText(_Action, tag="input_text", frozen=True, kw_only=True):
    """Replace what a field holds. Without `at` the field that has the focus is meant."""

    text: Annotated[str, Meta(max_length=10_000)]
    at: Point | None = None


class LaunchApp(_Action, tag="launch_app", frozen=True, kw_only=True):
    app: AppName


class TerminateApp(_Action, tag="terminate_app", frozen=True, kw_only=True):
    app: AppName


class FinishTask(_Action, tag="finish_task", frozen=True, kw_only=True):
    """End the task. `success` is the model's claim; `evidence` is what on the current screen shows it."""

    success: bool
    reason: str
    answer: str | None = None
    evidence: str | None = None


class DescribeScreen(_Action, tag="describe_screen", frozen=True, kw_only=True):
    pass


class Look(_Action, tag="look", frozen=True, kw_only=True):
    """Do nothing but look again; `code` and `reason` say why no act could be decided."""

    code: str
    reason: str


class Back(_Action, tag="back", frozen=True, kw_only=True):
    pass


class Home(_Action, tag="home", frozen=True, kw_only=True):
    pass


class LongPress(_Action, tag="long_press", frozen=True, kw_only=True):
    at: Point
    duration_ms: Milliseconds = 1_000


class Scroll(_Action, tag="scroll", frozen=True, kw_only=True):
    """A movement of the content's view: `down` shows what lies further down. `at` names the container."""

    direction: Literal["up", "down", "left", "right"]
    at: Point | None = None


class PressKey(_Action, tag="press_key", frozen=True, kw_only=True):
    key: Literal["enter", "delete", "tab", "search", "volume_up", "volume_down", "app_switch"]


class Wait(_Action, tag="wait", frozen=True, kw_only=True):
    seconds: Annotated[float, Meta(gt=0, le=30)]


DeviceAction = Tap | Swipe | InputText | LaunchApp | TerminateApp | Back | Home | LongPress | Scroll | PressKey | Wait
"""What touches a phone, and so needs an intent before it."""

Action = DeviceAction | FinishTask | DescribeScreen | Look


def tool_name(action: Action) -> str:
    """The action's name on the wire and as a tool."""
    tag = action.__struct_config__.tag
    assert isinstance(tag, str)
    return tag
