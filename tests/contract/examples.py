"""One full and one minimal example of every type that travels, and old forms that must stay readable."""

from typing import Final

import msgspec

from apex_schemas import actions as act
from apex_schemas.decision import (
    DecisionFault,
    DecisionProgress,
    DecisionRecord,
    DecisionRequest,
    Picture,
    PlannerClaim,
    ToolCallDecision,
    ToolSpec,
    Usage,
)
from apex_schemas.devices import (
    Claim,
    DeadLetter,
    DeviceControl,
    DeviceRecord,
    DeviceStatus,
    HandledAgain,
    SessionHandle,
    SessionReply,
    SessionRequest,
)
from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.queries import (
    DecisionsQuery,
    QueryError,
    RecordedDecisions,
    SceneBox,
    TaskList,
    TasksQuery,
    TaskSummary,
    Timeline,
    TimelineCall,
    TimelineQuery,
    TimelineScene,
    TimelineStep,
    WaitingRequest,
    WaitingRequests,
)
from apex_schemas.scene import Element, Keyboard, Region, Scene, Screen, ScreenshotRef, SemanticScene
from apex_schemas.steps import ActIntent, DecisionKey, PlannedStep, Target, Timings, WorldEvent
from apex_schemas.task import Approval, CancelRequest, TaskFinished, TaskRequest, TaskStarted

TASK: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
KEY: Final = DecisionKey(task=TASK, turn=3, call=0)
AT: Final = Point(x=540, y=320)
BOUNDS: Final = Bounds(left=40, top=260, right=1040, bottom=380)
SIZE: Final = Size(width=1080, height=2400)
USAGE: Final = Usage(
    input_tokens=812, output_tokens=96, cache_read_tokens=512, cache_write_tokens=40, reasoning_tokens=31
)
TARGET: Final = Target(
    element="e2", role="switch", label="Wi-Fi", bounds=BOUNDS, resource_id="com.apex.settings:id/wifi",
    class_name="android.widget.Switch", text="Wi-Fi", description="Wi-Fi, off", context="native",
)  # fmt: skip
ELEMENT: Final = Element(
    id="e2", role="switch", label="Wi-Fi", value="off", hint="none", bounds=BOUNDS, tap_point=AT, obstacle="occluded",
    parent="e1", depth=2, interactive=True, editable=True, scrollable=True, enabled=False, checked=False,
    selected=True, focused=True, password=True, resource_id="com.apex.settings:id/wifi",
    class_name="android.widget.Switch", text="Wi-Fi", description="Wi-Fi, off", context="web",
)  # fmt: skip
SHOT: Final = ScreenshotRef(
    subject=f"shot.{TASK}.3.9f86d081884c7d65", sha256="ab" * 32, bytes=182_340, size=SIZE, media_type="image/jpeg"
)
SCENE: Final = Scene(
    app="com.apex.settings", page="Settings > Network", screen=Screen(size=SIZE, scale=3.0, rotation=90),
    elements=(ELEMENT,), keyboard=Keyboard(bounds=BOUNDS), fingerprint="5d41402abc4b2a76", settled=False,
    source="web", recovered=True, recovery=("cut",), omitted=7, screenshot=SHOT, activity=".NetworkActivity",
    observed_at_ms=1_796_000_000_000, observe_ms=41,
)  # fmt: skip
LIST: Final = Element(id="e3", role="list", scrollable=True, more=("above", "below"), change="new")
TYPING: Final = Scene(
    app=None, page="", screen=Screen(size=SIZE), elements=(LIST,), keyboard=Keyboard(bounds=BOUNDS, keys=33)
)
REGION: Final = Region(kind="dialog", bounds=BOUNDS, label="Allow?", elements=("e2",))
SEMANTIC: Final = SemanticScene(
    **{field: getattr(SCENE, field) for field in SCENE.__struct_fields__}, regions=(REGION,), dialogs=(REGION,)
)
REQUEST: Final = TaskRequest(
    goal="Turn on Wi-Fi — 日本語 🙂", task=TASK, max_turns=12, timeout_s=600, not_after=1_796_003_600.5
)
HANDLE: Final = SessionHandle(id="f3a1", url="http://phones:4723", platform="ios", web=True, scale=3.0)
DECISION: Final = ToolCallDecision(
    tool="tap", arguments={"element": "e2", "x": 1}, purpose="switch it on", expected_outcome="it shows on",
    text_output="It is off.", thinking="It is a switch.", usage=USAGE, provider="anthropic", model="m",
    stop_reason="tool_use", response_id="msg_1", latency_ms=1_840,
)  # fmt: skip
FAULT: Final = DecisionFault(
    code="no_tool_call", message="no tool was called", correctable=True, text_output="Done.", thinking="Hm.",
    usage=USAGE, provider="openai", model="m", stop_reason="stop", response_id="resp_1", latency_ms=900,
)  # fmt: skip
EVERY_ACTION: Final[tuple[act.Action, ...]] = (
    act.Tap(at=AT),
    act.Swipe(start=AT, end=Point(x=540, y=1200), duration_ms=500),
    act.InputText(text="Zoë 李 🙂", at=AT),
    act.LaunchApp(app="com.apex.settings"),
    act.TerminateApp(app="Settings"),
    act.FinishTask(success=True, reason="done", answer="ApexLab", evidence="Connected to ApexLab"),
    act.DescribeScreen(),
    act.Look(code="SCENE_TOO_OLD", reason="the Scene was 31 s old"),
    act.Back(),
    act.Home(),
    act.LongPress(at=AT, duration_ms=1_500),
    act.Scroll(direction="down", at=AT),
    act.PressKey(key="enter"),
    act.Wait(seconds=2.5),
)


