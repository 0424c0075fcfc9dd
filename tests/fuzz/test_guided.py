"""A short run that coverage guides over each reader: bounded by inputs and not by time, with a seed, memory bounded.

And that it finds what it is for: a crash behind a few bytes, memory without end, a hang.
"""

import importlib.util
import platform
import re
import subprocess
import sys
from pathlib import Path

import components
import pytest
from fuzz.corpus import REACHING
from fuzz.run import MOST_MIB, libfuzzer
from fuzz.targets import TARGETS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RUN = Path(__file__).with_name("run.py")
RUNS = {"page_source": 400, "message": 5_000, "answer": 3_000}
MOST_SAVED_BYTES = 500_000

BROKEN = """
kept = []

def crashes(data):
    if data[:1] == b"<":
        if data[1:2] == b"?":
            if data[2:3] == b"x":
                raise ValueError("found")

def grows(data):
    kept.append(bytearray(8_000_000))

def hangs(data):
    while data[:1] == b"<":
        pass
"""


@pytest.fixture(autouse=True)
def _atheris() -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64") or sys.version_info >= (3, 15):
        pytest.skip("atheris has wheels for CPython up to 3.14 on Linux on x86_64 alone; damage is tried everywhere")
    present = importlib.util.find_spec("atheris") is not None
    components.require("atheris", present, "install requirements.lock anew")


@pytest.mark.parametrize("target", TARGETS)
def test_what_coverage_leads_to_is_read_or_refused(target: str, tmp_path: Path) -> None:
    command = [sys.executable, RUN, target, "--runs", str(RUNS[target]), "--seed", "1", "--keep", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.search(r"(\d+) inputs, \d+/s, (\d+) edges reached \((\d+) by the saved inputs\)", done.stdout)
    assert said is not None, done.stdout
    inputs, reached, before = map(int, said.groups())
    assert inputs >= RUNS[target]
    assert reached >= before > 50, "the readers are instrumented"


@pytest.mark.parametrize(
    ("function", "said"),
    [("crashes", "ValueError: found"), ("grows", f"limit: {MOST_MIB}Mb"), ("hangs", "ALARM")],
)
def test_a_reader_that_breaks_is_found_out_and_its_input_kept(function: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "kept").mkdir()
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "one").write_bytes(b"<a/>")
    arguments = ["-runs=200000", "-seed=1", f"-artifact_prefix={tmp_path}/kept/", str(tmp_path / "seeds")]
    code, output = libfuzzer("broken", function, arguments, longest=64, slow_s=2, path=tmp_path)
    assert code != 0
    assert said in output, output[-2_000:]
    assert any((tmp_path / "kept").iterdir()), output[-2_000:]


def test_what_is_kept_for_guidance_is_small() -> None:
    assert sum(path.stat().st_size for path in REACHING.rglob("*") if path.is_file()) < MOST_SAVED_BYTES
