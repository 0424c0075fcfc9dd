"""Add golden files for examples that have none: `python tests/contract/make_goldens.py`. Never rewrites one.

A golden that no longer decodes to its example means that a change of the wire breaks stored messages: give the type
a new version instead of changing the golden.
"""

from pathlib import Path

import msgspec
from examples import EXAMPLES

GOLDEN = Path(__file__).parent / "golden"


def main() -> None:
    for kind, cases in EXAMPLES.items():
        folder = GOLDEN / kind
        folder.mkdir(parents=True, exist_ok=True)
        for case, example in cases.items():
            packed, readable = folder / f"{case}.msgpack", folder / f"{case}.json"
            if not packed.exists():
                packed.write_bytes(msgspec.msgpack.encode(example))
                readable.write_bytes(msgspec.json.format(msgspec.json.encode(example), indent=1) + b"\n")


if __name__ == "__main__":
    main()