def _step(action: act.Action) -> PlannedStep:
    return PlannedStep(
        action=action, page="Settings > Network", target=TARGET, purpose="switch it on",
        expected_outcome="it shows on", rationale="It is off.", thinking="It is a switch.", decision=KEY,
        ungrounded=True, fingerprint="5d41402abc4b2a76", evidence_found=True, planned_at_ms=1_796_000_000_100,
        plan_ms=1_900,
    )  # fmt: skip


def _event(action: act.Action) -> WorldEvent:
    return WorldEvent(
        action=action, success=None, code="UNKNOWN_OUTCOME", message="the answer was lost",
        page="Settings > Network", target=TARGET, purpose="switch it on", expected_outcome="it shows on",
        rationale="It is off.", thinking="It is a switch.", scene_summary=SEMANTIC, session="f3a1", ungrounded=True,
        timings=Timings(wait_ms=2, verify_ms=4, act_ms=61, read_back_ms=5), happened_at_ms=1_796_000_000_200,
    )  # fmt: skip


_SUMMARY: Final = TaskSummary(
    task=TASK, goal="Turn on Wi-Fi", device="sim-1", status="succeeded", turns=4, started_at_ms=1, finished_at_ms=2,
    reason="on", failure_reason="none", answer="ApexLab", claimed=True, evidence_found=True, request_sequence=9,
)  # fmt: skip

