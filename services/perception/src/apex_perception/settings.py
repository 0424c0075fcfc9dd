"""Perception's settings, from the environment: PERCEPTION_* and, since it is about the planner, its screenshot mode."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from apex_bus.settings import load
from apex_perception.decide import ScreenshotMode


class PerceptionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    concurrency: Annotated[int, Meta(ge=1, le=256)] = 32
    request_seconds: Annotated[float, Meta(gt=0, le=120)] = 20.0
    settle_seconds: Annotated[float, Meta(gt=0, le=60)] = 5.0
    give_up_seconds: Annotated[float, Meta(gt=0, le=600)] = 60.0
    heal_seconds: Annotated[float, Meta(gt=0, le=600)] = 90.0
    screenshot: ScreenshotMode = "auto"


class _PlannerSettings(msgspec.Struct, frozen=True, kw_only=True):
    screenshot: ScreenshotMode = "auto"


def load_settings(environ: Mapping[str, str]) -> PerceptionSettings:
    """Raises SettingsError that names the variable.

    AI_PLANNER_SCREENSHOT says when a picture is taken for the planner.
    """
    own = load(PerceptionSettings, environ, prefix="PERCEPTION_")
    planner = load(_PlannerSettings, environ, prefix="AI_PLANNER_")
    return msgspec.structs.replace(own, screenshot=planner.screenshot)
