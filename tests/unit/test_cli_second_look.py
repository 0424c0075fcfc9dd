"""A test that failed beside others is run once more, alone, in the form in which pytest-xdist leaves its name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from apex_cli.commands.checks import pass_alone, second_look

FLAKY = """
import pathlib, pytest
@pytest.mark.xdist_group("some-group")
@pytest.mark.parametrize("word", ["a@b", "c"])
def test_fails_{how}(word, request):
    seen = pathlib.Path(__file__).with_name(f"seen-{{word[0]}}")
    first = not seen.exists()
    seen.touch()
    assert {condition}
def test_holds():
    pass
"""


def failed_once(root: Path, how: str, condition: str) -> None:
    (root / "tests").mkdir()
    (root / "tests/test_it.py").write_text(FLAKY.format(how=how, condition=condition))
    (root / "pytest.ini").write_text("[pytest]\nmarkers = xdist_group\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup"]
    assert subprocess.run(command, cwd=root, check=False, capture_output=True).returncode == 1


@pytest.mark.slow
def test_tests_that_pass_alone_are_named_and_count_as_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed_once(tmp_path, "at_first", "not first")
    names = [f"tests/test_it.py::test_fails_at_first[{word}]" for word in ("a@b", "c")]
    assert second_look(tmp_path) == names
    assert pass_alone(tmp_path)
    assert f"FLAKY, passed only when run again alone: {', '.join(names)}" in capsys.readouterr().out


@pytest.mark.slow
def test_tests_that_fail_again_have_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed_once(tmp_path, "always", "False")
    assert not pass_alone(tmp_path)
    assert "FLAKY" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "failed",
    [
        ["tests/chaos/test_races.py::test_one"],
        ["tests/security/test_matrix.py::test_one[x]@matrix", "tests/unit/test_a.py::test_b"],
        [f"tests/unit/test_a.py::test_{n}" for n in range(4)],
        ["tests/unit/test_a.py"],
        [],
    ],
    ids=["a promise", "a promise among others", "many", "a file that cannot be read", "none"],
)
def test_there_is_no_second_look(failed: list[str], tmp_path: Path) -> None:
    cache = tmp_path / ".pytest_cache/v/cache"
    cache.mkdir(parents=True)
    (cache / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)))
    assert second_look(tmp_path) == []


def test_there_is_no_second_look_where_nothing_was_recorded(tmp_path: Path) -> None:
    assert second_look(tmp_path) == []
