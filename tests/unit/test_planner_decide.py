"""One turn's decision as values, and the one corrective retry."""

import pytest
from msgspec import structs
from planner_world import SIZE, TASK, call, element, event, network, scene, world

from apex_planner.ai_planner import AIPlanner
from apex_planner.decide import Outcome, PlanFailure
from apex_planner.stub import StubPlanner
from apex_schemas import actions
from apex_schemas.decision import DecisionFault, DecisionReply, DecisionRequest, Picture, Usage
from apex_schemas.geometry import Point, Size
from apex_schemas.steps import DecisionKey, PlannedStep

TAP = call("tap", element="e2")
NO_CALL = DecisionFault(code="no_tool_call", message="there was no tool call in it.", correctable=True)
DENIED = DecisionFault(code="denied", message="anthropic answered 401. Set ANTHROPIC_API_KEY.", correctable=False)
CUT = DecisionFault(code="truncated", message="the answer was cut off.", correctable=True)


class Scripted:
    """A client that gives these replies and keeps what it was asked."""

    def __init__(self, *replies: DecisionReply) -> None:
        self.replies, self.asked = list(replies), list[DecisionRequest]()

    async def decide(self, request: DecisionRequest) -> DecisionReply:
        self.asked.append(request)
        return self.replies.pop(0)


async def plan(*replies: DecisionReply, a_scene=None, a_world=None, **more) -> tuple[Outcome, list[DecisionRequest]]:
    client = Scripted(*replies)
    outcome = await AIPlanner(client).plan(a_scene or network(), a_world or world(event()), **more)
    assert not client.replies
    return outcome, client.asked


async def test_a_call_becomes_a_step_with_its_reasons_apart_from_what_is_executed() -> None:
    reply = call("tap", element="e2")
    reply = structs.replace(reply, text_output=" It worked. Next: the switch. ", thinking="hm")
    outcome, asked = await plan(reply)
    assert isinstance(outcome, PlannedStep)
    assert outcome.action == actions.Tap(at=Point(x=540, y=250))
    assert (outcome.purpose, outcome.expected_outcome) == ("to get on", "it is on")
    assert (outcome.rationale, outcome.thinking) == ("It worked. Next: the switch.", "hm")
    assert (outcome.page, outcome.fingerprint) == ("Settings > Network", "f1")
    assert outcome.decision == DecisionKey(task=TASK, turn=1, call=0)
    assert len(asked) == 1


async def test_without_text_or_thinking_both_are_none_and_the_step_is_returned_all_the_same() -> None:
    outcome, _ = await plan(TAP)
    assert isinstance(outcome, PlannedStep)
    assert (outcome.rationale, outcome.thinking) == (None, None)


@pytest.mark.parametrize("bad", [NO_CALL, CUT, call("tap", element="e77"), call("tap", purpose="", element="e2")])
async def test_an_unusable_answer_is_asked_again_once_and_then_used(bad: DecisionReply) -> None:
    outcome, asked = await plan(bad, TAP)
    assert isinstance(outcome, PlannedStep)
    assert outcome.decision == DecisionKey(task=TASK, turn=1, call=1)
    assert [request.key.call for request in asked] == [0, 1]
    assert asked[1].user_blocks[:-1] == asked[0].user_blocks
    assert asked[1].more_room == (bad is CUT)


@pytest.mark.parametrize("bad", [NO_CALL, CUT, call("tap", element="e77")])
async def test_a_second_unusable_answer_fails_with_the_reason(bad: DecisionReply) -> None:
    outcome, asked = await plan(bad, bad)
    assert isinstance(outcome, PlanFailure)
    assert outcome.reason.startswith("the model's answer could not be used, twice: ")
    assert len(asked) == 2


async def test_a_fault_that_no_retry_cures_fails_at_once() -> None:
    outcome, asked = await plan(DENIED)
    assert outcome == PlanFailure(code="denied", reason=DENIED.message)
    assert len(asked) == 1


async def test_a_fault_of_the_provider_in_the_retry_is_its_own_reason() -> None:
    outcome, _ = await plan(NO_CALL, DENIED)
    assert outcome == PlanFailure(code="denied", reason=DENIED.message)


async def test_a_picture_alone_needs_the_picture() -> None:
    bare = scene(source="screenshot-only")
    outcome, asked = await plan(a_scene=bare)
    assert isinstance(outcome, PlanFailure)
    assert (outcome.code, asked) == ("no_picture", [])
    picture = Picture(data=b"png", media_type="image/png", size=Size(width=540, height=1200), sha256="0" * 64)
    outcome, asked = await plan(call("tap", x=3, y=4), a_scene=bare, screenshot=picture)
    assert isinstance(outcome, PlannedStep)
    assert outcome.ungrounded
    assert outcome.action == actions.Tap(at=Point(x=7, y=9))
    assert asked[0].picture == picture


