"""doctor: each step from an empty machine to a first task on a phone, checked in order, with what to do.

Consumes the tools of this machine, the Appium servers of the configured devices, and the answers of the system;
changes nothing. The steps are those of docs/DEVICES.md.
"""

import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import click
import msgspec

from apex_bus.errors import BusError
from apex_cli import client
from apex_cli.commands.advice import advice
from apex_cli.errors import ChecksFailed, CommandError
from apex_cli.place import RunningStack, clone, find, running_stack
from apex_cli.text import plain
from apex_schemas.devices import DeviceStatus

_TOOL_S: Final = 30
_STATUS_S: Final = 5
_NODE: Final = (20, 19)
_DRIVER: Final = {"android": "uiautomator2", "ios": "xcuitest"}
_SERVICES: Final = ("executor", "perception", "planner", "planner-decision", "decision-log")


class Finding(NamedTuple):
    """One checked step. `ok` None: it could not be looked at from here, which is no fault. `do`: what to do."""

    step: str
    ok: bool | None
    said: str
    do: str = ""


class Named(msgspec.Struct, frozen=True):
    """A configured device, as far as it is looked at here."""

    alias: str
    url: str
    platform: str = "android"
    capabilities: dict[str, Any] = {}

    def capability(self, name: str) -> str:
        return str(self.capabilities.get(f"appium:{name}", self.capabilities.get(name, "")))


Run = Callable[..., "str | None"]
"""A program's output, standard error included; None where it is not there or fails."""


def run_tool(*words: str) -> str | None:
    if shutil.which(words[0]) is None:
        return None
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_TOOL_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout + done.stderr if done.returncode == 0 else None


@click.command(short_help="What is missing on the way to a first task, and what to do.")
@click.option("--devices-file", type=click.Path(dir_okay=False), help="Default: EXECUTOR_DEVICES_FILE.")
@click.option("--json", "as_json", is_flag=True, help="All of it, as JSON.")
def doctor(devices_file: str | None, as_json: bool) -> None:
    """Check each step from a phone on USB to a first task, and say what to do. Changes nothing.

    Devices are those of EXECUTOR_DEVICES and of the file, as the executor reads them. Where none are named and an
    `apex up` runs in this clone, its simulated phones need no tools, and none are looked for.
    """
    environ = {**os.environ, **({"EXECUTOR_DEVICES_FILE": devices_file} if devices_file else {})}
    findings: list[Finding] = []
    devices, configured = configured_devices(environ)
    tools = simulated(running_stack(clone())) if not devices else None
    for finding in (
        configured,
        *(tools or of_tools(devices, run_tool)),
        *of_servers(devices, status_of),
        *of_system(devices),
    ):
        findings.append(finding)
        if not as_json:
            _show(finding)
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in findings], indent=2))
    failed = [finding.step for finding in findings if finding.ok is False]
    if failed:
        raise ChecksFailed(failed)


def _show(finding: Finding) -> None:
    sign, colour = {True: ("✓", "green"), False: ("✗", "red"), None: ("–", "yellow")}[finding.ok]
    click.echo(click.style(f"{sign} ", fg=colour) + f"{finding.step}: {plain(finding.said)}")
    if finding.do and finding.ok is not True:
        click.echo(f"    {finding.do}")


