"""The executor's settings: its devices and its limits, from the environment."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from apex_bus.errors import SettingsError
from apex_bus.secrets import Secrets, read_secrets
from apex_bus.settings import load
from apex_schemas.devices import Platform
from apex_schemas.ids import DeviceAlias

_Seconds = Annotated[float, msgspec.Meta(ge=0.5, le=3_600)]


class DeviceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One device: its alias on the bus, the Appium server that reaches it, and the capabilities of its session.

    `apps` maps labels, as a model may write them, to packages or bundle ids.
    """

    alias: DeviceAlias
    url: Annotated[str, msgspec.Meta(pattern="^https?://")]
    platform: Platform = "android"
    capabilities: dict[str, Any] = {}
    apps: dict[str, str] = {}


class ExecutorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`EXECUTOR_*`. Stage limits end a task whose next slot stays away; they lie above the longest legal call.

    `lease_seconds`: how long a device record may stay unchanged before another executor takes it over.
    `act_seconds`: the deadline of one act. `plan_seconds`: an older decision is not acted on.
    `confirm`, `confirm_file`: acts that wait for approval (see `approval`), and for how many seconds before denial.
    `secrets` come from EXECUTOR_SECRETS_FILE and EXECUTOR_SECRET_<NAME> (see `apex_bus.secrets`).
    """

    devices: str = "[]"
    lease_seconds: _Seconds = 10.0
    request_seconds: _Seconds = 30.0
    act_seconds: _Seconds = 60.0
    plan_seconds: _Seconds = 60.0
    perception_limit_seconds: _Seconds = 90.0
    planner_limit_seconds: _Seconds = 300.0
    executor_limit_seconds: _Seconds = 150.0
    session_idle_seconds: _Seconds = 3_600.0
    verify_target: bool = True
    confirm: str = "[]"
    confirm_file: str = ""
    confirm_seconds: _Seconds = 300.0
    secrets: Secrets = Secrets()


def executor_settings(environ: Mapping[str, str]) -> tuple[ExecutorSettings, tuple[DeviceConfig, ...]]:
    """Settings and devices. Raises SettingsError that names the variable."""
    settings = load(ExecutorSettings, environ, prefix="EXECUTOR_")
    settings = msgspec.structs.replace(settings, secrets=read_secrets(environ, prefix="EXECUTOR_"))
    return settings, device_configs(settings.devices)


def device_configs(text: str) -> tuple[DeviceConfig, ...]:
    """Read EXECUTOR_DEVICES, a JSON list. Its text is not echoed: capabilities may hold access keys."""
    try:
        configs = msgspec.json.decode(text, type=tuple[DeviceConfig, ...])
    except msgspec.MsgspecError as error:
        raise SettingsError("EXECUTOR_DEVICES", f"is not a list of devices: {error}") from None
    aliases = [config.alias for config in configs]
    for alias in aliases:
        if aliases.count(alias) > 1:
            raise SettingsError("EXECUTOR_DEVICES", f"the alias {alias} stands there twice")
    return configs
