"""Perception's settings, from the environment: PERCEPTION_* and, since it is about the planner, its screenshot mode."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from apex_bus.secrets import Secrets, read_secrets
from apex_bus.settings import load
from apex_perception.decide import ScreenshotMode


class PerceptionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds. `secrets`: values of this host that are masked wherever a screen shows them, from
    PERCEPTION_SECRETS_FILE, the executor's own file, and PERCEPTION_SECRET_<NAME>."""

    concurrency: Annotated[int, Meta(ge=1, le=256)] = 32
    request_seconds: Annotated[float, Meta(gt=0, le=120)] = 20.0
    settle_seconds: Annotated[float, Meta(gt=0, le=60)] = 5.0
    give_up_seconds: Annotated[float, Meta(gt=0, le=600)] = 60.0
    heal_seconds: Annotated[float, Meta(gt=0, le=600)] = 90.0
    screenshot: ScreenshotMode = "auto"
    secrets: Secrets = Secrets()


class _PlannerSettings(msgspec.Struct, frozen=True, kw_only=True):
    screenshot: ScreenshotMode = "auto"


def load_settings(environ: Mapping[str, str]) -> PerceptionSettings:
    """Raises SettingsError that names the variable.

    AI_PLANNER_SCREENSHOT says when a picture is taken for the planner.
    """
    own = load(PerceptionSettings, environ, prefix="PERCEPTION_")
    planner = load(_PlannerSettings, environ, prefix="AI_PLANNER_")
    secrets = read_secrets(environ, prefix="PERCEPTION_")
    return msgspec.structs.replace(own, screenshot=planner.screenshot, secrets=secrets)
