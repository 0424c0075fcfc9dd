"""Fuzz one target for as long as you like: `python tests/fuzz/run.py page_source [SECONDS] [SEED]`.

Guided by coverage where atheris is installed (a wheel of its own, not among our requirements); else by damage to the
corpus. An input that breaks a target is kept in corpus/<target>, and fails the tests from then on.
"""

import hashlib
import random
import sys
import time
import traceback
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
SLOW_S: Final = 5.0


def main(name: str, seconds: float, seed: int) -> int:
    sys.path.insert(0, str(FOLDER.parent))
    try:
        import atheris  # pyright: ignore[reportMissingImports]
    except ImportError:
        return by_damage(name, seconds, seed)
    with atheris.instrument_imports():
        from fuzz.targets import TARGETS
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds:.0f}", str(FOLDER / "corpus" / name)], TARGETS[name])
    atheris.Fuzz()
    return 0


def by_damage(name: str, seconds: float, seed: int) -> int:
    from fuzz.corpus import corpus
    from fuzz.mutate import mutated
    from fuzz.targets import TARGETS

    chance, inputs = random.Random(seed), corpus(name)
    end = time.monotonic() + seconds
    tried, found = 0, set[str]()
    while time.monotonic() < end:
        data = mutated(inputs, chance)
        began = time.monotonic()
        try:
            TARGETS[name](data)
            fault = "slow" if time.monotonic() - began > SLOW_S else None
        except Exception as error:  # noqa: BLE001  (any error is what is looked for)
            last = traceback.extract_tb(error.__traceback__)[-1]
            fault = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
        tried += 1
        if fault is not None and fault not in found:
            found.add(fault)
            file = FOLDER / "corpus" / name / hashlib.sha256(data).hexdigest()[:16]
            file.write_bytes(data)
            sys.stdout.write(f"{fault}: {file}\n")
    sys.stdout.write(f"{name}: {tried} inputs, {len(found)} faults, seed {seed}\n")
    return 1 if found else 0


if __name__ == "__main__":
    words = [*sys.argv[1:], *("", "60", "1")[len(sys.argv) - 1 :]]
    sys.exit(main(words[0], float(words[1]), int(words[2])) if len(sys.argv) > 1 else 2)
