"""What a driver says when it cannot start an app."""

from __future__ import annotations

from collections.abc import Container
from typing import Literal

from apex_lab.phone.device import Platform
from apex_lab.phone.errors import UnknownError

LaunchFault = Literal["not_exported", "no_activity", "nothing", "popup"]


def refuse_launch(package: str, installed: Container[str], platform: Platform, fault: LaunchFault | None) -> None:
    """Raises UnknownError, in the driver's words, when the app is not there or must not be started."""
    if package not in installed and platform == "iOS":
        raise UnknownError(f"The application with bundle identifier '{package}' is unknown or not installed")
    if package not in installed or fault == "no_activity":
        raise UnknownError(
            f"Unable to resolve the launchable activity of '{package}'. Original error: No activity found"
        )
    if fault == "not_exported":
        raise UnknownError(
            f"Cannot start the '{package}' application. Original error: java.lang.SecurityException: Permission "
            f"Denial: starting Intent {{ cmp={package}/.MainActivity }} from null (pid=4711, uid=2000) not exported "
            "from uid 10123"
        )
