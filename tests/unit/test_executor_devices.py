"""Devices as values: their ports, pools and file; what keeps one from a request; the apps that a task may act in."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_bus.errors import SettingsError
from apex_executor.allowed import outside
from apex_executor.apps import matching
from apex_executor.decide import hindrance
from apex_executor.ports import own_ports, port_is_taken
from apex_executor.settings import all_devices, executor_settings
from apex_schemas.actions import Action, Back, Home, InputText, LaunchApp, Tap, TerminateApp, Wait
from apex_schemas.devices import Claim, DeviceRecord
from apex_schemas.geometry import Point
from apex_schemas.steps import PlannedStep

ALIASES = st.from_regex(r"[a-z0-9-]{1,32}", fullmatch=True)
ANDROID, IOS = {"appium:automationName": "UiAutomator2"}, {"appium:automationName": "XCUITest"}
AT = Point(x=1, y=1)


@given(alias=ALIASES, turn=st.integers(0, 50))
def test_ports_of_a_device_are_always_the_same_differ_from_each_other_and_are_free_to_take(
    alias: str, turn: int
) -> None:
    ports = own_ports(alias, ANDROID, turn=turn)
    assert ports == own_ports(alias, ANDROID, turn=turn)
    assert len(set(ports.values())) == len(ports) == 3
    assert all(1_024 < port < 32_768 for port in ports.values())


def test_ports_are_those_of_the_driver_and_the_configurations_own_are_left_alone() -> None:
    assert set(own_ports("a", ANDROID)) == {"appium:systemPort", "appium:chromedriverPort", "appium:mjpegServerPort"}
    assert set(own_ports("a", IOS)) == {"appium:wdaLocalPort", "appium:mjpegServerPort"}
    assert set(own_ports("a", {"automationName": "Chromium"})) == {"appium:chromedriverPort"}
    assert own_ports("a", {"appium:automationName": "Fake"}) == {}
    assert own_ports("a", {}) == {}
    assert "appium:systemPort" not in own_ports("a", {**ANDROID, "systemPort": 8_200})
    assert "appium:systemPort" not in own_ports("a", {**ANDROID, "appium:systemPort": 8_200})


def test_fifty_devices_get_other_ports_at_the_next_turn_where_theirs_are_taken() -> None:
    first = {own_ports(f"sim-{n}", ANDROID)["appium:systemPort"] for n in range(50)}
    second = {own_ports(f"sim-{n}", ANDROID, turn=1)["appium:systemPort"] for n in range(50)}
    assert len(first) >= 49
    assert len(first & second) <= 2
    assert port_is_taken("The port #8200 is already in use")
    assert port_is_taken("listen EADDRINUSE: address already in use")
    assert not port_is_taken("Device x was not in the list of connected devices")


def device(alias: str, **fields: Any) -> dict[str, Any]:
    return {"alias": alias, "url": "http://127.0.0.1:4723", **fields}


def devices_of(folder: Path, file: str, environment: str = "[]") -> list[str]:
    (folder / "devices.json").write_text(file)
    environ = {"EXECUTOR_DEVICES": environment, "EXECUTOR_DEVICES_FILE": str(folder / "devices.json")}
    settings, configs = executor_settings(environ)
    assert all_devices(settings) == configs
    return [config.alias for config in configs]


def test_devices_of_the_file_stand_beside_those_of_the_environment(tmp_path: Path) -> None:
    assert devices_of(tmp_path, json.dumps([device("b")]), json.dumps([device("a")])) == ["a", "b"]
    assert devices_of(tmp_path, "") == []


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("[{", "is not a list of devices"),
        (json.dumps([device("a")]), "the alias a stands there twice"),
        (json.dumps([device("b", pools=["a"])]), "the pool a of b is the alias of a device"),
        (json.dumps([device("b", pools=["any"])]), "is not a list of devices"),
    ],
)
def test_file_that_cannot_be_used_is_named(tmp_path: Path, file: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=f"EXECUTOR_DEVICES_FILE.*{reason}"):
        devices_of(tmp_path, file, json.dumps([device("a")]))
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        executor_settings({"EXECUTOR_DEVICES_FILE": str(tmp_path / "absent.json")})


def test_pools_of_a_device_come_in_order_its_own_first() -> None:
    _, (config,) = executor_settings({"EXECUTOR_DEVICES": json.dumps([device("a", platform="ios", pools=["x", "y"])])})
    assert config.all_pools == ("a", "x", "y", "ios", "any")


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (None, ""),
        ({"paused": "paused by ada", "state": "quarantined", "reason": "no"}, "; p is paused by ada"),
        ({"state": "quarantined", "reason": "no Appium"}, "; p is set aside: no Appium"),
        ({"released": True}, "; no executor drives p"),
        ({"claim": Claim(task="t", request=b"", request_sequence=1, pool="any", attempt="a")}, "; p was on task t"),
        ({"state": "waiting", "reason": "no planner answers"}, "; p waits: no planner answers"),
        ({"state": "ready"}, ""),
    ],
)
def test_request_that_nobody_took_says_what_kept_its_device(record: dict[str, Any] | None, told: str) -> None:
    assert hindrance("p", None if record is None else DeviceRecord(worker="w", epoch=1, **record)) == told


NAMES = {"settings": ("com.android.settings",), "both": ("com.a", "com.b")}


def judged(action: Action, apps: list[str], app: str | None = None) -> str | None:
    return outside(PlannedStep(action=action, page="", app=app), apps, lambda name: NAMES.get(name.lower(), ()))


@pytest.mark.parametrize(
    ("action", "app", "allowed"),
    [
        (Tap(at=AT), "com.android.settings", True),
        (Tap(at=AT), "Settings", True),  # an iOS screen tells a name
        (Tap(at=AT), "com.other", False),
        (InputText(text="x"), None, False),
        (LaunchApp(app="Settings"), "com.other", True),
        (LaunchApp(app="com.android.settings"), None, True),
        (LaunchApp(app="com.other"), "com.android.settings", False),
        (TerminateApp(app="com.other"), "com.android.settings", False),
        (Back(), "com.other", True),
        (Home(), None, True),
        (Wait(seconds=1), "com.other", True),
    ],
)
def test_act_is_allowed_in_the_apps_of_the_task_alone(action: Action, app: str | None, allowed: bool) -> None:
    assert (judged(action, ["COM.Android.*"], app) is None) is allowed
    assert judged(action, [], app) is None


def test_name_that_may_mean_an_app_outside_is_refused() -> None:
    assert judged(LaunchApp(app="both"), ["com.a", "com.b"]) is None
    assert judged(LaunchApp(app="both"), ["com.a"]) == "'both' is not among the apps of this task: com.a"


@pytest.mark.parametrize(
    ("name", "installed", "package"),
    [
        ("Spotify", {"com.spotify.music": "", "com.a": ""}, "com.spotify.music"),
        ("my notes", {"com.x.mynotes": ""}, "com.x.mynotes"),
        ("Maps", {"com.a.maps": "", "com.b.maps": ""}, None),
        ("Maps", {"com.a.maps": "", "com.b": "Maps"}, "com.b"),
        ("com", {"com.a": ""}, None),
        ("", {"com.a": ""}, None),
    ],
)
def test_app_is_known_by_its_label_or_a_part_of_its_package_where_there_is_one(
    name: str, installed: dict[str, str], package: str | None
) -> None:
    assert matching(name, installed) == package
