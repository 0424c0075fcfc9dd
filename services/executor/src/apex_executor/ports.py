"""Ports on the machine of an Appium server that each device needs for itself.

Two devices of one server must not share them, and executors that know nothing of each other may both use it. So a
port follows from the device's alias; where two meet nonetheless, the session cannot be made, and the next `turn` of the
same device gives others. What the configuration names is left alone.
"""

import zlib
from collections.abc import Mapping
from typing import Any, Final

_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "uiautomator2": ("systemPort", "chromedriverPort", "mjpegServerPort"),
    "xcuitest": ("wdaLocalPort", "mjpegServerPort"),
    "chromium": ("chromedriverPort",),
}
_FIRST: Final = {"systemPort": 10_000, "wdaLocalPort": 10_000, "mjpegServerPort": 17_000, "chromedriverPort": 24_000}
_EACH: Final = 7_000
"""Below 32,768, where systems begin to hand out ports of their own accord."""
_TAKEN: Final = ("already in use", "address already", "eaddrinuse", "is busy", "port #")


def own_ports(alias: str, capabilities: Mapping[str, Any], *, turn: int = 0) -> dict[str, int]:
    """The capabilities that give a device ports of its own, by the driver that it asks for."""
    driver = str(capabilities.get("appium:automationName", capabilities.get("automationName", ""))).lower()
    place = zlib.crc32(f"{alias} {turn}".encode()) % _EACH
    wanted = _OWN.get(driver, ())
    return {
        f"appium:{name}": _FIRST[name] + place
        for name in wanted
        if name not in capabilities and f"appium:{name}" not in capabilities
    }


def port_is_taken(reason: str) -> bool:
    """Whether a session could not be made since somebody else has one of its ports."""
    lowered = reason.lower()
    return any(words in lowered for words in _TAKEN)
