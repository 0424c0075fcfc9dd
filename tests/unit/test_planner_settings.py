"""AI_PLANNER_*: what is allowed, and what an error says."""

import subprocess
import sys

import pytest

from apex_bus.errors import SettingsError
from apex_planner.settings import load_planner, load_provider

DIRECT = {"AI_PLANNER_MODEL": "m", "ANTHROPIC_API_KEY": "sk-secret-1"}


def test_the_defaults_are_the_stub_and_the_cloud_proxy() -> None:
    settings = load_planner({})
    assert (settings.enabled, settings.transport, settings.provider) == (False, "cloud-proxy", "anthropic")
    assert (settings.thinking_budget_tokens, settings.tools, settings.tool_choice) == (None, "core", "auto")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AI_PLANNER_ENABLED", "perhaps"),
        ("AI_PLANNER_PROVIDER", "acme"),
        ("AI_PLANNER_TRANSPORT", "pigeon"),
        ("AI_PLANNER_TIMEOUT_SECONDS", "0"),
        ("AI_PLANNER_TIMEOUT_SECONDS", "soon"),
        ("AI_PLANNER_THINKING_BUDGET_TOKENS", "1023"),
        ("AI_PLANNER_MAX_TOKENS", "-1"),
        ("AI_PLANNER_MAX_RETRIES", "99"),
        ("AI_PLANNER_MAX_CONCURRENCY", "0"),
        ("AI_PLANNER_TOOLS", "all"),
        ("AI_PLANNER_TOOL_CHOICE", "any"),
        ("AI_PLANNER_OPENAI_API", "rest"),
        ("AI_PLANNER_REASONING_EFFORT", "huge"),
        ("AI_PLANNER_SCREENSHOT", "sometimes"),
        ("AI_PLANNER_BASE_URL", "localhost:1234"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_by_the_name_of_its_variable(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=variable):
        load_planner({variable: value})


@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, "AI_PLANNER_MODEL"),
        ({"AI_PLANNER_MODEL": "m"}, "ANTHROPIC_API_KEY"),
        ({"AI_PLANNER_MODEL": "m", "AI_PLANNER_PROVIDER": "openai"}, "OPENAI_API_KEY"),
        ({"AI_PLANNER_MODEL": "m", "AI_PLANNER_PROVIDER": "openai", "ANTHROPIC_API_KEY": "k"}, "OPENAI_API_KEY"),
    ],
)
def test_whoever_calls_a_provider_needs_a_model_and_its_key(environ: dict[str, str], variable: str) -> None:
    with pytest.raises(SettingsError, match=variable):
        load_provider(environ)


def test_the_planners_own_key_variable_comes_first_and_is_never_shown() -> None:
    settings = load_provider({**DIRECT, "AI_PLANNER_API_KEY": "sk-secret-2"})
    assert settings.key == "sk-secret-2"
    with pytest.raises(SettingsError) as refused:
        load_provider({**DIRECT, "AI_PLANNER_API_KEY": "sk-secret-2", "AI_PLANNER_MODEL": ""})
    assert "secret" not in str(refused.value)


def test_a_server_of_ones_own_needs_no_key() -> None:
    settings = load_provider({"AI_PLANNER_MODEL": "m", "AI_PLANNER_BASE_URL": "http://127.0.0.1:1"})
    assert settings.key == "none"


@pytest.mark.parametrize(
    ("more", "api"),
    [
        ({}, "responses"),
        ({"AI_PLANNER_BASE_URL": "http://h/v1"}, "chat"),
        ({"AI_PLANNER_BASE_URL": "http://h/v1", "AI_PLANNER_OPENAI_API": "responses"}, "responses"),
        ({"AI_PLANNER_OPENAI_API": "chat"}, "chat"),
    ],
)
def test_openais_api_follows_from_whose_server_it_is(more: dict[str, str], api: str) -> None:
    assert load_planner({"AI_PLANNER_PROVIDER": "openai", **more}).api == api


_LOADED = """
import asyncio, sys
from apex_planner.compose import compose
from apex_planner import ai_planner, service, __main__
class Bus:
    client = None
    worker = "w"
async def main():
    for loop in await compose(Bus(), {environ!r}):
        loop.close()
asyncio.run(main())
print(sorted({{"anthropic", "openai"}} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("environ", "loaded"),
    [
        ({"AI_PLANNER_ENABLED": "true"}, []),
        ({}, []),
        pytest.param(
            {"AI_PLANNER_ENABLED": "true", "AI_PLANNER_TRANSPORT": "direct", **DIRECT},
            ["anthropic"],
            marks=pytest.mark.slow,  # an SDK takes seconds to be imported
        ),
        pytest.param(
            {
                "AI_PLANNER_ENABLED": "true",
                "AI_PLANNER_TRANSPORT": "direct",
                "AI_PLANNER_PROVIDER": "openai",
                "AI_PLANNER_MODEL": "m",
                "OPENAI_API_KEY": "k",
            },
            ["openai"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_sdk_is_loaded_for_the_chosen_provider_only_and_on_cloud_proxy_none(environ, loaded: list[str]) -> None:
    code = _LOADED.format(environ=environ)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.strip() == str(loaded), ran.stderr


def test_the_pure_modules_import_neither_nats_nor_asyncio_nor_an_sdk() -> None:
    """What `decide` pulls in, beyond what msgspec itself needs."""
    code = (
        "import sys, msgspec\n"
        "before = set(sys.modules)\n"
        "import apex_planner.decide, apex_planner.history, apex_planner.clients.reading\n"
        "import apex_planner.clients.anthropic_answer, apex_planner.clients.chat_answer\n"
        "import apex_planner.clients.responses_answer\n"
        "print(sorted({'nats', 'asyncio', 'anthropic', 'openai', 'logging'} & (set(sys.modules) - before)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.strip() == "[]", ran.stderr
