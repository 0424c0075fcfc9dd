"""Tasks as a person reads them: one block a turn, and a head that says how it ended. Values in, text out."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from apex_cli.money import Money, in_dollars
from apex_cli.text import lines, plain, quoted, shortened, styled
from apex_schemas.decision import DecisionRecord
from apex_schemas.devices import DeviceStatus
from apex_schemas.queries import TaskSummary, Timeline, TimelineStep

_STYLE: Final = {"succeeded": "bold green", "failed": "bold red", "cancelled": "bold yellow", "running": "bold cyan"}

_EVIDENCE: Final = {
    None: "no evidence was named",
    True: "its evidence was on the screen",
    False: "its evidence was not found on the screen",
}


def timeline(timeline: Timeline, *, thinking: bool = False, money: Money | None = None) -> RenderableType:
    """`money` prices the calls; without it, tokens are shown alone."""
    return Group(
        summary(timeline.summary),
        "",
        *(turn(step, thinking=thinking, money=money) for step in timeline.steps),
        totals(timeline.steps, money),
    )


def summary(task: TaskSummary) -> RenderableType:
    """The head of a task: goal, how and where it ended, and what was answered."""
    lines = [
        styled(("Task ", "bold"), (task.task, "cyan"), "  ", (task.status, _STYLE[task.status]), _where_and_when(task)),
        styled("  ", (plain(task.goal), "italic")),
    ]
    if task.answer:
        lines.append(styled("  answer   ", (quoted(task.answer), "bold")))
    if task.reason:
        lines.append(styled("  because  ", plain(task.reason)))
    if task.failure_reason and (task.reason or "-") not in task.failure_reason:
        lines.append(styled("  failure  ", (plain(task.failure_reason), "red")))
    if task.claimed is not None:
        seen = {
            None: "no evidence was named",
            True: "its evidence was on the screen",
            False: "unverified: its evidence was not found",
        }
        claim = "success" if task.claimed else "failure"
        lines.append(styled((f"  the model claimed {claim}; {seen[task.evidence_found]}", "dim")))
    return Group(*lines)


def turn(step: TimelineStep, *, thinking: bool = False, money: Money | None = None) -> RenderableType:
    """One turn: the page, why, what was done to what, and what came of it."""
    body: list[RenderableType] = []
    if thinking and step.thinking:
        body.append(styled(("thinking  " + plain(step.thinking), "dim italic")))
    if step.rationale:
        body.append(styled((quoted(step.rationale), "italic")))
    body.append(styled(("→ ", "dim"), (act(step), "bold"), "   ", *outcome(step), *effect(step)))
    if step.message and step.success is not True:
        body.append(styled("  ", (plain(step.message), "red" if step.success is False else "yellow")))
    for call in step.calls:
        if call.error:
            body.append(styled(("  the model's call failed: " + plain(call.error), "red")))
    head = Table.grid(expand=True, padding=(0, 1))
    head.add_column(no_wrap=True, ratio=1, overflow="ellipsis")
    head.add_column(no_wrap=True, justify="right")
    head.add_row(
        styled((f"{step.turn:>3}  ", "bold"), (plain(step.page or "—"), "cyan")), Text(_cost(step, money), "dim")
    )
    return Group(head, *(Padding(line, (0, 0, 0, 5), expand=False) for line in body))


def act(step: TimelineStep) -> str:
    """The act as words: `tap Wi-Fi`, `input_text Name ← Zoë`."""
    if step.action is None:
        return "nothing decided yet"
    target = f" {quoted(step.target, 60)}" if step.target else ""
    arguments = {name: value for name, value in (step.arguments or {}).items() if value is not None}
    match step.action:
        case "input_text":
            return f"input_text{target} ← {quoted(str(arguments.get('text', '')), 80)}"
        case "launch_app" | "terminate_app":
            return f"{step.action} {plain(str(arguments.get('app', '')))}"
        case "finish_task":
            return f"finish_task success={str(arguments.get('success')).lower()}"
        case "tap" | "long_press":
            return f"{step.action}{target or _places(arguments)}"
        case "swipe":
            return f"swipe {_point(arguments.get('start'))} → {_point(arguments.get('end'))}"
        case _:
            return f"{step.action}{target}{_places(arguments)}"


def outcome(step: TimelineStep) -> tuple[tuple[str, str], ...]:
    if step.action == "finish_task":
        return (("ends the task", "dim"),)
    if not step.done and step.success is None:
        return (("…", "dim"),)
    match step.success:
        case True:
            return (("✓ done", "green"),)
        case False:
            return ((f"✗ {step.code or 'failed'}", "red"),)
        case None:
            return ((f"? {step.code or 'unknown'}", "yellow"),)


def effect(step: TimelineStep) -> tuple[tuple[str, str], ...]:
    """What was not seen to come of an act that says it was done. That something came of it is the usual thing."""
    if step.effect_seen is not False or step.success is False or step.action in ("wait", "look", "describe_screen"):
        return ()
    return ((", no change on the screen", "yellow"),)


def totals(steps: Iterable[TimelineStep], money: Money | None = None) -> Text:
    calls = [call for step in steps for call in step.calls]
    if not calls:
        return styled(("     no call to a model", "dim"))
    into, out = sum(call.input_tokens for call in calls), sum(call.output_tokens for call in calls)
    cached = sum(call.cache_read_tokens for call in calls)
    models = ", ".join(dict.fromkeys(plain(call.model) for call in calls if call.model))
    from_cache = f" ({cached:,} from cache)" if cached else ""
    asked = f"{len(calls)} model call{'' if len(calls) == 1 else 's'} to {models}"
    reasoned = sum(call.reasoning_tokens for call in calls)
    of_it = f" ({reasoned:,} reasoning)" if reasoned else ""
    paid = f", {money.told(calls)}" if money is not None else ""
    return styled((f"     {asked}: {into:,} tokens in{from_cache}, {out:,} out{of_it}{paid}", "dim"))


def asked(record: DecisionRecord, before: DecisionRecord | None = None) -> RenderableType:
    """A provider call to the letter: what was asked, and the answer as it came. The system prompt only where it is
    not the one of the call before."""
    key = record.key
    head = styled(
        ("── ", "dim"), (f"turn {key.turn}, call {key.call}", "bold"), (f" · {plain(record.reply.model)}", "dim")
    )
    same = before is not None and before.system_prompt == record.system_prompt
    system = "(as in the call before)" if same else record.system_prompt
    parts = [("system", system), ("user", record.user_prompt), ("answer", record.raw_answer or "—")]
    return Group(head, *(Group(Text(name, "bold dim"), Text(lines(text))) for name, text in parts))


def task_table(tasks: Iterable[TaskSummary]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("task", "status", "turns", "device", "started", "goal"):
        table.add_column(name, no_wrap=name != "goal", justify="right" if name == "turns" else "left")
    for task in tasks:
        add_task(table, task)
    return table


def add_task(table: Table, task: TaskSummary) -> None:
    """A row of `task_table`."""
    table.add_row(
        Text(task.task, "cyan"),
        Text(task.status, _STYLE[task.status]),
        str(task.turns),
        plain(task.device or "—"),
        _clock(task.started_at_ms),
        Text(shortened(plain(task.goal), 80)),
    )


def device_table(devices: Iterable[DeviceStatus]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("device", "platform", "state", "session", "task", "pools", "driven by", "reason"):
        table.add_column(name, no_wrap=name not in ("reason", "pools"))
    for status in devices:
        table.add_row(
            Text(status.device, "cyan"),
            plain(status.platform),
            Text(plain(status.state), "green" if status.state in ("ready", "busy") else "yellow"),
            "—" if status.session_age_s is None else age(status.session_age_s),
            plain(status.task or "—"),
            plain(
                " ".join(pool for pool in status.pools if pool not in (status.device, status.platform, "any")) or "—"
            ),
            plain(status.worker) + ("" if status.renewed_s is None else f", {age(status.renewed_s)} ago"),
            Text(plain("; ".join(_hindrances(status)))),
        )
    return table


def _hindrances(status: DeviceStatus) -> Iterator[str]:
    if status.reason:
        yield status.reason
    if status.paused and "paused" not in (status.reason or ""):
        yield "paused"
    if status.stale:
        yield f"its record was not renewed for {age(status.renewed_s or 0)}: is NATS there, and has it room?"
    if status.retry_s is not None:
        yield f"failed {status.failures} times in a row, tried again in {status.retry_s} s"


def age(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else f"{rest} s"


def _where_and_when(task: TaskSummary) -> str:
    place = f" on {plain(task.device)}" if task.device else ""
    if task.started_at_ms is None or task.finished_at_ms is None:
        return f"{place}, {task.turns} turns"
    return f"{place} in {(task.finished_at_ms - task.started_at_ms) / 1000:.1f} s, {task.turns} turns"


def _cost(step: TimelineStep, money: Money | None = None) -> str:
    """Milliseconds by stage, tokens and money, as far as they are known."""
    stages = {"see": step.observe_ms, "plan": step.plan_ms, "act": step.act_ms}
    known = {name: ms for name, ms in stages.items() if ms is not None}
    into, out = sum(c.input_tokens for c in step.calls), sum(c.output_tokens for c in step.calls)
    stages_told = " + ".join(f"{name} {ms:,}" for name, ms in known.items())
    parts = [f"{stages_told} = {sum(known.values()):,} ms"] if known else []
    if step.calls:
        parts.append(f"{into:,}→{out:,} tokens")
    if money is not None and (dollars := money.of(step.calls)) is not None:
        parts.append(in_dollars(dollars))
    return " · ".join(parts)


def _places(arguments: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{name}={shortened(plain(str(value)), 60)}" for name, value in arguments.items())
    return f" {shown}" if shown else ""


def _point(value: Mapping[str, int] | None) -> str:
    return f"{value.get('x')},{value.get('y')}" if value else "?"


def _clock(at_ms: int | None) -> str:
    return "—" if at_ms is None else datetime.fromtimestamp(at_ms / 1000).strftime("%m-%d %H:%M:%S")
