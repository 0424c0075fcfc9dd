"""The statements that write rows by the batch, made from the Structs of `rows`. Pure.

`insert … select from unnest(…) on conflict …`: one array a column, so that a batch of any size is one statement of
one form. Written twice, a row is as written once.
"""

import typing
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from apex_decision_log.rows import Acting, Decided, Finished, Happened, Json, Planned, Row, Seen, Started

_SQL_TYPES: Final[dict[Any, str]] = {
    str: "text",
    int: "bigint",
    float: "double precision",
    bool: "boolean",
    datetime: "timestamptz",
    Json: "jsonb",
}


class Upsert(NamedTuple):
    """Where rows of a type go. A column of `keep` stays as whoever wrote it first has it; `once`: the whole row."""

    table: str
    keys: tuple[str, ...]
    keep: frozenset[str] = frozenset()
    once: bool = False


_TURN = ("task_id", "turn")
_TOLD_TWICE = frozenset({"rationale", "thinking"})

UPSERTS: Final[dict[type[Row], Upsert]] = {
    Started: Upsert("tasks", ("task_id",)),
    Finished: Upsert("tasks", ("task_id",), keep=frozenset({"device", "goal"})),
    Seen: Upsert("scenes", _TURN),
    Planned: Upsert("steps", _TURN, keep=_TOLD_TWICE),
    Acting: Upsert("steps", _TURN),
    Happened: Upsert("steps", _TURN, keep=_TOLD_TWICE),
    Decided: Upsert("planner_decision_log", ("task_id", "turn", "call"), once=True),
}


def statement(type_: type[Row]) -> str:
    """The SQL whose parameters are one array for each field, in order."""
    table, keys, keep, once = UPSERTS[type_]
    columns = type_.__struct_fields__
    hints = typing.get_type_hints(type_)
    arrays = ", ".join(f"${n}::{_sql_type(hints[column])}[]" for n, column in enumerate(columns, start=1))
    changed = [
        f"{column} = coalesce({table}.{column}, excluded.{column})"
        if column in keep
        else f"{column} = excluded.{column}"
        for column in columns
        if column not in keys
    ]
    names = ", ".join(columns)
    conflict = "do nothing" if once else f"do update set {', '.join(changed)}"
    return f"insert into {table} ({names}) select * from unnest({arrays}) on conflict ({', '.join(keys)}) {conflict}"


def batches(rows: Iterable[Row]) -> list[tuple[str, list[list[Any]]]]:
    """Statements with their arrays: one for each type, each key once, in the order of the keys.

    A statement may touch a row only once, and writers that take rows in one order do not deadlock.
    """
    by_type: dict[type[Row], dict[tuple[Any, ...], Row]] = {}
    for row in rows:
        key = tuple(getattr(row, name) for name in UPSERTS[type(row)].keys)
        by_type.setdefault(type(row), {})[key] = row
    ordered = [type_ for type_ in UPSERTS if type_ in by_type]
    return [
        (_STATEMENTS[type_], _columns(type_, [by_type[type_][key] for key in sorted(by_type[type_])]))
        for type_ in ordered
    ]


def _columns(type_: type[Row], rows: Sequence[Row]) -> list[list[Any]]:
    return [[getattr(row, name) for row in rows] for name in type_.__struct_fields__]


def _sql_type(hint: Any) -> str:
    alternatives = [each for each in typing.get_args(hint) if each is not type(None)]
    return _SQL_TYPES[alternatives[0] if alternatives else hint]


_STATEMENTS: Final[dict[type[Row], str]] = {type_: statement(type_) for type_ in UPSERTS}
