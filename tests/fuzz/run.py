"""Fuzz one target: `python tests/fuzz/run.py page_source [--seconds 60 | --runs 2000] [--seed 1]`.

Guided by coverage where atheris is installed (Linux on x86_64), else by damage to the corpus. An input that breaks a
target is kept in corpus/<target> and fails the tests from then on; one that reaches code which none reached before is
kept in guided/<target>, where `--reduce` leaves what together reaches as much. `--keep FOLDER` takes both instead.
"""

import argparse
import hashlib
import importlib.util
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
SLOW_S: Final = 30
"""Generous: inputs are read in milliseconds, but other processes may hold the machine."""
MOST_MIB: Final = 256
LONGEST: Final = {"page_source": 4_096, "message": 8_192, "answer": 8_192}
"""Bytes of an input that guidance makes; damage goes on to `mutate.MOST_BYTES`."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=LONGEST)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, help="stop after so many inputs, whatever time they take")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--unguided", action="store_true")
    parser.add_argument("--reduce", action="store_true")
    asked = parser.parse_args()
    sys.path.insert(0, str(FOLDER.parent))
    breaking: Path = asked.keep or FOLDER / "corpus" / asked.target
    if asked.unguided or importlib.util.find_spec("atheris") is None:
        return by_damage(asked.target, asked.seconds, asked.runs, asked.seed, breaking)
    reaching: Path = asked.keep or FOLDER / "guided" / asked.target
    with tempfile.TemporaryDirectory() as scratch:
        if asked.reduce:
            return reduced(asked.target, reaching, Path(scratch))
        limit = f"-max_total_time={asked.seconds}" if asked.runs is None else f"-runs={asked.runs}"
        return guided(asked.target, [limit, f"-seed={asked.seed}"], breaking, reaching, Path(scratch))


def guided(name: str, limits: list[str], breaking: Path, reaching: Path, scratch: Path) -> int:
    from fuzz.corpus import seeds, words
    from fuzz.mutate import TOKENS

    inputs = seeds(name)
    (scratch / "words").write_text("".join(f'"{_escaped(word)}"\n' for word in (*TOKENS, *words(inputs))))
    (scratch / "seeds").mkdir()
    for number, data in enumerate(inputs):
        (scratch / "seeds" / f"{number:06}").write_bytes(data)
    own = [f"-dict={scratch / 'words'}", f"-artifact_prefix={breaking}/broke-", "-print_final_stats=1"]
    arguments = [*own, *limits, str(reaching), str(scratch / "seeds")]
    code, said = libfuzzer("fuzz.targets", name, arguments, longest=LONGEST[name])
    covered = re.findall(r"cov: (\d+)", said)
    figures = dict(re.findall(r"stat::(\w+): +(\d+)", said))
    if code or not covered or not figures:
        sys.stdout.write(said)
    sys.stdout.write(
        f"{name}: {figures.get('number_of_executed_units', '?')} inputs, {figures.get('average_exec_per_sec', '?')}/s, "
        f"{covered[-1] if covered else '?'} edges reached ({covered[0] if covered else '?'} by the saved inputs), peak "
        f"{figures.get('peak_rss_mb', '?')} MiB, {'a fault' if code else 'no fault'}, {' '.join(limits)}\n"
    )
    return code


def reduced(name: str, reaching: Path, scratch: Path) -> int:
    """Leave in `reaching` few of its inputs, which together reach what all of them do."""
    arguments = ["-set_cover_merge=1", str(scratch), str(reaching)]
    code, said = libfuzzer("fuzz.targets", name, arguments, longest=LONGEST[name])
    if code or not any(scratch.iterdir()):
        sys.stdout.write(said)
        return code or 1
    for file in reaching.iterdir():
        file.unlink()
    for file in scratch.iterdir():
        (reaching / file.name).write_bytes(file.read_bytes())
    return 0


def libfuzzer(
    module: str, function: str, arguments: list[str], *, longest: int, slow_s: int = SLOW_S, path: Path | None = None
) -> tuple[int, str]:
    """The exit code, 0 when nothing broke, and what was printed. `path` is where the module is, if elsewhere."""
    bounds = [f"-max_len={longest}", f"-timeout={slow_s}", f"-rss_limit_mb={MOST_MIB}"]
    # The shell forks: a process that is executed in place of a fork of ours begins with our peak of memory for its own.
    command = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, str(FOLDER / "guided.py")]
    command += [module, function, *bounds, *arguments]
    found_at = [str(path)] if path else []
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    environment["PYTHONPATH"] = os.pathsep.join([*found_at, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def by_damage(name: str, seconds: float, runs: int | None, seed: int, breaking: Path) -> int:
    from fuzz.corpus import corpus
    from fuzz.mutate import mutated
    from fuzz.targets import TARGETS

    chance, inputs = random.Random(seed), corpus(name)
    end = time.monotonic() + seconds
    tried, found = 0, set[str]()
    while tried < runs if runs is not None else time.monotonic() < end:
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
            file = breaking / f"broke-{hashlib.sha256(data).hexdigest()[:16]}"
            file.write_bytes(data)
            sys.stdout.write(f"{fault}: {file}\n")
    sys.stdout.write(f"{name}: {tried} inputs by damage, {len(found)} faults, seed {seed}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
