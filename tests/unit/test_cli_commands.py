"""The command line: what it says of itself, and that an error is a sentence with an exit code."""

import tomllib
from pathlib import Path

import click
import pytest

from apex_cli import __version__
from apex_cli.app import OWN, apex, main
from apex_schemas.queries import MOST_TASKS

NOWHERE = "nats://127.0.0.1:1"
TASK = "0123456789abcdef0123456789abcdef"
REPOSITORY = Path(__file__).resolve().parents[2]


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


def test_help_names_every_command_how_the_server_is_found_and_the_exit_codes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    for part in (*OWN, "demo", "up", "APEX_NATS_URL", "APEX_NATS_SEED_FILE", "apex up", "as the guest", "130"):
        assert part in printed


@pytest.mark.parametrize("name", [*OWN, "demo", "up"])
def test_every_command_has_a_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert "Usage: apex" in capsys.readouterr().out


@pytest.mark.parametrize("name", [*OWN, "demo", "up", "chaos"])
def test_every_option_of_every_command_says_what_it_does(name: str) -> None:
    command = apex.get_command(click.Context(apex), name)
    assert command is not None
    below = command.commands.values() if isinstance(command, click.Group) else ()
    for each in (command, *below):
        options = [parameter for parameter in each.params if isinstance(parameter, click.Option)]
        assert [option.name for option in options if not option.help] == [], each.name


@pytest.mark.parametrize(
    "words",
    [
        ["show", "not-an-id"],
        ["cancel", "0" * 32],
        ["submit", "x", "--device", "Not An Alias"],
        ["submit", "x", "--pool", "none"],
        ["submit", "x", "--max-turns", "0"],
        ["tasks", "--limit", str(MOST_TASKS + 1)],
        ["nonsense"],
    ],
)
def test_a_wrong_command_line_ends_2_with_a_sentence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "Error" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x" * 5_000], "the goal cannot be used: it may have 4,000 characters"),
        ([""], "the goal is blank"),
        (["  \n\t "], "the goal is blank"),
        (["\u200b \u2060"], "the goal is blank"),
        (["x", "--app", ""], "--app takes the name of a package"),
        (["x", "--launch", "y" * 300], "--launch takes the name of an app"),
        (["x", *["--terminate", "a.b"] * 9], "8 of them at most"),
        (["x", "--secret", "1 pin"], "--secret takes a name of letters"),
    ],
)
def test_what_no_request_may_have_ends_5_with_a_sentence_of_words(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", *words]) == 5
    error = capsys.readouterr().err
    assert said in error
    assert "`$." not in error


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["submit", "turn on Wi-Fi"], ["show"], ["tasks"], ["devices"], ["cancel", TASK]], ids=lambda w: w[0]
)
def test_without_a_server_a_command_ends_3_and_says_where_it_looked(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APEX_NATS_URL", NOWHERE)
    assert main(words) == 3
    said = capsys.readouterr().err
    assert f"no NATS server answers at {NOWHERE} (from APEX_NATS_*)" in said
    assert "apex up" in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("words", [["dead"], ["replay", TASK], ["approve", TASK], ["devices", "pause", "sim-1"]])
def test_without_a_server_a_command_of_the_operator_says_the_same(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APEX_NATS_URL", NOWHERE)
    assert main(words) == 3
    assert f"apex: no NATS server answers at {NOWHERE} (from APEX_NATS_*); start" in capsys.readouterr().err


def test_a_misspelt_command_and_a_goal_without_quotes_are_answered_with_what_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sumbit", "x"]) == 2
    assert "did you mean `apex submit`?" in capsys.readouterr().err
    assert main(["submit", "turn", "on", "Wi-Fi", "--follow"]) == 2
    assert 'put the goal in quotes: apex submit "turn on Wi-Fi"' in capsys.readouterr().err


def test_no_command_is_told_of_in_half_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines()[1:] if line.endswith("...")] == []


def test_credentials_that_cannot_be_read_end_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("APEX_NATS_URL", NOWHERE)
    monkeypatch.setenv("APEX_NATS_SEED_FILE", str(tmp_path / "no-seed"))
    assert main(["tasks"]) == 3
    assert "no-seed" in capsys.readouterr().err


def test_every_pure_core_is_held_by_the_import_contract() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    contracts = {contract["id"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}
    sources = REPOSITORY.glob("services/*/src/*/decide.py")
    modules = sorted(f"{source.parent.name}.decide" for source in sources)
    assert modules
    assert sorted(contracts["decide"]["source_modules"]) == modules
