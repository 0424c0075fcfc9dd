"""One turn's decision as values: what to ask a model, and what its answer comes to.

Consumes Scene, World and replies; emits requests, a PlannedStep, a Correction to ask once more, or a PlanFailure. The
provider's name, transport and clock are nobody's business here.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, structs

from apex_planner import evidence
from apex_planner.grounding import Refusal, ground
from apex_planner.loops import FAIL, loop_of
from apex_planner.prompt import SYSTEM_PROMPT, changing_block, correction_block, is_last_turn, stable_blocks
from apex_planner.tools import ToolSet, offered
from apex_schemas.actions import FinishTask
from apex_schemas.decision import DecisionFault, DecisionReply, DecisionRequest, Picture, ToolCallDecision
from apex_schemas.scene import Scene
from apex_schemas.steps import DecisionKey, PlannedStep, WorldState

FIRST_CALL: Final = 0


class PlanFailure(Struct, frozen=True, kw_only=True):
    """No step can be had for this turn: the task fails. `code` is a word, `reason` a sentence for a person."""

    code: str
    reason: str


class Correction(Struct, frozen=True, kw_only=True):
    """The answer cannot be used, but the model may do better when it is told the `fault`."""

    code: str
    fault: str
    more_room: bool = False


Outcome = PlannedStep | PlanFailure


def first_request(
    scene: Scene,
    world: WorldState,
    picture: Picture | None,
    *,
    task: str,
    tool_set: ToolSet = "core",
    notes: Sequence[str] = (),
    loop_limit: int = FAIL,
) -> DecisionRequest | PlanFailure:
    """The question of a turn. A PlanFailure where it cannot be put, or would lead nowhere."""
    if scene.source == "screenshot-only" and picture is None:
        return PlanFailure(code="no_picture", reason="the screen has no element tree, and there is no picture of it")
    if (loop := loop_of(world.history, scene)) is not None:
        if (reason := loop.reason(loop_limit)) is not None:
            return PlanFailure(code="loop", reason=reason)
        notes = (*notes, *filter(None, (loop.note(loop_limit),)))
    stable = stable_blocks(world)
    seen = picture.size if picture else None
    return DecisionRequest(
        key=DecisionKey(task=task, turn=world.turn, call=FIRST_CALL),
        system_prompt=SYSTEM_PROMPT,
        user_blocks=(*stable, changing_block(scene, world, notes=notes, seen=seen)),
        tools=offered(tool_set, only_finish=is_last_turn(world)),
        stable_blocks=len(stable),
        picture=picture,
    )


def out_of_tokens(used: int, most: int | None) -> PlanFailure | None:
    """The end of a task that may use no more tokens: `used` are those of all its calls so far, both ways."""
    if most is None or used < most:
        return None
    reason = f"{used:,} tokens were used, and AI_PLANNER_MAX_TOKENS_PER_TASK is {most:,}"
    return PlanFailure(code="max_tokens_per_task", reason=reason)


def corrective(request: DecisionRequest, correction: Correction) -> DecisionRequest:
    """The same conversation with one sentence added; nothing of the unusable answer is sent back."""
    return structs.replace(
        request,
        key=structs.replace(request.key, call=request.key.call + 1),
        user_blocks=(*request.user_blocks, correction_block(correction.fault)),
        force_tool=correction.code == "no_tool_call",
        more_room=correction.more_room,
    )


def read_reply(reply: DecisionReply, scene: Scene, request: DecisionRequest) -> PlannedStep | Correction | PlanFailure:
    """What a reply comes to. After the corrective call nothing is asked again."""
    match reply:
        case ToolCallDecision():
            found = _step(reply, scene, request)
        case DecisionFault(correctable=True):
            found = Correction(code=reply.code, fault=reply.message, more_room=reply.code == "truncated")
        case DecisionFault():
            found = PlanFailure(code=reply.code, reason=reply.message)
    if isinstance(found, Correction) and request.key.call > FIRST_CALL:
        return PlanFailure(code=found.code, reason=f"the model's answer could not be used, twice: {found.fault}")
    return found


def _step(call: ToolCallDecision, scene: Scene, request: DecisionRequest) -> PlannedStep | Correction:
    seen = request.picture.size if request.picture else None
    grounded = ground(call, scene, frozenset(tool.name for tool in request.tools), seen=seen)
    if isinstance(grounded, Refusal):
        return Correction(code="refused_call", fault=grounded.fault)
    found = None
    if isinstance(grounded.action, FinishTask):
        if grounded.action.success:
            found = evidence.is_on_screen(grounded.action.evidence, scene)
        if found is False and request.key.call == FIRST_CALL:
            return Correction(code="no_evidence", fault=_no_evidence(grounded.action))
    return PlannedStep(
        action=grounded.action,
        page=scene.page,
        target=None if grounded.target is None else structs.replace(grounded.target, app=scene.app),
        purpose=(call.purpose or "").strip() or None,
        expected_outcome=(call.expected_outcome or "").strip() or None,
        rationale=(call.text_output or "").strip() or None,
        thinking=(call.thinking or "").strip() or None,
        decision=request.key,
        ungrounded=grounded.ungrounded,
        fingerprint=scene.fingerprint,
        evidence_found=found,
        app=scene.app,
    )


def _no_evidence(action: FinishTask) -> str:
    named = "it names no evidence" if not action.evidence else "its evidence is not on the current screen"
    return (
        f"finish_task claims success, but {named}. Quote a text that the screen shows as evidence; if nothing shows "
        "it, go on with the task or finish with success false."
    )
