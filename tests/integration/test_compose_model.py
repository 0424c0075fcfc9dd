"""Which model the compose stack asks: chosen by provider and model alone, the scripted one when nothing is said."""

import os
import shutil
import subprocess
from pathlib import Path

import components
import msgspec
import pytest

pytestmark = pytest.mark.docker
ROOT = Path(__file__).parents[2]
SCRIPTED = "http://model:8080"


def endpoint(folder: Path, *, env_file: str = "", **shell: str) -> dict[str, str]:
    """The endpoint's environment, as compose makes it from a .env file and the shell."""
    components.docker()
    shutil.copy(ROOT / "docker-compose.yml", folder)
    shutil.copytree(ROOT / "deploy", folder / "deploy")
    (folder / ".env").write_text(env_file)
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **shell}
    command = ["docker", "compose", "config", "--format", "json", "endpoint"]
    shown = subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True).stdout
    return msgspec.json.decode(shown)["services"]["endpoint"]["environment"]


def test_without_a_word_the_scripted_model_decides(tmp_path: Path) -> None:
    seen = endpoint(tmp_path)
    assert (seen["AI_PLANNER_MODEL"], seen["AI_PLANNER_BASE_URL"]) == ("scripted-current", SCRIPTED)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_provider_model_and_key_are_all_that_a_real_model_needs(tmp_path: Path, provider: str) -> None:
    key = f"{provider.upper()}_API_KEY"
    seen = endpoint(tmp_path, env_file=f"AI_PLANNER_PROVIDER={provider}\nAI_PLANNER_MODEL=m\n{key}=secret\n")
    assert (seen["AI_PLANNER_PROVIDER"], seen["AI_PLANNER_MODEL"], seen["AI_PLANNER_BASE_URL"]) == (provider, "m", "")
    assert seen[key] == "secret"


def test_server_of_ones_own_is_asked_where_it_is(tmp_path: Path) -> None:
    shell = {"AI_PLANNER_PROVIDER": "openai", "AI_PLANNER_MODEL": "m", "AI_PLANNER_BASE_URL": "http://mine:8000/v1"}
    seen = endpoint(tmp_path, **shell)
    assert seen["AI_PLANNER_BASE_URL"] == "http://mine:8000/v1"


def test_provider_without_a_model_is_not_given_the_scripted_one(tmp_path: Path) -> None:
    seen = endpoint(tmp_path, AI_PLANNER_PROVIDER="openai")
    assert (seen["AI_PLANNER_MODEL"], seen["AI_PLANNER_BASE_URL"]) == ("", "")
