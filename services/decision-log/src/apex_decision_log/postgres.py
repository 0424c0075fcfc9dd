"""asyncpg with types: the little of it that is used here, and its errors under one import.

asyncpg carries no type information; the protocols below are what the calls of this package rely on.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

CannotConnectNow = asyncpg.CannotConnectNowError
ConnectionDoesNotExist = asyncpg.ConnectionDoesNotExistError
InterfaceError = asyncpg.InterfaceError
InternalClientError = asyncpg.InternalClientError
PostgresError = asyncpg.PostgresError

Record = Mapping[str, Any]


class Connection(Protocol):
    async def execute(self, query: str, *arguments: object) -> str: ...
    async def fetch(self, query: str, *arguments: object) -> Sequence[Record]: ...
    async def fetchval(self, query: str, *arguments: object) -> Any: ...
    def transaction(self) -> AbstractAsyncContextManager[object]: ...
    async def close(self) -> None: ...


class Pool(Protocol):
    def acquire(self, *, timeout: float) -> AbstractAsyncContextManager[Connection]: ...
    def terminate(self) -> None: ...


async def connect(dsn: str, *, timeout_s: float) -> Connection:
    return cast(Connection, await asyncpg.connect(dsn, timeout=timeout_s))  # pyright: ignore[reportUnknownMemberType, reportArgumentType]


async def lazy_pool(dsn: str, *, size: int, connect_s: float, statement_s: float, name: str) -> Pool:
    """A pool that connects to nothing before its first use."""
    pool: object = await asyncpg.create_pool(  # pyright: ignore[reportUnknownMemberType]
        dsn,
        min_size=0,
        max_size=size,
        timeout=connect_s,
        command_timeout=statement_s,
        server_settings={"application_name": name},
    )
    return cast(Pool, pool)
