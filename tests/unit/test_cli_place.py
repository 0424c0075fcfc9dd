"""Where the command finds its server, and as whom it goes there."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from apex_bus.errors import SettingsError
from apex_cli.place import RunningStack, find, state_file
from apex_schemas.subjects import Identity


def _up(root: Path, pid: int) -> None:
    state = RunningStack(pid=pid, nats_url="nats://127.0.0.1:5001", seed_file="/seed", phone_url="http://p", logs="/l")
    state_file(root).parent.mkdir(parents=True)
    state_file(root).write_bytes(msgspec.json.encode(state))


def test_without_settings_and_without_a_stack_it_is_the_guest_at_the_default_place(tmp_path: Path) -> None:
    place = find({}, tmp_path)
    assert (place.settings.url, place.identity) == ("nats://127.0.0.1:4222", Identity.GUEST)


def test_a_running_stack_is_found_with_its_credentials(tmp_path: Path) -> None:
    _up(tmp_path, os.getpid())
    place = find({}, tmp_path)
    assert (place.settings.url, place.settings.seed_file) == ("nats://127.0.0.1:5001", "/seed")
    assert place.identity is Identity.CLIENT


def test_a_stack_whose_process_has_gone_is_not_believed(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    _up(tmp_path, ended.pid)
    assert find({}, tmp_path).settings.url == "nats://127.0.0.1:4222"


def test_a_torn_state_file_is_not_believed(tmp_path: Path) -> None:
    _up(tmp_path, os.getpid())
    state_file(tmp_path).write_text('{"pid": 1')
    assert find({}, tmp_path).identity is Identity.GUEST


def test_the_environment_goes_before_a_running_stack_and_brings_no_foreign_seed(tmp_path: Path) -> None:
    _up(tmp_path, os.getpid())
    place = find({"APEX_NATS_URL": "nats://elsewhere:4222"}, tmp_path)
    assert (place.settings.url, place.settings.seed_file, place.identity) == (
        "nats://elsewhere:4222",
        None,
        Identity.GUEST,
    )
    assert "APEX_NATS" in place.found


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("APEX_NATS_PORT=4333\n", "nats://127.0.0.1:4333"),
        ("# APEX_NATS_PORT=4333\nEXECUTOR_DEVICES=[]\n", "nats://127.0.0.1:4222"),
        ("export APEX_NATS_PORT = '4333' # taken\n", "nats://127.0.0.1:4333"),
        ('APEX_NATS_PORT=1\nAPEX_NATS_PORT="4333"', "nats://127.0.0.1:4333"),
        ("APEX_NATS_PORT=\n", "nats://127.0.0.1:4222"),
        ("MY_APEX_NATS_PORT=4333\n", "nats://127.0.0.1:4222"),
    ],
)
def test_the_port_that_compose_publishes_is_read_from_the_env_file_of_the_clone(
    written: str, url: str, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(written)
    assert find({}, tmp_path).settings.url == url


def test_env_file_of_the_clone_says_where_and_everything_else_goes_before_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("APEX_NATS_PORT=4333\n")
    assert str(tmp_path / ".env") in find({}, tmp_path).found
    assert find({"APEX_NATS_PORT": "4444"}, tmp_path).settings.url == "nats://127.0.0.1:4444"
    assert find({"APEX_NATS_URL": "nats://elsewhere:1"}, tmp_path).settings.url == "nats://elsewhere:1"
    with_seed = find({"APEX_NATS_SEED_FILE": "/my/seed"}, tmp_path)
    assert (with_seed.settings.url, with_seed.identity) == ("nats://127.0.0.1:4333", Identity.CLIENT)
    _up(tmp_path, os.getpid())
    assert find({}, tmp_path).settings.url == "nats://127.0.0.1:5001"


@pytest.mark.parametrize("text", ["x", "0", "65536", "${PORT}", "-1"])
def test_what_is_no_port_is_named_with_its_file(text: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"APEX_NATS_PORT={text}\n")
    with pytest.raises(SettingsError, match=r"APEX_NATS_PORT.*\.env is no port"):
        find({}, tmp_path)
    assert find({"APEX_NATS_URL": "nats://elsewhere:1"}, tmp_path).settings.url == "nats://elsewhere:1"


def test_env_file_that_is_no_text_is_left_to_compose(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"APEX_NATS_PORT=4333\n\xff")
    assert find({}, tmp_path).settings.url == "nats://127.0.0.1:4222"


def test_a_seed_file_makes_it_the_client() -> None:
    assert find({"APEX_NATS_SEED_FILE": "/my/seed"}, None).identity is Identity.CLIENT


@pytest.mark.parametrize("environ", [{}, {"APEX_NATS_URL": ""}])
def test_an_empty_variable_counts_as_unset(environ: dict[str, str], tmp_path: Path) -> None:
    _up(tmp_path, os.getpid())
    try:
        assert find(environ, tmp_path).identity is Identity.CLIENT
    except SettingsError as error:  # pragma: no cover - says which variable, should that rule change
        pytest.fail(str(error))
