"""apex doctor: each step checked by what tools and servers say, with advice; the messages of the docs."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from apex_cli.app import main
from apex_cli.commands.advice import ADVICE, advice
from apex_cli.commands.doctor import Finding, Named, _of_device, configured_devices, of_servers, of_tools, simulated
from apex_cli.place import RunningStack
from apex_schemas.devices import DeviceStatus

DOCS = Path(__file__).parents[2] / "docs" / "DEVICES.md"
PHONE = Named(alias="pixel", url="http://127.0.0.1:4723", capabilities={"appium:udid": "R5"})
HEALTHY = {
    "node --version": "v20.20.2\n",
    "appium --version": "3.8.0\n",
    "appium driver list --installed --json": '{"uiautomator2": {"version": "8.7.0"}}',
    "adb devices": "List of devices attached\nR5\tdevice\n\n",
}


def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: dict[str, str], *devices: Named) -> list[Finding]:
    monkeypatch.setenv("ANDROID_HOME", str(tmp_path))
    return list(of_tools(list(devices or (PHONE,)), lambda *words: told.get(" ".join(words))))


def wrong(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.step: finding.do for finding in findings if finding.ok is False}


def test_machine_that_has_everything_has_nothing_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    findings = machine(monkeypatch, tmp_path, HEALTHY)
    assert wrong(findings) == {}
    steps = ["Node.js", "Appium", "driver uiautomator2", "ANDROID_HOME", "adb", "phone R5"]
    assert [finding.step for finding in findings] == steps


@pytest.mark.parametrize(
    ("changed", "step", "do"),
    [
        ({"node --version": "v18.1.0"}, "Node.js", "install Node.js 20.19"),
        ({"node --version": "nonsense"}, "Node.js", "install Node.js 20.19"),
        ({"appium --version": "2.11.0"}, "Appium", "npm install -g appium@3"),
        ({"appium driver list --installed --json": "{}"}, "driver uiautomator2", "appium driver install uiautomator2"),
        ({"adb devices": "List\nR5\tunauthorized\n"}, "phone R5", "allow USB debugging"),
        ({"adb devices": "List\nR5\toffline\n"}, "phone R5", "adb reconnect"),
        ({"adb devices": "List\nother\tdevice\n"}, "phone R5", "plug the phone in"),
    ],
)
def test_step_that_is_missing_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: dict[str, str], step: str, do: str
) -> None:
    found = wrong(machine(monkeypatch, tmp_path, HEALTHY | changed))
    assert list(found) == [step]
    assert do in found[step]


def test_simulated_phones_of_a_running_stack_need_no_tools() -> None:
    stack = RunningStack(pid=1, nats_url="nats://x", seed_file="/s", phone_url="http://p", logs="/l")
    assert [(finding.step, finding.ok) for finding in simulated(stack) or ()] == [("tools", None)]
    assert simulated(None) is None


def test_tools_of_another_machine_are_not_looked_for_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (finding,) = machine(monkeypatch, tmp_path, {}, Named(alias="far", url="http://lab.example:4723"))
    assert finding.ok is None
    ios = machine(monkeypatch, tmp_path, HEALTHY, Named(alias="ios", url="http://localhost:1", platform="ios"))
    assert "Mac with Xcode" in wrong(ios)["Xcode"]


def test_each_server_is_asked_once() -> None:
    asked: list[str] = []

    def status(url: str) -> dict[str, object]:
        asked.append(url)
        if "9999" in url:
            raise ConnectionRefusedError
        return {"ready": True, "build": {"version": "3.8.0"}}

    dead = Named(alias="b", url="http://127.0.0.1:9999")
    good, bad = of_servers([PHONE, PHONE, dead], status)
    assert (good.ok, good.said, bad.ok) == (True, "3.8.0", False)
    assert "appium server" in bad.do
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("status", "ok", "do"),
    [
        (None, False, "EXECUTOR_DEVICES"),
        ({"state": "ready"}, True, ""),
        ({"state": "busy", "reason": "x"}, True, ""),
        ({"state": "waiting", "reason": "paused by ada", "paused": True}, None, "apex devices resume pixel"),
        ({"state": "quarantined", "reason": "no Appium server answers at http://a; start it"}, False, "appium server"),
        ({"state": "quarantined", "reason": "Could not find a driver for automationName"}, False, "driver install"),
        ({"state": "unprovisioned", "reason": "NATS has no consumer POOL_a: x"}, False, "apex_bus.provision"),
        ({"state": "quarantined", "reason": "something new"}, False, "docs/DEVICES.md"),
    ],
)
def test_device_is_told_as_its_executor_sees_it(status: dict[str, object] | None, ok: bool | None, do: str) -> None:
    known = None if status is None else DeviceStatus(device="pixel", platform="android", worker="w", epoch=1, **status)  # pyright: ignore
    finding = _of_device("pixel", known)
    assert finding.ok is ok
    assert do in finding.do


def test_devices_are_read_from_both_places_and_their_text_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "devices.json"
    file.write_text(json.dumps([{"alias": "b", "url": "http://b", "apps": {}}]))
    both = {"EXECUTOR_DEVICES": '[{"alias": "a", "url": "http://a"}]', "EXECUTOR_DEVICES_FILE": str(file)}
    assert [device.alias for device in configured_devices(both)[0]] == ["a", "b"]
    _, finding = configured_devices({"EXECUTOR_DEVICES": '[{"alias": 1, "key": "s3cr3t"}]'})
    assert finding.ok is False
    assert "s3cr3t" not in finding.said
    assert configured_devices({"EXECUTOR_DEVICES_FILE": str(tmp_path / "absent")})[1].ok is False
    assert configured_devices({})[1].ok is None


def test_doctor_ends_1_and_names_the_steps_that_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APEX_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setenv("EXECUTOR_DEVICES", '[{"alias": "a", "url": "http://lab.example.invalid:1"}]')
    assert main(["doctor"]) == 1
    captured = capsys.readouterr()
    assert "✗ NATS" in captured.out
    assert "failed: Appium server http://lab.example.invalid:1, NATS" in captured.err
    assert main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["step"] == "devices named"


def test_messages_of_the_docs_are_those_of_the_doctor() -> None:
    rows = [f"| `{words}` | {do} |" for words, do in ADVICE]
    table = "\n".join(("| message has | what to do |", "|---|---|", *rows))
    shown = DOCS.read_text(encoding="utf-8").partition("<!-- advice -->\n")[2].partition("\n<!-- /advice -->")[0]
    assert shown == table, "the table of docs/DEVICES.md is that of apex_cli.commands.advice"
    assert all(advice(f"x {words.upper()} y") for words, _ in ADVICE)
