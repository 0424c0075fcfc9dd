"""The saved inputs: what once broke a target, goldens of the wire, and recorded page sources where there are."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SAVED: Final = Path(__file__).parent / "corpus"
GOLDEN: Final = ROOT / "tests" / "contract" / "golden"
DUMPS: Final = ROOT.parent / "shared" / "dumps"
LARGEST: Final = 100_000


def corpus(target: str) -> list[bytes]:
    files = sorted(path for path in (SAVED / target).iterdir() if path.is_file())
    match target:
        case "message":
            files += sorted(GOLDEN.rglob("*.msgpack")) + sorted((GOLDEN / "TaskRequest").glob("*.json"))
        case "page_source" if DUMPS.is_dir():
            files += sorted(DUMPS.rglob("*.xml"))
        case _:
            pass
    return [path.read_bytes()[:LARGEST] for path in files]
