"""What is generated from the code is what is committed, and the code has no number that could smuggle a NaN."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from apex_schemas import generate
from apex_schemas.envelope import KINDS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("file", "text"),
    [("schemas/schema.json", generate.schema_json()), ("docs/SUBJECTS.md", generate.subjects_md())],
)
def test_generated_file_is_committed_as_generated(file: str, text: str) -> None:
    assert (ROOT / file).read_text(encoding="utf-8") == text, "run: python -m apex_schemas.generate ."


def _floats(type_: inspect.Type, seen: set[type]) -> Iterator[inspect.FloatType]:
    match type_:
        case inspect.FloatType():
            yield type_
        case inspect.StructType(cls=cls, fields=fields):
            if cls not in seen:
                seen.add(cls)
                for field in fields:
                    yield from _floats(field.type, seen)
        case inspect.UnionType(types=types):
            for each in types:
                yield from _floats(each, seen)
        case inspect.VarTupleType(item_type=item):
            yield from _floats(item, seen)
        case _:
            return


@pytest.mark.parametrize("kind", KINDS)
def test_every_float_of_the_wire_has_bounds_that_nan_does_not_pass(kind: str) -> None:
    for found in _floats(inspect.type_info(KINDS[kind]), set()):
        assert (found.ge, found.gt) != (None, None)
        assert (found.le, found.lt) != (None, None)


def test_kinds_carry_a_version() -> None:
    assert all(kind.rpartition(".v")[2].isdigit() for kind in KINDS)
    assert all(issubclass(type_, msgspec.Struct) for type_ in KINDS.values())
