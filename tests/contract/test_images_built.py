"""What is really in each image, asked of the image itself. Builds them all: a minute or two the first time."""

import json
import subprocess
from pathlib import Path

import components
import pytest
from contract.test_images import MEMBERS, lock_of, pins
from packaging.requirements import Requirement

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1_200)]

ROOT = Path(__file__).resolve().parents[2]
IMAGES = {
    "apex-bus": "bus",
    "apex-perception": "perception",
    "apex-planner": "planner",
    "apex-executor": "executor",
    "apex-decision-log": "decision-log",
    "apex-cli": "cli",
    "apex-phones": "lab",
    "apex-model": "lab",
}
_LIST = (
    "import importlib.metadata as m, json, os, sys;"
    "print(json.dumps({'user': os.getuid(), 'names': sorted({d.name for d in m.distributions()})}))"
)
_SHELLS = (
    "import json, os, pathlib, shutil;"
    "listed = [line for line in pathlib.Path('/etc/shells').read_text().splitlines() if line.startswith('/')];"
    "named = ('sh', 'bash', 'dash', 'ash', 'busybox', 'zsh', 'ksh');"
    "print(json.dumps([*filter(os.path.lexists, listed), *filter(shutil.which, named)]))"
)


@pytest.fixture(scope="module")
def built() -> None:
    components.docker()
    build = ["docker", "compose", "--project-directory", str(ROOT), "--profile", "cli", "build", "--quiet"]
    subprocess.run(build, check=True, timeout=1_100, stdin=subprocess.DEVNULL)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(("image", "member"), IMAGES.items())
def test_an_image_has_its_lock_and_its_members_and_nothing_else(image: str, member: str) -> None:
    run = ["docker", "run", "--rm", "--network=none", "--read-only", "--entrypoint=python", image, "-I", "-c", _LIST]
    answer = json.loads(subprocess.run(run, check=True, capture_output=True, text=True, timeout=60).stdout)
    names = {name.lower().replace("_", "-").replace(".", "-") for name in answer["names"]}
    assert answer["user"] == 10001
    locked = {name for name in pins(lock_of(member)) if applies(member, name)}
    assert names == locked | {"apex-schemas", "apex-bus", f"apex-{member}"}


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("image", IMAGES)
def test_an_image_has_no_shell(image: str) -> None:
    """So what runs in it needs none: the compose tests run the whole system with these images."""
    run = ["docker", "run", "--rm", "--network=none", "--read-only"]
    ask = [*run, "--entrypoint=python", image, "-I", "-c", _SHELLS]
    assert json.loads(subprocess.run(ask, check=True, capture_output=True, text=True, timeout=60).stdout) == []
    enter = subprocess.run(
        [*run, "--entrypoint=/bin/sh", image, "-c", "true"], capture_output=True, timeout=60, check=False
    )
    assert enter.returncode == 127


def applies(member: str, name: str) -> bool:
    """Whether a pin's marker, if it has one, holds in the image: Linux, CPython 3.13."""
    (line,) = [line for line in lock_of(member).read_text().splitlines() if line.lower().startswith(f"{name}==")]
    marker = Requirement(line.rstrip(" \\")).marker
    image = {"python_version": "3.13", "python_full_version": "3.13.5", "sys_platform": "linux", "os_name": "posix"}
    return marker is None or marker.evaluate(image)


def test_every_member_has_an_image() -> None:
    assert set(IMAGES.values()) == set(MEMBERS)
