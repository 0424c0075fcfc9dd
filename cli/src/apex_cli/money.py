"""What the model calls of a timeline cost: as recorded, else by the planner's prices, where its package is here."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from apex_cli.errors import BadInput
from apex_cli.text import plain
from apex_schemas.decision import Usage
from apex_schemas.queries import TimelineCall

if TYPE_CHECKING:
    from apex_planner.prices import Prices


class Money(NamedTuple):
    """What calls cost: as recorded with each, else by a table of prices, which an installation may lack."""

    prices: "Prices | None"

    @property
    def date(self) -> str | None:
        return self.prices.date if self.prices else None

    def of(self, calls: Sequence[TimelineCall]) -> float | None:
        """Dollars of those calls whose model has a price; None when none of them has."""
        known = [cost for call in calls if (cost := self._of(call)) is not None]
        return sum(known) if known else None

    def told(self, calls: Sequence[TimelineCall]) -> str:
        """The sum as words, with what is not in it."""
        dollars, unknown = self.of(calls), self.unpriced(calls)
        if dollars is None:
            return "no price known"
        without = f" without {', '.join(unknown)}" if unknown else ""
        of = f" ({self.date} prices)" if self.date else ""
        return f"{in_dollars(dollars)}{without}{of}"

    def unpriced(self, calls: Iterable[TimelineCall]) -> list[str]:
        """Models without a price."""
        return list(dict.fromkeys(plain(call.model) for call in calls if self._of(call) is None))

    def _of(self, call: TimelineCall) -> float | None:
        if call.cost_usd is not None:
            return call.cost_usd
        if self.prices is None:
            return None
        usage = Usage(
            input_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
            cache_read_tokens=call.cache_read_tokens,
            cache_write_tokens=call.cache_write_tokens,
            reasoning_tokens=call.reasoning_tokens,
        )
        return self.prices.cost(call.model, usage)


def money(environ: Mapping[str, str]) -> Money:
    """Without a table where the planner's package is not installed. Raises BadInput for one that cannot be read."""
    try:
        from apex_planner.errors import PricesUnreadable
        from apex_planner.prices import load_prices
    except ImportError:
        return Money(None)
    try:
        return Money(load_prices(environ))
    except PricesUnreadable as error:
        raise BadInput(str(error)) from error


def in_dollars(amount: float) -> str:
    """Four figures that say something, however small the sum."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"
