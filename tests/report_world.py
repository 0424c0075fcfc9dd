"""Timelines for tests of what is made of them: of any length, with any words in them."""

from typing import Any

from apex_schemas.geometry import Bounds
from apex_schemas.queries import SceneBox, TaskSummary, Timeline, TimelineCall, TimelineScene, TimelineStep

TASK = "0123456789abcdef0123456789abcdef"
LONG = "The switch is off 🙂, so tapping it turns Wi-Fi on. لأن المفتاح مغلق، سأضغط عليه. " * 125
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></svg><b2>",
    "\x1b[2J\x1b]0;owned\x07",
    "\u202eevil\u202c",
    "]]>&amp;&#x3c;",
)


def scene(*labels: str, checked: bool | None = None) -> TimelineScene:
    boxes = [
        SceneBox(
            element=f"e{number}",
            role="switch",
            label=label,
            bounds=Bounds(left=0, top=200 * number, right=1080, bottom=200 * number + 150),
            interactive=True,
            checked=checked if number == 0 else None,
        )
        for number, label in enumerate(labels)
    ]
    return TimelineScene(width=1080, height=2400, app="com.android.settings", elements=len(boxes), boxes=tuple(boxes))


_SCENE = scene("Wi-Fi", "Bluetooth", checked=False)


def step(
    turn: int,
    *,
    rationale: str = "It is off.",
    action: str = "tap",
    arguments: dict[str, Any] | None = None,
    scene: TimelineScene | None = _SCENE,
) -> TimelineStep:
    success = (True, True, False, None)[turn % 4]
    return TimelineStep(
        turn=turn,
        page="Settings",
        action=action,
        target="Wi-Fi",
        target_bounds=Bounds(left=0, top=0, right=1080, bottom=150),
        arguments=arguments or {"at": {"x": 540, "y": 75}},
        purpose="switch it on",
        expected_outcome="it is on",
        rationale=rationale,
        thinking=f"A switch. {rationale}",
        success=success,
        done=True,
        code=None if success else "STALE_SCENE",
        message=None if success else "the screen had changed",
        observe_ms=30 + turn % 7,
        plan_ms=900 + turn * 5 % 300,
        wait_ms=2,
        act_ms=120,
        calls=(TimelineCall(call=0, outcome="tool_call", model="m", input_tokens=100, output_tokens=20),),
        scene=scene,
    )


def timeline(
    turns: int, *, rationale: str = "It is off.", label: str = "Wi-Fi", goal: str = "turn on Wi-Fi"
) -> Timeline:
    """Turns with scenes that differ from each other."""
    summary = TaskSummary(
        task=TASK,
        goal=goal,
        device="sim-1",
        status="succeeded",
        turns=turns,
        started_at_ms=1_796_000_000_000,
        finished_at_ms=1_796_000_009_500,
        answer=label,
        claimed=True,
        evidence_found=False,
    )
    steps = [
        step(
            turn, rationale=rationale, scene=scene(label, *(f"Row {turn + n}" for n in range(9)), checked=turn % 2 == 0)
        )
        for turn in range(turns)
    ]
    return Timeline(summary=summary, steps=tuple(steps))
