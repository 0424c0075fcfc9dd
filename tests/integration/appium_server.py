"""A real Appium 3 server for the tests, and sessions of its two drivers.

Consumes the packages of tests/appium, the recorded dumps, the local pages. Owns the server's process group, its
APPIUM_HOME (a temporary folder that links to the installed drivers, so that nothing is installed or written
elsewhere) and every session that the fixtures opened. A test module asks for it with
`pytest_plugins = ("integration.appium_server",)`. What the drivers do and do not do: tests/appium/README.md.
(PYTEST_DONT_REWRITE: nothing is asserted here, and test modules import it before they name it as a plugin.)
"""

import contextlib
import functools
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import components
import pytest
from appium import webdriver
from appium.options.common import AppiumOptions
from appium.webdriver.client_config import AppiumClientConfig
from selenium.common.exceptions import InvalidSessionIdException

DRIVERS = ("@appium/fake-driver", "appium-chromium-driver")
START_SECONDS = 60
STOP_SECONDS = 15

# As root and without a network: no sandbox, and nothing that looks up hosts.
BROWSER_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass(frozen=True, kw_only=True)
class AppiumServer:
    """A running server: its URL (no base path) and its log file."""

    url: str
    log: Path


@contextlib.contextmanager
def running_appium(
    install: components.AppiumInstall, home: Path, *arguments: str
) -> Generator[AppiumServer, None, None]:
    """Start a server on a free port of the loopback, wait for /status, end its whole process group at the end."""
    for driver in DRIVERS:
        link = home / "node_modules" / driver
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(install.modules / driver)
    port, log = free_port(), home / "appium.log"
    command = [install.node, install.modules / "appium" / "index.js", "server"]
    command += ["--address", "127.0.0.1", "--port", str(port), "--log-no-colors", *arguments]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            cwd=home,
            env={**os.environ, "APPIUM_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = AppiumServer(url=f"http://127.0.0.1:{port}", log=log)
    try:
        _wait_until_ready(server, process)
        yield server
    finally:
        _stop(process)


def fake_app(source: Path, folder: Path, *, width: int, height: int) -> Path:
    """Wrap a recorded page source as an app file of the fake driver, whose window is then width x height pixels."""
    text = source.read_text(encoding="utf-8")
    body = re.sub(r"\A\ufeff?\s*<\?xml[^>]*\?>", "", text)  # a declaration may only stand first
    app = folder / source.name
    app.write_text(f'<app width="{width}" height="{height}">{body}</app>', encoding="utf-8")
    return app


def fake_capabilities(app: Path) -> dict[str, Any]:
    return {
        "platformName": "Fake",
        "appium:automationName": "Fake",
        "appium:deviceName": "Fake",
        "appium:app": str(app),
        "appium:newCommandTimeout": 600,
    }


def chromium_capabilities(
    browser: components.Browser, profile: Path, *, width: int = 412, height: int = 915, pixel_ratio: float = 2.0
) -> dict[str, Any]:
    """A browser that looks like a phone: viewport in CSS pixels, its scale, touch. `profile`: an empty folder."""
    metrics = {"width": width, "height": height, "pixelRatio": pixel_ratio, "touch": True, "mobile": True}
    return {
        "platformName": "linux",  # ChromeDriver refuses any other spelling
        "browserName": "chrome",
        "appium:automationName": "Chromium",
        "appium:executable": str(browser.driver),
        "appium:autodownloadEnabled": False,
        # Appium ends whatever ChromeDriver listens on the session's port, 9515 by default, before it starts its own.
        "appium:chromedriverPort": free_port(),
        "appium:newCommandTimeout": 600,
        "goog:chromeOptions": {
            "binary": str(browser.chromium),
            "args": [*BROWSER_ARGUMENTS, f"--user-data-dir={profile}"],
            "mobileEmulation": {"deviceMetrics": metrics},
        },
    }


def open_session(server: AppiumServer, capabilities: Mapping[str, Any]) -> webdriver.Remote:
    options = AppiumOptions().load_capabilities(dict(capabilities))
    return webdriver.Remote(options=options, client_config=AppiumClientConfig(server.url, timeout=60))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def appium_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppiumServer]:
    with running_appium(components.appium(), tmp_path_factory.mktemp("appium")) as server:
        yield server


@pytest.fixture(scope="session")
def local_pages() -> Iterator[str]:
    """The pages of tests/appium/pages over HTTP; the value is the URL of the folder, without a slash."""
    handler = functools.partial(_QuietHandler, directory=str(components.APPIUM_FOLDER / "pages"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def fake_phone(appium_server: AppiumServer, tmp_path: Path) -> Iterator[Callable[..., webdriver.Remote]]:
    """`fake_phone(dump_name, width=1080, height=2400)`: a session whose page source is that recorded dump."""
    with contextlib.ExitStack() as opened:

        def start(dump: str, *, width: int = 1080, height: int = 2400, **more: Any) -> webdriver.Remote:
            app = fake_app(components.dumps() / dump, tmp_path, width=width, height=height)
            driver = open_session(appium_server, fake_capabilities(app) | more)
            opened.callback(close_session, driver)
            return driver

        yield start


@pytest.fixture
def chromium_phone(
    appium_server: AppiumServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., webdriver.Remote]]:
    """`chromium_phone(pixel_ratio=2.0)`: a headless browser that looks like a phone, on an empty page."""
    browser = components.chromium()
    with contextlib.ExitStack() as opened:

        def start(**metrics: Any) -> webdriver.Remote:
            capabilities = chromium_capabilities(browser, tmp_path_factory.mktemp("profile"), **metrics)
            driver = open_session(appium_server, capabilities)
            opened.callback(close_session, driver)
            return driver

        yield start


def close_session(driver: webdriver.Remote) -> None:
    """End the session; one that a test has ended already is fine."""
    with contextlib.suppress(InvalidSessionIdException):
        driver.quit()


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class names it so)
        """Requests of the browser are no output of a test run."""


def _wait_until_ready(server: AppiumServer, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(f"{server.url}/status", timeout=5).close()
            return
        time.sleep(0.05)
    tail = "\n".join(server.log.read_text(errors="replace").splitlines()[-20:])
    state = "still starting" if process.poll() is None else f"ended with {process.returncode}"
    raise RuntimeError(f"Appium at {server.url} did not answer /status in {START_SECONDS} s ({state}):\n{tail}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Let Appium close its sessions (it does so on SIGTERM), then end whatever is left of its group."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
