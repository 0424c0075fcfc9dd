"""What `apex show` says of money."""

import io

import pytest
from rich.console import Console

from apex_cli import render
from apex_cli.errors import BadInput
from apex_cli.money import Money, in_dollars, money
from apex_planner.prices import Price, Prices
from apex_schemas.queries import TaskSummary, Timeline, TimelineCall, TimelineStep

MONEY = Money(Prices(date="2026-11-06", models={"m-1": Price(input=10, output=100, cache_read=1, cache_write=12)}))


def call(model: str = "m-1", **more: int) -> TimelineCall:
    more = {"input_tokens": 1_000, "output_tokens": 10, **more}
    return TimelineCall(call=0, outcome="tool_call", model=model, **more)


def shown(*calls: TimelineCall, by: Money | None = MONEY) -> str:
    summary = TaskSummary(task="a" * 32, goal="g", device="sim-1", status="succeeded")
    steps = tuple(TimelineStep(turn=n, calls=(each,)) for n, each in enumerate(calls))
    out = Console(file=io.StringIO(), width=160)
    out.print(render.timeline(Timeline(summary=summary, steps=steps), money=by))
    return out.file.getvalue()  # type: ignore[attr-defined]


def test_money_is_shown_by_turn_and_summed_for_the_task() -> None:
    text = shown(call(), call(input_tokens=2_000, cache_read_tokens=1_000, reasoning_tokens=5))
    assert "1,000→10 tokens · $0.0110" in text
    assert "2,000→10 tokens · $0.0120" in text
    assert "3,000 tokens in (1,000 from cache), 20 out (5 reasoning), $0.0230 (2026-11-06 prices)" in text


def test_a_model_without_a_price_has_tokens_without_money_and_is_named_beside_the_sum() -> None:
    assert "no price known" in shown(call("mystery"))
    assert "$" not in shown(call("mystery"))
    text = shown(call(), call("mystery"))
    assert "$0.0110 without mystery" in text


def test_without_the_planners_prices_tokens_are_shown_alone() -> None:
    assert "$" not in shown(call(), by=None)
    assert "1,000→10 tokens" in shown(call(), by=None)


def test_the_table_is_the_planners_and_one_of_ones_own_that_cannot_be_read_is_said() -> None:
    own = money({})
    assert own is not None
    assert own.of([call("claude-haiku-4-5")]) == pytest.approx(0.00105)
    with pytest.raises(BadInput, match=r"none\.toml"):
        money({"AI_PLANNER_PRICES_FILE": "none.toml"})


@pytest.mark.parametrize(("amount", "said"), [(0, "$0.0000"), (0.00012, "$0.0001"), (1234.5, "$1,234.50")])
def test_small_sums_keep_four_decimals(amount: float, said: str) -> None:
    assert in_dollars(amount) == said
