"""The rule for missing components: skipped on a laptop, failed in CI, and always with a way to get them."""

import shutil
from pathlib import Path

import components
import pytest


def test_a_missing_component_skips_on_a_laptop_and_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"phone is not here: buy one"):
        components.require("phone", False, "buy one")


def test_a_missing_component_fails_when_ci_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"phone is not here: buy one"):
        components.require("phone", False, "buy one")


def test_a_component_that_is_here_goes_on_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    components.require("phone", True, "buy one")
    assert components.nats().is_file()
    assert components.postgres().is_dir()


def test_every_component_has_a_finder_and_a_way_to_get_it() -> None:
    assert components.FINDERS.keys() == components.HOW_TO_INSTALL.keys()


def test_an_appium_of_another_version_than_pinned_counts_as_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "package.json").write_text('{"dependencies": {"appium": "3.8.0"}}')
    installed = tmp_path / "node_modules" / "appium" / "package.json"
    installed.parent.mkdir(parents=True)
    installed.write_text('{"version": "3.7.0"}')
    monkeypatch.setattr(components, "APPIUM_FOLDER", tmp_path)
    find = components.find_appium.__wrapped__
    assert find() is None
    monkeypatch.setattr(components, "_node_version", lambda _node: (20, 19))
    if shutil.which("node"):
        installed.write_text('{"version": "3.8.0"}')
        assert find() is not None