def configured_devices(environ: Mapping[str, str]) -> tuple[list[Named], Finding]:
    step, texts = "devices named", [environ.get("EXECUTOR_DEVICES", "")]
    if file := environ.get("EXECUTOR_DEVICES_FILE"):
        try:
            texts.append(Path(file).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = (error.strerror or "it cannot be opened") if isinstance(error, OSError) else "it is no text in UTF-8"
            return [], Finding(step, False, f"{file} cannot be read: {why}", "correct its path, or the file")
    try:
        named = [device for text in texts for device in msgspec.json.decode(text.strip() or "[]", type=list[Named])]
    except msgspec.MsgspecError as error:  # the text is not repeated: it may hold keys
        return [], Finding(step, False, f"no list of devices: {error}", "see docs/DEVICES.md, step 4, for its form")
    if not named:
        do = "set EXECUTOR_DEVICES or EXECUTOR_DEVICES_FILE here as for the executor, to have its devices checked"
        return [], Finding(step, None, "none named in this shell", do)
    return named, Finding(step, True, ", ".join(device.alias for device in named))


def simulated(stack: RunningStack | None) -> list[Finding] | None:
    """In place of the tools, where none are needed: what is driven are the simulated phones of an `apex up`."""
    if stack is None:
        return None
    do = "for phones of your own, name them here as for the executor, and run this again"
    return [Finding("tools", None, "not needed for the simulated phones of the running apex up", do)]


def of_tools(devices: list[Named], run: Run) -> Iterator[Finding]:
    """What an Appium server of this machine needs: only where a device's server is here."""
    here = [device for device in devices if _is_here(device.url)]
    if devices and not here:
        yield Finding("tools", None, "no configured Appium server is on this machine", "run the doctor where they are")
        return
    yield _node(run("node", "--version"))
    yield from _appium(here, run)
    if any(device.platform == "android" for device in here) or not here:
        yield from _android([device for device in here if device.platform == "android"], run)
    if any(device.platform == "ios" for device in here):
        found = run("xcrun", "xctrace", "list", "devices")
        do = "iOS needs a Mac with Xcode: install it, then `xcode-select --install`"
        yield Finding("Xcode", found is not None, "answers" if found else "no Xcode here", do)


def _is_here(url: str) -> bool:
    return any(f"//{host}" in url for host in ("127.0.0.1", "localhost", "[::1]", "host.docker.internal"))


def _node(told: str | None) -> Finding:
    do = "install Node.js 20.19 or newer: https://nodejs.org"
    if told is None:
        return Finding("Node.js", False, "not found", do)
    numbers = tuple(int(part) for part in told.strip().lstrip("v").split(".")[:2] if part.isdigit())
    return Finding("Node.js", numbers >= _NODE, told.strip(), do)


def _appium(devices: list[Named], run: Run) -> Iterator[Finding]:
    version = run("appium", "--version")
    if version is None:
        yield Finding("Appium", None if devices else False, "no `appium` on the PATH", "npm install -g appium@3")
        return
    yield Finding("Appium", version.strip().startswith("3"), version.strip(), "npm install -g appium@3")
    listed = run("appium", "driver", "list", "--installed", "--json") or "{}"
    for name in sorted(
        {_DRIVER[device.platform] for device in devices if device.platform in _DRIVER} or {"uiautomator2"}
    ):
        there = f'"{name}"' in listed
        said = "installed" if there else "not installed"
        yield Finding(f"driver {name}", there, said, f"appium driver install {name}")


def _android(devices: list[Named], run: Run) -> Iterator[Finding]:
    root = os.environ.get("ANDROID_HOME") or os.environ.get("ANDROID_SDK_ROOT")
    there = bool(root) and Path(str(root)).is_dir()
    yield Finding("ANDROID_HOME", there, root or "not set", advice("ANDROID_HOME"))
    told = run("adb", "devices")
    if told is None:
        yield Finding("adb", False, "not found, or it does not answer", "install platform-tools; on the PATH as `adb`")
        return
    states = {words[0]: words[1] for line in told.splitlines()[1:] if len(words := line.split()) >= 2}
    yield Finding("adb", True, f"{len(states)} phones: {', '.join(states) or 'none'}")
    for udid in [device.capability("udid") for device in devices] or list(states):
        state = states.get(udid, "not connected")
        yield Finding(f"phone {udid}", state == "device", state, advice(f"adb: device {state}"))


def status_of(url: str) -> dict[str, Any]:
    """What an Appium server says of itself. Raises OSError or ValueError."""
    with build_opener(ProxyHandler({})).open(f"{url.rstrip('/')}/status", timeout=_STATUS_S) as answer:
        return cast("dict[str, Any]", json.loads(answer.read())["value"])


def of_servers(devices: list[Named], status: Callable[[str], dict[str, Any]]) -> Iterator[Finding]:
    for url in dict.fromkeys(device.url for device in devices):
        step = f"Appium server {url}"
        if "host.docker.internal" in url:
            url = url.replace("host.docker.internal", "127.0.0.1")  # as it is called from here
        try:
            told = status(url)
        except (OSError, URLError, ValueError, KeyError, TypeError):
            yield Finding(step, False, "no answer", advice("no Appium server answers"))
            continue
        build = cast("dict[str, Any]", told.get("build") or {})
        version = str(build.get("version") or told.get("message") or "it answers")
        yield Finding(step, told.get("ready") is True, version, "wait until it is ready, or read its log")


def of_system(devices: list[Named]) -> list[Finding]:
    """NATS, the services, and the devices as their executor sees them."""
    place = find(os.environ, clone())

    async def work(asked: client.Client) -> list[Finding]:
        return [finding async for finding in _of_services(asked, devices)]

    try:
        return [Finding("NATS", True, place.found), *client.run(place, work)]
    except (CommandError, BusError) as error:
        return [Finding("NATS", False, str(error), "start it: `docker compose up`, or `apex up` for a trial")]


async def _of_services(asked: client.Client, devices: list[Named]) -> AsyncIterator[Finding]:
    bus = asked._bus  # pyright: ignore[reportPrivateUsage]
    for service in _SERVICES:
        up = await bus.ping(service, timeout_s=2)
        do = f"`docker compose ps {service}`, and the end of its log: a setting that is wrong is named there"
        yield Finding(f"service {service}", up, "answers" if up else "no answer", do)
    try:
        known = {status.device: status for status in await asked.devices()}
    except CommandError:
        known = {}
    for alias in dict.fromkeys((*(device.alias for device in devices), *known)):
        yield _of_device(alias, known.get(alias))


def _of_device(alias: str, status: DeviceStatus | None) -> Finding:
    step = f"device {alias}"
    if status is None:
        return Finding(step, False, "no executor knows it", "name it in the executor's EXECUTOR_DEVICES or file")
    good = status.state in ("ready", "busy")
    said = status.state if good or not status.reason else f"{status.state}: {status.reason}"
    if status.paused:
        return Finding(step, None, said, f"apex devices resume {alias}")
    return Finding(step, good, said, advice(status.reason or status.state))
