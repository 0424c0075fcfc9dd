"""What a call cost, by a table with a date."""

from datetime import date
from pathlib import Path

import pytest

from apex_planner.errors import PricesUnreadable
from apex_planner.prices import Price, Prices, load_prices
from apex_schemas.decision import Usage

OWN = load_prices({})
USAGE = Usage(input_tokens=1_000_000, output_tokens=100_000, cache_read_tokens=400_000, cache_write_tokens=100_000)


def test_cached_tokens_are_priced_apart_from_the_fresh_ones_and_reasoning_is_output() -> None:
    price = Price(input=2, output=10, cache_read=0.2, cache_write=2.5)
    assert price.of(USAGE) == pytest.approx(0.5 * 2 + 0.4 * 0.2 + 0.1 * 2.5 + 0.1 * 10)
    thinking = Usage(input_tokens=0, output_tokens=100_000, reasoning_tokens=90_000)
    assert price.of(thinking) == pytest.approx(1.0)


def test_where_there_is_no_price_for_the_cache_the_inputs_holds() -> None:
    assert Price(input=2, output=0).of(USAGE) == pytest.approx(2.0)


def test_a_usage_with_more_cached_than_read_costs_no_less_than_nothing() -> None:
    assert Price(input=2, output=0, cache_read=0, cache_write=0).of(Usage(input_tokens=1, cache_read_tokens=9)) == 0


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-haiku-4-5-20251001", "claude-haiku-4-5@20251001"])
def test_a_snapshot_costs_what_its_family_does(model: str) -> None:
    assert OWN.cost(model, USAGE) == OWN.cost("claude-haiku-4-5", USAGE)
    assert OWN.cost("gpt-5-2025-08-07", USAGE) == OWN.cost("gpt-5", USAGE)


@pytest.mark.parametrize("model", ["", "scripted-old", "claude-haiku-4", "gpt-5-mini-of-somebody", "claude"])
def test_an_unknown_model_has_no_cost(model: str) -> None:
    assert OWN.cost(model, USAGE) is None


def test_the_table_has_a_date_and_prices_that_can_be_meant() -> None:
    assert date.fromisoformat(OWN.date) <= date(2027, 1, 1)
    for name, price in OWN.models.items():
        assert 0 < price.input < price.output, name
        assert price.cache_read is None or price.cache_read < price.input, name
        assert price.cache_write is None or price.cache_write > price.input, name


def test_a_file_of_ones_own_comes_on_top(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'date = "2027-01-02"\n[models]\nmine = {input = 1, output = 2}\n"gpt-5" = {input = 9, output = 9}\n'
    )
    prices = load_prices({"AI_PLANNER_PRICES_FILE": str(file)})
    assert isinstance(prices, Prices)
    assert prices.cost("mine", USAGE) == pytest.approx(1.2)
    assert prices.cost("gpt-5", USAGE) == pytest.approx(9.9)
    assert prices.cost("gpt-4.1", USAGE) == OWN.cost("gpt-4.1", USAGE)
    assert prices.date == "2027-01-02"


@pytest.mark.parametrize(
    "text",
    ["date = 1", 'date = "2027-01-02"', "[models", 'date = "2027-01-02"\n[models]\nx = {input = -1, output = 1}'],
)
def test_a_file_that_is_not_of_the_form_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(PricesUnreadable, match=r"mine\.toml"):
        load_prices({"AI_PLANNER_PRICES_FILE": str(file)})
    with pytest.raises(PricesUnreadable, match="No such file"):
        load_prices({"AI_PLANNER_PRICES_FILE": str(tmp_path / "none.toml")})