EXAMPLES: Final[dict[str, dict[str, msgspec.Struct]]] = {
    "task_started.v1": {
        "full": TaskStarted(
            request=REQUEST, pool="any", request_sequence=9, request_digest="d" * 32, started_at_ms=1_796_000_000_000,
            traceparent=f"00-{TASK}-00f067aa0ba902b7-01",
        ),
        "minimal": TaskStarted(
            request=TaskRequest(goal="x"), pool="sim-1", request_sequence=1, request_digest="d", started_at_ms=1
        ),
    },
    "task_finished.v1": {
        "full": TaskFinished(
            status="failed", turns=4, finished_at_ms=1_796_000_060_000, by="planner-host-1", reason="no such switch",
            failure_reason="no such switch", stage="planner", claimed=False, evidence="e2 off", evidence_found=False,
            answer="none", goal="Turn on Wi-Fi",
        ),
        "minimal": TaskFinished(status="cancelled", turns=0, finished_at_ms=1, by="x"),
    },
    "scene.v1": {"full": SCENE, "typing": TYPING, "minimal": Scene(app=None, page="", screen=Screen(size=SIZE))},
    "semantic_scene.v1": {"full": SEMANTIC, "minimal": SemanticScene(app=None, page="", screen=Screen(size=SIZE))},
    "planned_step.v1": {
        **{act.tool_name(action): _step(action) for action in EVERY_ACTION},
        "minimal": PlannedStep(action=act.DescribeScreen(), page=""),
        "counted": PlannedStep(action=act.Back(), page="", app="com.apex.settings", tokens_used=908),
        "without_effect": PlannedStep(action=act.Back(), page="", fingerprint="5d41402abc4b2a76", screen_changed=False),
    },
    "act_intent.v1": {
        "full": ActIntent(action=act.Tap(at=AT), session="f3a1", deadline_ms=60_000, worker="executor-host-1"),
        "minimal": ActIntent(action=act.Back(), session="", deadline_ms=1),
    },
    "world_event.v1": {
        **{act.tool_name(action): _event(action) for action in EVERY_ACTION},
        "minimal": WorldEvent(action=act.Tap(at=AT), success=True),
        "counted": WorldEvent(action=act.Back(), success=True, fingerprint="5d41402abc4b2a76", tokens_used=908),
        "after_a_change": WorldEvent(
            action=act.Back(), success=True, fingerprint="5d41402abc4b2a76", screen_changed=True
        ),
    },
    "decision_record.v1": {
        "full": DecisionRecord(
            key=KEY, system_prompt="You drive a phone.", user_prompt="Goal: x", tools=("tap", "finish_task"),
            reply=DECISION, raw_answer='{"id":"msg_1"}', screenshot_sha256="ab" * 32, screenshot_bytes=182_340,
            requested_at_ms=1_796_000_000_000, worker="planner-decision-host-1",
        ),
        "fault": DecisionRecord(key=KEY, system_prompt="s", user_prompt="u", tools=(), reply=FAULT),
        "minimal": DecisionRecord(
            key=KEY, system_prompt="", user_prompt="", tools=(), reply=ToolCallDecision(tool="tap", arguments={})
        ),
    },
    "planner_claim.v1": {"full": PlannerClaim(worker="planner-decision-host-1", call=1)},
    "device_record.v1": {
        "full": DeviceRecord(
            worker="executor-host-1", epoch=3, platform="ios", state="busy", session=HANDLE,
            claim=Claim(
                task=TASK, request=b'{"goal":"x"}', request_sequence=9, pool="any", attempt="9f86d081",
                traceparent=f"00-{TASK}-00f067aa0ba902b7-01",
            ),
            renewals=41, reason="none", released=True,
        ),
        "minimal": DeviceRecord(worker="w", epoch=1),
        "waiting": DeviceRecord(worker="w", epoch=1, state="waiting", reason="may it tap Send?", waiting_turn=3),
        "paused": DeviceRecord(
            worker="w", epoch=1, session=SessionHandle(id="f3a1", url="http://a", opened_at_ms=1_796_000_000_000),
            paused="paused by ada: new screen", failures=2,
        ),
    },
    "dead_letter.v1": {
        "full": DeadLetter(
            service="planner", reason="cannot be read", subject="task.sim-1.x.0.scene", bytes=9, sha256="ab" * 32,
            stream="TASKS", sequence=12,
        ),
    },
    "cancel_request.v1": {"full": CancelRequest(reason="wrong phone"), "minimal": CancelRequest()},
    "TaskRequest": {
        "full": REQUEST,
        "minimal": TaskRequest(goal="x"),
        "apps": TaskRequest(goal="x", apps=("com.apex.*",), launch="com.apex.notes", terminate=("Notes",)),
        "secrets": TaskRequest(goal="x", secrets=("BANK_PIN",)),
    },
    "DecisionRequest": {
        "full": DecisionRequest(
            key=KEY, system_prompt="You drive a phone.", user_blocks=("Goal: x", "History: none"),
            tools=(ToolSpec(name="tap", description="Tap.", parameters={"type": "object", "properties": {}}),),
            stable_blocks=1, force_tool=True, more_room=True,
            picture=Picture(data=b"\x89PNG", media_type="image/png", size=SIZE, sha256="ab" * 32),
        ),
        "minimal": DecisionRequest(key=KEY, system_prompt="", user_blocks=(), tools=()),
        "resized": DecisionRequest(
            key=KEY, system_prompt="", user_blocks=(), tools=(),
            picture=Picture(
                data=b"\xff\xd8", media_type="image/jpeg", size=Size(width=705, height=1568), sha256="ab" * 32,
                original_bytes=182_340,
            ),
        ),
    },
    "ToolCallDecision": {"full": DECISION, "minimal": ToolCallDecision(tool="tap", arguments={})},
    "DecisionFault": {"full": FAULT, "minimal": DecisionFault(code="timeout", message="", correctable=False)},
    "DecisionProgress": {"full": DecisionProgress(waited_ms=10_000)},
    "SessionRequest": {"full": SessionRequest(dead_session="f3a1")},
    "SessionReply": {"full": SessionReply(session=HANDLE), "minimal": SessionReply(reason="no answer")},
    "DeviceStatus": {
        "full": DeviceStatus(
            device="sim-1", platform="android", state="busy", worker="w", epoch=2, task=TASK, session="f3a1",
            reason="none",
        ),
        "waiting": DeviceStatus(
            device="sim-1", platform="android", state="waiting", worker="w", epoch=1, task=TASK, waiting_turn=3
        ),
        "aside": DeviceStatus(
            device="sim-1", platform="ios", state="quarantined", worker="w", epoch=1, pools=("sim-1", "lab", "ios"),
            session_age_s=61, paused=True, failures=3, retry_s=15,
        ),
        "stale": DeviceStatus(
            device="sim-1", platform="android", state="busy", worker="w", epoch=1, renewed_s=41, stale=True
        ),
    },
    "DeviceControl": {
        "full": DeviceControl(action="pause", by="ada", reason="new screen"),
        "minimal": DeviceControl(action="resume"),
    },
    "HandledAgain": {
        "full": HandledAgain(outcome="failed", reason="cannot be read", end=f"task {TASK} failed: cannot be seen"),
        "minimal": HandledAgain(outcome="handled"),
        "ended": HandledAgain(outcome="ended", end=f"task {TASK} succeeded: done"),
        "waiting": HandledAgain(outcome="waiting", reason="the database is away"),
        "gone": HandledAgain(outcome="gone", reason="REQUESTS does not hold it any more"),
    },
    "WaitingRequests": {
        "full": WaitingRequests(
            waiting=(WaitingRequest(task=TASK, pool="any", sequence=9, goal="x", waits_s=12, left_s=3_588),), omitted=1
        ),
        "minimal": WaitingRequests(waiting=(WaitingRequest(task=TASK, pool="any", sequence=9),)),
        "begun": WaitingRequests(complete=False),
    },
    "TimelineQuery": {
        "full": TimelineQuery(task=TASK, request_sequence=9),
        "minimal": TimelineQuery(),
        "page": TimelineQuery(task=TASK, from_turn=40, scenes=True),
    },
    "Timeline": {
        "full": Timeline(
            summary=_SUMMARY,
            steps=(
                TimelineStep(
                    turn=0, page="Home", action="tap", target="Settings", arguments={"x": 1}, purpose="open",
                    expected_outcome="open", rationale="r", thinking="t", success=True, done=True, code="NONE",
                    message="m", observe_ms=40, plan_ms=1_900, act_ms=60,
                    calls=(
                        TimelineCall(
                            call=0, outcome="tool_call", model="m", tool="tap", arguments={"x": 1}, rationale="r",
                            thinking="t", error="none", input_tokens=812, output_tokens=96, cache_read_tokens=512,
                            reasoning_tokens=31, latency_ms=1_840,
                        ),
                    ),
                ),
            ),
        ),
        "covered": Timeline(
            summary=_SUMMARY,
            steps=(
                TimelineStep(
                    turn=0,
                    scene=TimelineScene(
                        width=1,
                        height=1,
                        boxes=(
                            SceneBox(
                                element="e1",
                                role="button",
                                bounds=Bounds(left=0, top=0, right=1, bottom=1),
                                obstacle="occluded",
                            ),
                        ),
                    ),
                ),
            ),
        ),
        "without_effect": Timeline(summary=_SUMMARY, steps=(TimelineStep(turn=0, effect_seen=False),)),
        "seen": Timeline(
            summary=_SUMMARY,
            steps=(
                TimelineStep(
                    turn=3,
                    target_bounds=Bounds(left=1, top=2, right=3, bottom=4),
                    wait_ms=1,
                    verify_ms=2,
                    read_back_ms=3,
                    event_at_ms=1_796_000_000_004,
                    calls=(TimelineCall(call=0, outcome="tool_call", model="m", cost_usd=0.25),),
                    scene=TimelineScene(
                        width=1080,
                        height=2400,
                        app="a.b",
                        elements=1,
                        boxes=(
                            SceneBox(
                                element="e1",
                                role="switch",
                                bounds=Bounds(left=0, top=0, right=9, bottom=9),
                                label="Wi-Fi",
                                checked=True,
                            ),
                        ),
                    ),
                ),
            ),
            next_turn=4,
        ),
        "paid": Timeline(
            summary=_SUMMARY,
            steps=(
                TimelineStep(
                    turn=0, calls=(TimelineCall(call=0, outcome="tool_call", model="m", cache_write_tokens=40),)
                ),
            ),
        ),
    },
    "DecisionsQuery": {"full": DecisionsQuery(task=TASK, from_turn=3)},
    "RecordedDecisions": {
        "full": RecordedDecisions(
            records=(DecisionRecord(key=KEY, system_prompt="s", user_prompt="u", tools=("tap",), reply=FAULT),),
            next_turn=4,
        ),
        "minimal": RecordedDecisions(),
    },
    "Approval": {"full": Approval(approved=True, by="operator"), "minimal": Approval(approved=False)},
    "TasksQuery": {
        "full": TasksQuery(limit=5, status="failed", device="sim-1"),
        "minimal": TasksQuery(),
        "chosen": TasksQuery(goal="wi-fi", since_ms=1_796_000_000_000, failure="max_turns"),
        "prefix": TasksQuery(task="0af7"),
    },
    "TaskList": {"full": TaskList(tasks=(_SUMMARY,)), "minimal": TaskList()},
    "QueryError": {"full": QueryError(error="no task yet", code="NOT_FOUND")},
}  # fmt: skip
