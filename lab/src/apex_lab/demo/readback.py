"""The decisions of the demo as the rows of Postgres tell them, held against what was seen on the bus."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from apex_cli.text import plain, shortened, styled
from apex_lab.demo.watched import Watched
from apex_schemas.queries import Timeline, TimelineStep


def show(watched: list[Watched], console: Console) -> None:
    """Print one line a provider call, and add to each task's problems what Postgres lacks or has otherwise."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    for name in ("task", "turn", "tool", "tokens", "ms", "rationale"):
        table.add_column(name, no_wrap=True, ratio=1 if name == "rationale" else None)
    for one in watched:
        _add_rows(table, one.stored)
    console.print(table)
    differences = [_differences(one.decided, one.stored) for one in watched]
    for one, found in zip(watched, differences, strict=True):
        one.problems.extend(found)
    seen, wrong = sum(len(one.decided) for one in watched), sum(map(len, differences))
    thinking = sum(1 for one in watched for step in one.stored.steps for call in step.calls if call.thinking)
    mark = ("  ✗ ", "bold red") if wrong or not seen else ("  ✓ ", "bold green")
    found = f"{seen} decisions seen on NATS, {seen - wrong} of them in Postgres with the same tool and rationale"
    console.print(styled(mark, f"{found}, {thinking} with the model's thinking\n"))


def _add_rows(table: Table, timeline: Timeline) -> None:
    for step in timeline.steps:
        for call in step.calls:
            table.add_row(
                timeline.summary.task[:8],
                str(step.turn),
                plain(call.tool or call.outcome),
                f"{call.input_tokens}→{call.output_tokens}",
                str(call.latency_ms),
                Text(shortened(plain(call.rationale or "—"), 200), overflow="ellipsis"),
            )


def _differences(decided: list[TimelineStep], timeline: Timeline) -> list[str]:
    stored = {step.turn: step for step in timeline.steps}
    return [
        f"turn {seen.turn} {wrong}"
        for seen in decided
        if (wrong := _difference(seen, stored.get(seen.turn))) is not None
    ]


def _difference(seen: TimelineStep, stored: TimelineStep | None) -> str | None:
    if stored is None:
        return "is not in Postgres"
    if not stored.calls:
        return "has no provider call in Postgres"
    if stored.action != seen.action or stored.rationale != seen.rationale:
        return "is in Postgres, but not as it was decided"
    if all(call.tool != seen.action for call in stored.calls):
        return "comes from a provider call that Postgres does not have"
    return None
