"""A list of devices that cannot be read: the error names the variable that was set, and ends nothing that runs."""

from pathlib import Path

import msgspec
import pytest

from apex_bus import credentials
from apex_bus.errors import SettingsError
from apex_bus.provision import named_devices, wanted_devices
from apex_executor.settings import ExecutorSettings

ROOT = Path(__file__).parents[2]
GOOD = '[{"alias": "pixel-8", "url": "http://a", "pools": ["lab"], "capabilities": {"k": "s3cr3t"}}]'
TYPO = '[{"alias": "pixel-8", "url": "s3cr3t'


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"EXECUTOR_DEVICES": GOOD}, ("pixel-8", "lab")),
        ({"APEX_DEVICES": "a,b", "EXECUTOR_DEVICES": TYPO}, ("a", "b")),
        ({"APEX_DEVICES": "", "EXECUTOR_DEVICES": "sim-1,sim-2"}, ("sim-1", "sim-2")),
        ({}, ()),
    ],
)
def test_devices_are_those_of_apex_devices_or_else_of_the_executor(
    environ: dict[str, str], expected: tuple[str, ...]
) -> None:
    assert wanted_devices(environ, or_keep=False) == expected


@pytest.mark.parametrize("variable", ["APEX_DEVICES", "EXECUTOR_DEVICES"])
@pytest.mark.parametrize("text", [TYPO, "Pixel_8", '[{"alias": "Pixel"}]', '[{"url": "http://a"}]'])
def test_error_names_the_variable_that_was_set_and_not_its_text(variable: str, text: str) -> None:
    assert named_devices({variable: text}) == (text, variable)
    with pytest.raises(SettingsError, match=f"^{variable}: ") as caught:
        wanted_devices({variable: text}, or_keep=False)
    assert "s3cr3t" not in str(caught.value)
    assert wanted_devices({variable: text}, or_keep=True) == ()


def run_credentials(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *flags: str, devices: str, layout: str = "volumes"
) -> int:
    monkeypatch.delenv("APEX_DEVICES", raising=False)
    monkeypatch.setenv("EXECUTOR_DEVICES", devices)
    monkeypatch.setattr("sys.argv", ["credentials", f"--out={folder}", f"--layout={layout}", *flags])
    return credentials.main()


@pytest.mark.parametrize("layout", ["flat", "volumes"])
def test_list_with_a_typo_leaves_the_credentials_of_a_running_installation_as_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], layout: credentials.Layout
) -> None:
    assert run_credentials(monkeypatch, tmp_path, "--or-keep", devices=GOOD, layout=layout) == 0
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert b"pixel-8" in credentials.config_path(tmp_path, layout).read_bytes()
    capsys.readouterr()
    assert run_credentials(monkeypatch, tmp_path, "--or-keep", devices=TYPO, layout=layout) == 0
    said = capsys.readouterr().err
    assert said.startswith("credentials: EXECUTOR_DEVICES: is no list of devices")
    assert "left as it is" in said
    assert "s3cr3t" not in said
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize(("flags", "made"), [((), True), ((), False), (("--or-keep",), False)])
def test_list_with_a_typo_is_refused_where_nothing_was_made_or_nobody_wants_it_kept(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    made: bool,
) -> None:
    if made:
        assert run_credentials(monkeypatch, tmp_path, devices=GOOD) == 0
    assert run_credentials(monkeypatch, tmp_path, *flags, devices=TYPO) == 2
    assert "EXECUTOR_DEVICES: is no list of devices" in capsys.readouterr().err


def test_compose_hands_the_executor_every_setting_that_it_has() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    executor = text[text.index("\n  executor:\n") : text.index("\n  decision-log:\n")]
    fields = [field.name.upper() for field in msgspec.structs.fields(ExecutorSettings) if field.name != "secrets"]
    assert [name for name in fields if f"EXECUTOR_{name}: " not in executor] == []
    assert "EXECUTOR_SECRETS_FILE: " in executor
