"""The make of a simulated phone: its platform, its screen, and what a session says about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Platform = Literal["Android", "iOS"]

_IOS_SCREENS: Final = {3: (390, 844), 2: (375, 667)}
"""Points, by pixels per point."""
_OF_THE_SYSTEM: Final = frozenset({"android", "com.android.permissioncontroller", "com.android.systemui"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """`short` and `long` are the window's sides in its units: pixels on Android, points of `ratio` pixels on iOS."""

    udid: str
    platform: Platform
    short: int
    long: int
    ratio: int = 1

    @property
    def density(self) -> float:
        """Window units per dp; 360 dp are the short side."""
        return self.short / 360

    def size(self, landscape: bool) -> tuple[int, int]:
        return (self.long, self.short) if landscape else (self.short, self.long)

    def package(self, name: str) -> str:
        """The name under which a part of the system goes on this platform; others keep theirs."""
        return "com.apple.springboard" if self.platform == "iOS" and name in _OF_THE_SYSTEM else name

    def capabilities(self, landscape: bool) -> dict[str, object]:
        width, height = self.size(landscape)
        bar = round(24 * self.density)
        if self.platform == "iOS":
            return {
                "platformName": "iOS",
                "automationName": "XCUITest",
                "platformVersion": "17.5",
                "deviceName": self.udid,
                "deviceModel": "Simulated phone (apex-lab)",
                "pixelRatio": self.ratio,
                "statBarHeight": bar,
            }
        return {
            "platformName": "Android",
            "automationName": "UiAutomator2",
            "platformVersion": "14",
            "deviceName": self.udid,
            "deviceUDID": self.udid,
            "deviceModel": "Simulated phone",
            "deviceManufacturer": "apex-lab (simulated)",
            "deviceApiLevel": 34,
            "deviceScreenSize": f"{width}x{height}",
            "deviceScreenDensity": round(160 * self.density),
            "pixelRatio": self.density,
            "statBarHeight": bar,
            "viewportRect": {"left": 0, "top": 0, "width": width, "height": height},
        }


def device(udid: str, platform: Literal["android", "ios"], width: int | None, height: int | None, scale: int) -> Device:
    """A device with the usual screen of its platform where none is given; `scale` is for iOS: 2 or 3."""
    if platform == "android":
        return Device(udid=udid, platform="Android", short=width or 540, long=height or 1200)
    usual = _IOS_SCREENS.get(scale, _IOS_SCREENS[3])
    return Device(udid=udid, platform="iOS", short=width or usual[0], long=height or usual[1], ratio=scale)
