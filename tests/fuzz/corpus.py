"""The saved inputs: what once broke a target (corpus/), what reaches much of the code (guided/), goldens of the wire,
and recorded page sources where there are.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from apex_schemas.envelope import KINDS

ROOT: Final = Path(__file__).resolve().parents[2]
SAVED: Final = Path(__file__).parent / "corpus"
REACHING: Final = Path(__file__).parent / "guided"
GOLDEN: Final = ROOT / "tests" / "contract" / "golden"
DUMPS: Final = ROOT.parent / "shared" / "dumps"
LARGEST: Final = 100_000

_WORD: Final = re.compile(rb"[A-Za-z_][A-Za-z0-9_.:-]{2,30}")
_MOST_WORDS: Final = 1_000


def corpus(target: str) -> list[bytes]:
    """What damage begins with."""
    dumps = sorted(DUMPS.rglob("*.xml")) if target == "page_source" and DUMPS.is_dir() else []
    return [*seeds(target), *(path.read_bytes()[:LARGEST] for path in dumps)]


def seeds(target: str) -> list[bytes]:
    """What guidance begins with. Without the dumps: what grows of it comes into the repository."""
    inputs = [path.read_bytes()[:LARGEST] for path in (*files_of(SAVED / target), *files_of(REACHING / target))]
    return [*inputs, *_messages()] if target == "message" else inputs


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def _messages() -> list[bytes]:
    """The goldens as they travel: in an envelope where their kind has one, and clients' requests as they are."""
    packed, text = msgspec.msgpack.Encoder(), msgspec.json.Encoder()
    found = [path.read_bytes() for path in files_of(GOLDEN / "TaskRequest")]
    for kind in KINDS:
        for path in files_of(GOLDEN / kind):
            encoder = text if path.suffix == ".json" else packed
            found.append(encoder.encode({"kind": kind, "body": msgspec.Raw(path.read_bytes())}))
    return found


def words(inputs: Iterable[bytes]) -> list[bytes]:
    """The names that the inputs hold: fields, kinds, attributes."""
    return sorted({word for data in inputs for word in _WORD.findall(data)})[:_MOST_WORDS]
