"""What a provider call cost, from its usage and a table of list prices with a date. Needs no SDK and no settings.

The table is `prices.toml` beside this module; AI_PLANNER_PRICES_FILE names one of the same form whose models come on
top. A model that stands in neither has no cost: its tokens are shown without money.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from apex_planner.errors import PricesUnreadable
from apex_schemas.decision import Usage

VARIABLE: Final = "AI_PLANNER_PRICES_FILE"
_OWN: Final = Path(__file__).with_name("prices.toml")
_SNAPSHOT: Final = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_MILLION: Final = 1_000_000

Dollars = Annotated[float, Meta(ge=0, le=1e6)]


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars for a million tokens. Where a cache price is None, the input's holds."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def of(self, usage: Usage) -> float:
        """`input_tokens` has the cached ones in it; reasoning is part of the output."""
        fresh = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
        cached = self.input if self.cache_read is None else self.cache_read
        written = self.input if self.cache_write is None else self.cache_write
        return (
            fresh * self.input
            + usage.cache_read_tokens * cached
            + usage.cache_write_tokens * written
            + usage.output_tokens * self.output
        ) / _MILLION


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`date` is the day on which the prices were read, as YYYY-MM-DD."""

    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    models: dict[str, Price]

    def cost(self, model: str, usage: Usage) -> float | None:
        """Dollars; None for a model without a price. A dated snapshot costs what its family does."""
        price = self.models.get(model) or self.models.get(_SNAPSHOT.sub("", model))
        return None if price is None else price.of(usage)


def load_prices(environ: Mapping[str, str]) -> Prices:
    """The table, with the overriding file's on top of it. Raises PricesUnreadable."""
    own = _read(_OWN)
    override = environ.get(VARIABLE, "").strip()
    if not override:
        return own
    other = _read(Path(override))
    return Prices(date=other.date, models={**own.models, **other.models})


def _read(file: Path) -> Prices:
    try:
        return msgspec.toml.decode(file.read_bytes(), type=Prices)
    except OSError as error:
        raise PricesUnreadable(str(file), error.strerror or str(error)) from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise PricesUnreadable(str(file), str(error)) from error
