"""One decision as `apex plan` tells it: the record for programs, and the same for a person."""

from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Group, RenderableType

from apex_cli import render
from apex_cli.text import plain, styled
from apex_schemas.actions import tool_name
from apex_schemas.decision import DecisionFault, ToolCallDecision, Usage
from apex_schemas.queries import TimelineStep
from apex_schemas.steps import Target

if TYPE_CHECKING:
    from apex_planner.once import PlanReport


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One provider call: what it asked for, or why it is of no use."""

    tool: str | None
    arguments: dict[str, Any] | None
    fault: str | None
    message: str | None
    rationale: str | None
    thinking: str | None
    usage: Usage
    model: str
    latency_ms: int


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`outcome` is `planned` or the code of the failure; `usage` is the sum of all attempts."""

    outcome: str
    error: str | None
    tool: str | None
    arguments: dict[str, Any] | None
    target: Target | None
    purpose: str | None
    expected_outcome: str | None
    rationale: str | None
    thinking: str | None
    usage: Usage
    attempts: tuple[Attempt, ...]


def record(report: "PlanReport") -> PlanRecord:
    step = report.step
    attempts = tuple(_attempt(each.reply) for each in report.records)
    act: dict[str, Any] = msgspec.to_builtins(step.action) if step else {}
    act.pop("type", None)
    return PlanRecord(
        outcome=report.outcome,
        error=report.error,
        tool=tool_name(step.action) if step else None,
        arguments=act if step else None,
        target=step.target if step else None,
        purpose=step.purpose if step else None,
        expected_outcome=step.expected_outcome if step else None,
        rationale=step.rationale if step else _last(attempts, "rationale"),
        thinking=step.thinking if step else _last(attempts, "thinking"),
        usage=_sum([each.usage for each in attempts]),
        attempts=attempts,
    )


def shown_plan(told: PlanRecord) -> RenderableType:
    lines: list[RenderableType] = []
    if told.rationale:
        lines.append(styled(("reason    ", "dim"), plain(told.rationale)))
    if told.thinking:
        lines.append(styled(("thinking  ", "dim"), (plain(told.thinking), "dim italic")))
    if told.tool is not None:
        step = TimelineStep(
            turn=0, action=told.tool, target=told.target.label if told.target else None, arguments=told.arguments
        )
        lines.append(styled(("act       ", "dim"), (render.act(step), "bold")))
    if told.purpose:
        lines.append(styled(("purpose   ", "dim"), plain(told.purpose)))
    if told.expected_outcome:
        lines.append(styled(("expects   ", "dim"), plain(told.expected_outcome)))
    for attempt in told.attempts:
        if attempt.fault:
            lines.append(styled(("refused   ", "dim"), (f"{attempt.fault}: {plain(attempt.message or '')}", "yellow")))
    asked = f"{len(told.attempts)} call{'' if len(told.attempts) == 1 else 's'}"
    lines.append(styled((f"{asked}, {told.usage.input_tokens:,}→{told.usage.output_tokens:,} tokens", "dim")))
    return Group(*lines)


def _attempt(reply: ToolCallDecision | DecisionFault) -> Attempt:
    called = isinstance(reply, ToolCallDecision)
    return Attempt(
        tool=reply.tool if called else None,
        arguments=reply.arguments if called else None,
        fault=None if called else reply.code,
        message=None if called else reply.message,
        rationale=reply.text_output,
        thinking=reply.thinking,
        usage=reply.usage,
        model=reply.model,
        latency_ms=reply.latency_ms,
    )


def _last(attempts: tuple[Attempt, ...], field: str) -> str | None:
    return next((text for each in reversed(attempts) if (text := getattr(each, field))), None)


def _sum(usages: list[Usage]) -> Usage:
    names = Usage.__struct_fields__
    return Usage(**{name: sum(getattr(usage, name) for usage in usages) for name in names})
