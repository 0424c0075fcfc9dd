"""The executor's settings and app names: refused by variable, without repeating what may be a secret."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_bus.errors import SettingsError
from apex_executor.apps import ANDROID, IOS, candidates
from apex_executor.settings import device_configs, executor_settings

DEVICE = {"alias": "pixel-9", "url": "http://127.0.0.1:4723"}
SECRET = "s3cr3t-access-key"


def listed(*devices: Any) -> str:
    return json.dumps(devices)


def test_devices_are_read_with_their_defaults() -> None:
    settings, (device,) = executor_settings({"EXECUTOR_DEVICES": listed(DEVICE), "EXECUTOR_LEASE_SECONDS": "3"})
    assert (device.alias, device.platform, device.capabilities, device.apps) == ("pixel-9", "android", {}, {})
    assert settings.lease_seconds == 3.0
    assert settings.verify_target is True


def test_no_devices_are_fine_and_none_is_the_default() -> None:
    assert executor_settings({})[1] == ()
    assert executor_settings({"EXECUTOR_DEVICES": " "})[1] == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{{{SECRET}", "is not a list of devices"),
        (SECRET, "is not a list of devices"),
        (f'[{{"alias": "a", "url": "http://a", "capabilities": "{SECRET}"}}]', r"object.* got `str`.*capabilities"),
        (listed({"alias": SECRET.upper(), "url": "http://a"}), "alias"),
        (listed({"alias": "any", "url": f"http://{SECRET}"}), "alias"),
        (listed({"alias": "a" * 33, "url": "http://a"}), "alias"),
        (listed({"alias": "192.168.0.9:5555", "url": "http://a"}), "alias"),
        (listed({"alias": "a", "url": f"ftp://{SECRET}"}), "url"),
        (listed({"alias": "a"}), "missing required field `url`"),
        (listed({**DEVICE, "platform": "windows"}), "platform"),
        (listed({**DEVICE, "udid": SECRET}), "unknown field `udid`"),
        (listed(DEVICE, {**DEVICE, "capabilities": {"key": SECRET}}), "the alias pixel-9 stands there twice"),
        (json.dumps({"alias": "a", "url": f"http://{SECRET}"}), "is not a list of devices"),
    ],
)
def test_wrong_devices_are_refused_by_name_and_not_repeated(text: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=f"(?s)EXECUTOR_DEVICES.*{reason}") as caught:
        executor_settings({"EXECUTOR_DEVICES": text})
    assert SECRET.lower() not in str(caught.value).lower()


@pytest.mark.parametrize("alias", ["none", "android", "ios", "any"])
def test_alias_that_means_a_pool_or_nothing_is_refused(alias: str) -> None:
    with pytest.raises(SettingsError, match="EXECUTOR_DEVICES"):
        device_configs(listed({**DEVICE, "alias": alias}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEASE_SECONDS", "0.1"),
        ("ACT_SECONDS", "99999"),
        ("REQUEST_SECONDS", "soon"),
        ("VERIFY_TARGET", "perhaps"),
    ],
)
def test_limit_that_makes_no_sense_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"EXECUTOR_{name}"):
        executor_settings({f"EXECUTOR_{name}": value})


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Settings", ("com.android.settings",)),
        ("  sEttings ", ("com.android.settings",)),
        ("Play Store", ("com.android.vending",)),
        ("com.example.app", ("com.example.app",)),
        (" com.example.app ", ("com.example.app",)),
        ("My Shop", ("com.shop.own",)),
        ("MY SHOP", ("com.shop.own",)),
        ("Chrome", ("org.chromium.own", "com.android.chrome")),
        ("Unheard of", ()),
        ("Dr. Mario", ()),
        ("", ()),
    ],
)
def test_app_name_means_the_installations_own_first_then_the_known_then_itself(
    name: str, found: tuple[str, ...]
) -> None:
    assert candidates(name, "android", {"My Shop": "com.shop.own", "Chrome": "org.chromium.own"}) == found


def test_same_label_is_another_app_on_another_platform() -> None:
    assert candidates("Settings", "ios", {}) == ("com.apple.Preferences",)
    assert candidates("Safari", "android", {}) == ()


@given(st.text(), st.sampled_from(["android", "ios"]))
def test_candidates_are_distinct_and_look_like_packages(name: str, platform: Any) -> None:
    found = candidates(name, platform, {})
    assert len(set(found)) == len(found)
    assert all("." in package and package == package.strip() for package in found)


def test_known_labels_are_as_they_are_looked_up() -> None:
    for label in (*ANDROID, *IOS):
        assert label == label.strip().casefold()
