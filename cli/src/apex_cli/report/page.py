"""The whole page: what the task was and how it ended, an overview, and a section for each turn."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib import resources
from typing import Final

from apex_cli import render
from apex_cli.money import Money, in_dollars
from apex_cli.report.changes import Changes, between
from apex_cli.report.wireframe import style as drawing_style
from apex_cli.report.wireframe import wireframe
from apex_cli.report.words import attribute, block, folded, inline
from apex_cli.text import shortened
from apex_schemas.queries import TaskSummary, Timeline, TimelineCall, TimelineStep

_STAGES: Final = (("observe", "see"), ("plan", "plan"), ("wait", "wait"), ("act", "act"))
_MOST_CHANGES: Final = 12
_SEEN: Final = {
    None: "no evidence was named",
    True: "its evidence was on the screen",
    False: "its evidence was not found on the screen",
}


def page(timeline: Timeline, money: Money, *, made_at: datetime | None = None) -> str:
    """The HTML of a timeline that was asked for with its scenes."""
    task, steps = timeline.summary, timeline.steps
    style = resources.files("apex_cli").joinpath("report/style.css").read_text("utf-8") + drawing_style()
    made = (made_at or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{attribute(shortened(task.goal, 80))} — {task.status}</title>",
        f"<style>{style}</style></head><body>",
        *_head(task, steps, money),
        *_overview(steps),
        "<main>",
        *_turns(steps, money),
        "</main>",
        f"<footer>apex report of task {task.task}, made {made}</footer>",
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _head(task: TaskSummary, steps: Sequence[TimelineStep], money: Money) -> Iterator[str]:
    calls = [call for step in steps for call in step.calls]
    yield f'<header class="{task.status}"><p class="status">{task.status}</p><h1>{inline(task.goal)}</h1>'
    if task.answer:
        yield f'<p class="answer"><span class="dim">answer</span> {inline(task.answer)}</p>'
    if task.reason and task.reason != task.answer:
        yield block(task.reason, "reason")
    if task.failure_reason and (task.reason or "-") not in task.failure_reason:
        yield block(task.failure_reason, "failure")
    if task.claimed is not None:
        claim = "success" if task.claimed else "failure"
        yield f'<p class="dim">the model claimed {claim}; {_SEEN[task.evidence_found]}</p>'
    facts = {
        "device": inline(task.device or "none"),
        "began": _clock(task.started_at_ms),
        "took": _took(task),
        "turns": str(len(steps)),
        "model": ", ".join(inline(name) for name in dict.fromkeys(call.model for call in calls if call.model)) or "—",
        "tokens": _tokens(calls),
        "cost": money.told(calls) if calls else "—",
        "trace": f"<code>{task.task}</code>",
    }
    yield '<dl class="facts">' + "".join(f"<div><dt>{name}</dt><dd>{told}</dd></div>" for name, told in facts.items())
    yield "</dl></header>"


def _overview(steps: Sequence[TimelineStep]) -> Iterator[str]:
    """A bar a turn, as high as it took long, in the colours of its stages."""
    longest = max((sum(_milliseconds(step).values()) for step in steps), default=0)
    if len(steps) < 2 or not longest:
        return
    yield '<nav class="overview" aria-label="turns by duration">'
    for step in steps:
        stages = _milliseconds(step)
        total = sum(stages.values())
        bars = "".join(f'<i class="{name}" style="flex-grow:{ms}"></i>' for name, ms in stages.items() if ms)
        height = max(4, round(100 * total / longest))
        title = attribute(f"turn {step.turn}: {render.act(step)}, {total:,} ms")
        bar = f'<span style="height:{height}%">{bars}</span>'
        yield f'<a href="#t{step.turn}" title="{title}" class="{_css(step)}">{bar}</a>'
    yield "</nav>"
    yield '<p class="legend">' + " ".join(f'<i class="{name}"></i>{word}' for name, word in _STAGES) + "</p>"


def _turns(steps: Sequence[TimelineStep], money: Money) -> Iterator[str]:
    before: TimelineStep | None = None
    for step in steps:
        yield f'<section id="t{step.turn}" class="turn {_css(step)}">'
        yield f'<figure>{wireframe(step)}{_caption(step)}</figure><div class="told">'
        yield f'<h2><a href="#t{step.turn}">{step.turn}</a> {inline(step.page or "—")}</h2>'
        if step.rationale:
            yield block(step.rationale, "rationale")
        outcome = "".join(word for word, _ in render.outcome(step))
        effect = "".join(f'<span class="effect">{word}</span>' for word, _ in render.effect(step))
        deed, came = inline(render.act(step)), inline(outcome)
        yield f'<p class="deed"><b>{deed}</b> <span class="outcome">{came}</span>{effect}</p>'
        if step.message and step.success is not True:
            yield block(step.message, "message")
        yield from _intent(step)
        yield from _changed(between(before.scene, step.scene) if before else None)
        if step.thinking:
            yield folded("thinking", step.thinking, "thinking")
        for call in step.calls:
            if call.error:
                yield block(f"call {call.call} of the model failed: {call.outcome}: {call.error}", "message")
        yield _figures(step, money)
        yield "</div></section>"
        before = step


def _caption(step: TimelineStep) -> str:
    scene = step.scene
    if scene is None:
        return ""
    parts = [inline(scene.app or "no app known"), f"{scene.elements} elements"]
    if scene.omitted:
        parts.append(f"{scene.omitted} left out")
    if not scene.settled:
        parts.append("still moving")
    if scene.source != "tree":
        parts.append(scene.source)
    return f"<figcaption>{' · '.join(parts)}</figcaption>"


def _intent(step: TimelineStep) -> Iterator[str]:
    told = {"purpose": step.purpose, "expected": step.expected_outcome}
    rows = "".join(f"<div><dt>{name}</dt><dd>{inline(text)}</dd></div>" for name, text in told.items() if text)
    if rows:
        yield f'<dl class="intent">{rows}</dl>'


def _changed(changes: Changes | None) -> Iterator[str]:
    if changes is None:
        return
    if changes.none:
        yield '<p class="changes dim">nothing on the screen changed since the turn before</p>'
        return
    items = [f'<li class="came">{inline(words)}</li>' for words in changes.came[:_MOST_CHANGES]]
    items += [f'<li class="changed">{inline(words)}</li>' for words in changes.changed[:_MOST_CHANGES]]
    items += [f'<li class="went">{inline(words)}</li>' for words in changes.went[:_MOST_CHANGES]]
    counts = f"{len(changes.came)} came, {len(changes.went)} went, {len(changes.changed)} changed"
    app = f"; app {inline(changes.app)}" if changes.app else ""
    yield f'<details class="changes"><summary>since the turn before: {counts}{app}</summary>'
    yield f"<ul>{''.join(items)}</ul></details>"


def _figures(step: TimelineStep, money: Money) -> str:
    stages = _milliseconds(step)
    words = dict(_STAGES)
    parts = [f'<span><i class="{name}"></i>{words[name]} {ms:,} ms</span>' for name, ms in stages.items()]
    if step.calls:
        parts.append(f"<span>{_tokens(step.calls)}</span>")
    if (dollars := money.of(step.calls)) is not None:
        parts.append(f"<span>{in_dollars(dollars)}</span>")
    return f'<p class="figures">{"".join(parts)}</p>'


def _milliseconds(step: TimelineStep) -> dict[str, int]:
    """By stage, as far as they are known."""
    known = {"observe": step.observe_ms, "plan": step.plan_ms, "wait": step.wait_ms, "act": step.act_ms}
    return {name: ms for name, ms in known.items() if ms is not None}


def _tokens(calls: Sequence[TimelineCall]) -> str:
    if not calls:
        return "no call to a model"
    into, out = sum(call.input_tokens for call in calls), sum(call.output_tokens for call in calls)
    cached, reasoned = sum(call.cache_read_tokens for call in calls), sum(call.reasoning_tokens for call in calls)
    from_cache = f" ({cached:,} cached)" if cached else ""
    of_it = f" ({reasoned:,} reasoning)" if reasoned else ""
    return f"{into:,} in{from_cache}, {out:,} out{of_it}"


def _css(step: TimelineStep) -> str:
    if step.action == "finish_task":
        return "end"
    return {True: "done", False: "failed", None: "unknown" if step.done else "open"}[step.success]


def _took(task: TaskSummary) -> str:
    if task.started_at_ms is None or task.finished_at_ms is None:
        return "—"
    return f"{(task.finished_at_ms - task.started_at_ms) / 1000:,.1f} s"


def _clock(at_ms: int | None) -> str:
    return "—" if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
