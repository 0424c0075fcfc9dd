"""Postgres: batches in, rows out.

Owns the pool, and the rule which of Postgres's errors mean "not now" (StoreAway: keep the batch, wait) and which
"never" (a row's content: find it by halving the batch, park it, write the rest).
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from apex_decision_log import postgres
from apex_decision_log.errors import RefusedRow, StoreAway, refusal_of, sentence_of
from apex_decision_log.postgres import Connection, Pool, Record
from apex_decision_log.rows import Row
from apex_decision_log.upserts import batches

Item = TypeVar("Item")

CONNECT_SECONDS: Final = 5.0
STATEMENT_SECONDS: Final = 30.0
_POOL_SIZE: Final = 4
_CONTENT_CLASSES: Final = ("22", "23", "54")
"""SQLSTATE classes of data, of constraints, and of what is too large: they blame the row."""
_HINTS: Final = {
    "42P01": "a table is missing; run `python -m apex_decision_log.migrate upgrade`",
    "42703": "a column is missing; run `python -m apex_decision_log.migrate upgrade`",
    "42501": "the role may not write; see the role script in the README",
}


class Store:
    """A pool that connects when it is needed, so that the service can start before its database."""

    def __init__(self, pool: Pool, place: str) -> None:
        self._pool, self.place = pool, place

    async def write(self, rows: Sequence[Row]) -> None:
        """Write all rows in one transaction. Raises StoreAway, or RefusedRow when one of them cannot be stored."""
        async with self._connection() as connection, connection.transaction():
            for statement, arrays in batches(rows):
                await connection.execute(statement, *arrays)

    async def fetch(self, query: str, *arguments: object) -> Sequence[Record]:
        """The rows of a query. Raises StoreAway."""
        async with self._connection() as connection:
            return await connection.fetch(query, *arguments)

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Connection]:
        try:
            async with self._pool.acquire(timeout=CONNECT_SECONDS) as connection:
                yield connection
        except postgres.PostgresError as error:
            state: str = getattr(error, "sqlstate", None) or ""
            if state.startswith(_CONTENT_CLASSES):
                raise RefusedRow(refusal_of(error)) from error
            raise StoreAway(self.place, _HINTS.get(state) or sentence_of(error)) from error
        except (OSError, TimeoutError, postgres.InterfaceError, postgres.InternalClientError) as error:
            raise StoreAway(self.place, sentence_of(error)) from error


@asynccontextmanager
async def open_store(dsn: str) -> AsyncGenerator[Store]:
    """The store, closed at the end. Connects to nothing yet."""
    parts = urlsplit(dsn)
    place = f"{parts.hostname or 'its socket'}:{parts.port or 5432}{parts.path}"
    pool = await postgres.lazy_pool(
        dsn, size=_POOL_SIZE, connect_s=CONNECT_SECONDS, statement_s=STATEMENT_SECONDS, name="apex-decision-log"
    )
    try:
        yield Store(pool, place)
    finally:
        pool.terminate()


class Refused(NamedTuple):
    """An item that Postgres will not take, and why."""

    item: Any
    reason: str


async def write_all(store: Store, items: Sequence[Item], row_of: Callable[[Item], Row]) -> list[Refused]:
    """Write every item that can be written, and return the others. Raises StoreAway; then it may be done again."""
    try:
        await store.write([row_of(item) for item in items])
    except RefusedRow as error:
        if len(items) == 1:
            return [Refused(items[0], error.reason)]
        middle = len(items) // 2
        return [*await write_all(store, items[:middle], row_of), *await write_all(store, items[middle:], row_of)]
    return []
