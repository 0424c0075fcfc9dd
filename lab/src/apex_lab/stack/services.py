"""Which processes the stack consists of, and what each may know: its environment, built from nothing.

A service gets its own NATS identity and no other; only the decision-log gets the database, only the planner-decision
endpoint the provider and its key. Values in, values out.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from apex_lab.stack.errors import ProviderUnset
from apex_schemas.subjects import Identity

Provider = Literal["anthropic", "openai"]

KEY_VARIABLES: Final[dict[Provider, str]] = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
SCRIPTED_MODEL: Final = "scripted-current"
_PREFIX: Final = "AI_PLANNER_"
_OWN: Final = tuple(f"{_PREFIX}{name}" for name in ("ENABLED", "TRANSPORT", "PROVIDER", "MODEL", "BASE_URL", "API_KEY"))
"""What the stack sets by itself."""
_NETWORK: Final = ("HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")

MODULES: Final[dict[str, tuple[str, Identity]]] = {
    "decision-log": ("apex_decision_log", Identity.DECISION_LOG),
    "planner-decision": ("apex_planner.endpoint", Identity.ENDPOINT),
    "planner": ("apex_planner", Identity.PLANNER),
    "perception": ("apex_perception", Identity.PERCEPTION),
    "executor": ("apex_executor", Identity.EXECUTOR),
}
"""The services in the order in which they are started: name → module and identity."""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A phone as the executor is told of it."""

    alias: str
    url: str
    platform: str = "android"
    capabilities: dict[str, str] = {}


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """Who decides. `key` never leaves the endpoint's environment."""

    provider: Provider
    model: str
    base_url: str | None
    key: str
    settings: Mapping[str, str] = {}
    """Other AI_PLANNER_* variables, for the planner and the endpoint."""
    network: Mapping[str, str] = {}
    """Variables of the shell that lead to the provider through a company's network; for the endpoint."""


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """Where everything is, once it has been started. `database_url` is the writer's, `database_passwords` the file
    with its password."""

    nats_url: str
    seeds: Mapping[Identity, Path]
    database_url: str
    database_passwords: Path
    devices: tuple[Device, ...]
    model: Model
    directory: Path


def real_model(provider: Provider, model: str | None, environ: Mapping[str, str]) -> Model:
    """A provider's own model, with key, model and settings of the shell. Raises ProviderUnset."""
    key_variable = KEY_VARIABLES[provider]
    key = (environ.get("AI_PLANNER_API_KEY") or environ.get(key_variable, "")).strip()
    if not key:
        raise ProviderUnset(key_variable, f"your key of {provider}")
    model = model or environ.get("AI_PLANNER_MODEL")
    if not model:
        raise ProviderUnset("AI_PLANNER_MODEL (or --model)", f"a model of {provider}")
    return Model(
        provider=provider,
        model=model,
        base_url=environ.get("AI_PLANNER_BASE_URL") or None,
        key=key,
        settings={name: text for name, text in environ.items() if name.startswith(_PREFIX) and name not in _OWN},
        network={name: environ[name] for name in _NETWORK if name in environ},
    )


def scripted_model(url: str) -> Model:
    return Model(provider="anthropic", model=SCRIPTED_MODEL, base_url=url, key="scripted-needs-no-key")


def command(module: str, *arguments: str) -> list[str]:
    """Isolated from the folder it is started in and from PYTHON* variables."""
    return [sys.executable, "-I", "-m", module, *arguments]


def bare(directory: Path) -> dict[str, str]:
    """What any process needs to run at all."""
    scripts = str(Path(sys.executable).parent)
    return {
        "PATH": os.pathsep.join((scripts, "/usr/local/bin", "/usr/bin", "/bin")),
        "HOME": str(directory),
        "LANG": "C.UTF-8",
        "TMPDIR": str(directory / "tmp"),
    }


def nats_environment(wiring: Wiring, identity: Identity) -> dict[str, str]:
    return {
        **bare(wiring.directory),
        "APEX_NATS_URL": wiring.nats_url,
        "APEX_NATS_SEED_FILE": str(wiring.seeds[identity]),
    }


def service_environment(service: str, name: str, wiring: Wiring, extra: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of one process of a service; `name` tells its copies apart."""
    environment = nats_environment(wiring, MODULES[service][1])
    environment["APEX_HEALTH_FILE"] = str(wiring.directory / "tmp" / f"{name}.health")
    match service:
        case "decision-log":
            environment["DECISION_LOG_DATABASE_URL"] = wiring.database_url
            environment["PGPASSFILE"] = str(wiring.database_passwords)
        case "planner":
            environment |= {**wiring.model.settings, "AI_PLANNER_ENABLED": "true"}
        case "planner-decision":
            environment |= _endpoint(wiring.model)
        case "executor":
            environment["EXECUTOR_DEVICES"] = json.dumps([msgspec.to_builtins(device) for device in wiring.devices])
        case _:
            pass
    return {**environment, **extra}


def _endpoint(model: Model) -> dict[str, str]:
    values = {
        **model.settings,
        "AI_PLANNER_PROVIDER": model.provider,
        "AI_PLANNER_MODEL": model.model,
        "AI_PLANNER_BASE_URL": model.base_url,
        KEY_VARIABLES[model.provider]: model.key,
        **model.network,
    }
    return {name: value for name, value in values.items() if value}
