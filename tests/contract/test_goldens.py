"""Stored messages stay readable: every golden file decodes to its example and encodes to the same fields again."""

import hashlib
from pathlib import Path

import msgspec
import pytest
from contract.examples import EXAMPLES

from apex_schemas.generate import payload_types
from apex_schemas.steps import WorldEvent

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.rglob("*.msgpack"))
TYPES = payload_types()


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_golden_decodes_and_encodes_to_the_same_fields(file: Path) -> None:
    """The same names and values in the same order. Bytes would be too much: msgspec chooses the form of a map's header
    by how many fields its type has, so a sixteenth field with a default changes the first byte of every message."""
    type_ = TYPES[file.parent.name]
    packed = file.read_bytes()
    decoded = msgspec.msgpack.decode(packed, type=type_)
    assert repr(msgspec.msgpack.decode(msgspec.msgpack.encode(decoded))) == repr(msgspec.msgpack.decode(packed))
    assert msgspec.json.decode(file.with_suffix(".json").read_bytes(), type=type_) == decoded


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_golden_is_the_one_that_was_committed_first(file: Path) -> None:
    known = dict(line.split("  ")[::-1] for line in (GOLDEN / "SHA256SUMS").read_text().splitlines())
    assert known.get(str(file.relative_to(GOLDEN))) == hashlib.sha256(file.read_bytes()).hexdigest()


def test_every_type_has_a_golden_and_no_golden_is_an_orphan() -> None:
    assert {file.parent.name for file in FILES} == set(TYPES) == set(EXAMPLES)


def test_examples_are_what_the_goldens_hold() -> None:
    for kind, cases in EXAMPLES.items():
        for case, example in cases.items():
            packed = (GOLDEN / kind / f"{case}.msgpack").read_bytes()
            assert msgspec.msgpack.decode(packed, type=TYPES[kind]) == example, f"{kind}/{case}"


def test_oldest_world_event_decodes_without_rationale_thinking_and_page() -> None:
    packed = (GOLDEN / "world_event.v1" / "oldest.msgpack").read_bytes()
    assert not {"rationale", "thinking", "page"} & set(msgspec.msgpack.decode(packed))
    event = msgspec.msgpack.decode(packed, type=WorldEvent)
    assert (event.rationale, event.thinking, event.page, event.success) == (None, None, None, True)


def test_field_of_a_newer_version_is_ignored() -> None:
    event = msgspec.msgpack.decode(msgspec.msgpack.encode(EXAMPLES["world_event.v1"]["minimal"]))
    event["mood_of_the_phone"] = "new"
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=WorldEvent).success is True