async def test_a_picture_that_cannot_be_read_is_left_out_and_alone_it_is_none() -> None:
    broken = Picture(data=b"no picture", media_type="image/png", size=SIZE, sha256="0" * 64)
    outcome, asked = await plan(TAP, screenshot=broken)
    assert isinstance(outcome, PlannedStep)
    assert asked[0].picture is None
    outcome, _ = await plan(a_scene=scene(source="screenshot-only"), screenshot=broken)
    assert isinstance(outcome, PlanFailure)
    assert outcome.code == "no_picture"


async def test_a_step_counts_the_tokens_of_all_its_calls_and_names_the_app() -> None:
    spent = Usage(input_tokens=700, output_tokens=30)
    outcome, _ = await plan(structs.replace(NO_CALL, usage=spent), structs.replace(TAP, usage=spent))
    assert isinstance(outcome, PlannedStep)
    assert (outcome.tokens_used, outcome.app) == (1_460, "com.apex.settings")


async def test_a_task_that_has_used_its_tokens_fails_before_the_next_call() -> None:
    used = world(event(tokens_used=600), event(tokens_used=400))
    client = Scripted()
    outcome = await AIPlanner(client, max_tokens_per_task=1_000).plan(network(), used)
    assert isinstance(outcome, PlanFailure)
    assert (outcome.code, client.asked) == ("max_tokens_per_task", [])
    assert "1,000 tokens were used, and AI_PLANNER_MAX_TOKENS_PER_TASK is 1,000" in outcome.reason


async def test_a_corrective_call_is_not_paid_for_with_tokens_that_are_used_up() -> None:
    client = Scripted(structs.replace(NO_CALL, usage=Usage(input_tokens=500)))
    outcome = await AIPlanner(client, max_tokens_per_task=1_000).plan(network(), world(event(tokens_used=500)))
    assert isinstance(outcome, PlanFailure)
    assert (outcome.code, len(client.asked)) == ("max_tokens_per_task", 1)


async def test_an_act_repeated_on_one_screen_is_told_then_told_urgently_and_then_fails_the_task() -> None:
    again = event(fingerprint="f1")
    _, asked = await plan(TAP, a_world=world(*[again] * 2))
    assert "on this very screen" not in asked[0].user_blocks[-1]
    _, asked = await plan(TAP, a_world=world(*[again] * 3))
    assert 'you did tap "Network & internet" 3 times' in asked[0].user_blocks[-1]
    assert "on this very screen" not in "".join(asked[0].user_blocks[: asked[0].stable_blocks])
    _, asked = await plan(TAP, a_world=world(*[again] * 5))
    assert "Do not do it again" in asked[0].user_blocks[-1]
    outcome, asked = await plan(a_world=world(*[again] * 8))
    assert isinstance(outcome, PlanFailure)
    assert (outcome.code, asked) == ("loop", [])
    assert 'tap "Network & internet"' in outcome.reason


SUCCESS = {"success": True, "reason": "it is on"}


@pytest.mark.parametrize(
    "evidence", ["Connected to ApexLab", "the text 'connected to apexlab' below", "e2 is on", "Wi-Fi"]
)
async def test_success_with_evidence_on_the_screen_is_taken(evidence: str) -> None:
    outcome, _ = await plan(call("finish_task", evidence=evidence, **SUCCESS))
    assert isinstance(outcome, PlannedStep)
    assert outcome.evidence_found is True


@pytest.mark.parametrize("evidence", [None, "", "a green tick", "e77", "hunter2"])
async def test_success_without_evidence_on_the_screen_is_asked_again_once_and_then_unverified(evidence) -> None:
    claim = call("finish_task", evidence=evidence, **SUCCESS)
    outcome, asked = await plan(claim, claim)
    assert isinstance(outcome, PlannedStep)
    assert outcome.evidence_found is False
    assert "claims success" in asked[1].user_blocks[-1]
    assert not asked[1].force_tool


async def test_giving_up_needs_no_evidence() -> None:
    outcome, _ = await plan(call("finish_task", success=False, reason="there is no such app"))
    assert isinstance(outcome, PlannedStep)
    assert outcome.evidence_found is None


async def test_on_the_last_turn_an_act_is_refused_and_the_end_is_asked_for() -> None:
    outcome, asked = await plan(
        TAP, call("finish_task", success=False, reason="no turn left"), a_world=world(max_turns=1)
    )
    assert isinstance(outcome, PlannedStep)
    assert "the tools are finish_task" in asked[1].user_blocks[-1]


async def test_the_task_may_be_named_by_the_caller() -> None:
    client = Scripted(TAP)
    await AIPlanner(client).plan(network(), world(), task="b" * 32)
    assert client.asked[0].key.task == "b" * 32


async def test_the_stub_describes_the_screen_once_and_is_done() -> None:
    first = await StubPlanner().plan(scene(element(1)), world())
    assert isinstance(first, PlannedStep)
    assert first.action == actions.DescribeScreen()
    then = await StubPlanner().plan(scene(element(1)), world(event(actions.DescribeScreen())))
    assert isinstance(then, PlannedStep)
    assert then.action == actions.FinishTask(success=True, reason="screen described")
