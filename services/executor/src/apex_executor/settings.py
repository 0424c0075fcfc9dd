"""The executor's settings: its devices and its limits, from the environment and a file of devices."""

from collections.abc import Mapping, Sequence
from pathlib import Path
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

    `apps` maps labels, as a model may write them, to packages or bundle ids. `pools` are labels of the installation
    that requests may name, such as `samsung`; requests are taken from the device's own pool first, then from these in
    order, then from its platform's and from anybody's. `verify` False: act without looking the target up first, for
    phones where that takes too long.
    """

    alias: DeviceAlias
    url: Annotated[str, msgspec.Meta(pattern="^https?://")]
    platform: Platform = "android"
    capabilities: dict[str, Any] = {}
    apps: dict[str, str] = {}
    pools: tuple[DeviceAlias, ...] = ()
    verify: bool = True

    @property
    def all_pools(self) -> tuple[str, ...]:
        """The pools that it takes requests from, the first first."""
        return (self.alias, *self.pools, self.platform, "any")


class ExecutorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`EXECUTOR_*`. Stage limits end a task whose next slot stays away; they lie above the longest legal call.

    `lease_seconds`: how long a device record may stay unchanged before another executor takes it over.
    `act_seconds`: the deadline of one act. `open_seconds`: how long a session may take to be made.
    `plan_seconds`: an older decision is not acted on. `devices_file`: a file in the form of `devices`, beside which it
    stands; read again when it changes. `reuse_session`: keep the session between tasks. `allot_ports`: give each device
    ports of its own on the machine of its Appium server.
    `secrets` come from EXECUTOR_SECRETS_FILE and EXECUTOR_SECRET_<NAME> (see `apex_bus.secrets`).
    `confirm`, `confirm_file`: acts that wait for approval (see `approval`), and for how many seconds before denial.
    """

    devices: str = "[]"
    devices_file: str = ""
    lease_seconds: _Seconds = 10.0
    request_seconds: _Seconds = 30.0
    act_seconds: _Seconds = 60.0
    open_seconds: _Seconds = 240.0
    plan_seconds: _Seconds = 60.0
    perception_limit_seconds: _Seconds = 90.0
    planner_limit_seconds: _Seconds = 300.0
    executor_limit_seconds: _Seconds = 150.0
    session_idle_seconds: _Seconds = 3_600.0
    verify_target: bool = True
    reuse_session: bool = True
    allot_ports: bool = True
    confirm: str = "[]"
    confirm_file: str = ""
    confirm_seconds: _Seconds = 300.0
    secrets: Secrets = Secrets()


def executor_settings(environ: Mapping[str, str]) -> tuple[ExecutorSettings, tuple[DeviceConfig, ...]]:
    """Settings and devices, those of the file included. Raises SettingsError that names the variable."""
    settings = load(ExecutorSettings, environ, prefix="EXECUTOR_")
    settings = msgspec.structs.replace(settings, secrets=read_secrets(environ, prefix="EXECUTOR_"))
    return settings, all_devices(settings)


def all_devices(settings: ExecutorSettings) -> tuple[DeviceConfig, ...]:
    """The devices of the environment and, as it is now, of the file. Raises SettingsError."""
    named = device_configs(settings.devices)
    if not settings.devices_file:
        return named
    try:
        text = Path(settings.devices_file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise SettingsError("EXECUTOR_DEVICES_FILE", f"{settings.devices_file} cannot be read: {reason}") from error
    both = (*named, *device_configs(text, "EXECUTOR_DEVICES_FILE"))
    _check(both, "EXECUTOR_DEVICES_FILE")
    return both


def device_configs(text: str, variable: str = "EXECUTOR_DEVICES") -> tuple[DeviceConfig, ...]:
    """Read a JSON list of devices. Its text is not echoed: capabilities may hold access keys."""
    try:
        configs = msgspec.json.decode(text or "[]", type=tuple[DeviceConfig, ...])
    except msgspec.MsgspecError as error:
        raise SettingsError(variable, f"is not a list of devices: {error}") from None
    _check(configs, variable)
    return configs


def _check(configs: Sequence[DeviceConfig], variable: str) -> None:
    aliases = [config.alias for config in configs]
    for alias in aliases:
        if aliases.count(alias) > 1:
            raise SettingsError(variable, f"the alias {alias} stands there twice")
    for config in configs:
        for pool in config.pools:
            if pool in aliases:
                raise SettingsError(variable, f"the pool {pool} of {config.alias} is the alias of a device")
