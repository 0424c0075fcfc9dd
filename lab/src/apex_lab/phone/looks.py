"""What is seen of a simulated phone: its windows, made once and kept until something changes; tree and picture of them.

A page that has just come slides in (faults: transition_ms) and apps may be animated: then the windows are made anew at
each look.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from apex_lab.phone.device import Device
from apex_lab.phone.faults import Faults
from apex_lab.phone.picture import draw
from apex_lab.phone.running import Apps
from apex_lab.phone.screen import Screen, arrange
from apex_lab.phone.typist import Typist
from apex_lab.phone.views import Snapshot, android
from apex_lab.phone.xcuitest import ios
from apex_lab.phone.xmltree import ANDROID, IOS, write


class Body(Protocol):
    """What looking needs of the phone. `running` are its apps."""

    device: Device
    faults: Faults
    landscape: bool
    running: Apps
    typist: Typist


class Looks:
    """`toast` is the short message shown now, `reads` counts page sources; `clock` is seconds that only grow."""

    def __init__(self, phone: Body, clock: Callable[[], float]) -> None:
        self._phone, self._clock = phone, clock
        self.toast, self.reads = "", 0
        self._arrived: int = 0
        self._rests_at = self._slide = 0.0
        self.changed()

    def changed(self) -> None:
        """Forgets what was made of the last screen."""
        self._made: Screen | None = None
        self._snapshot: Snapshot | None = None
        self._picture: bytes | None = None

    @property
    def animated(self) -> bool:
        """Whether the screen never comes to rest."""
        return bool(self._phone.faults.moving) or self._phone.running.active.animated

    @property
    def busy_seconds(self) -> float:
        self.screen()
        return math.inf if self.animated else max(0.0, self._rests_at - self._clock())

    def screen(self) -> Screen:
        """The windows as they lie now."""
        phone, apps = self._phone, self._phone.running
        if any((self._slides(), apps.became_ready(), apps.active.animated)):
            self.changed()
        if self._made is None:
            typist, overlaid = phone.typist, phone.device.platform == "Android"
            self._made = arrange(
                [(app.id, one, one.build()) for app, one in apps.stack()],
                device=phone.device,
                landscape=phone.landscape,
                faults=phone.faults,
                tick=self.reads,
                slide=self._slide,
                focus=(typist.serial, typist.rid) if typist.shown else (0, ""),
                keys=(typist.write, typist.erase, typist.enter, typist.hide),
                overlays=[(app.id, one) for app, one in apps.overlays()] if overlaid else (),
            )
        return self._made

    def source(self, *, all_windows: bool) -> str:
        """The page source; counts as a read."""
        declaration = ANDROID if self._phone.device.platform == "Android" else IOS
        found = write(self.snapshot(all_windows=all_windows).root, declaration)
        self.reads += 1
        self._phone.running.active.read()
        if self.animated or self._phone.faults.connect_reads:
            self.changed()
        return found

    def snapshot(self, *, all_windows: bool) -> Snapshot:
        """The tree; on iOS always with all windows of the app in front, and the keyboard."""
        screen, device, apps = self.screen(), self._phone.device, self._phone.running
        landscape, size = self._phone.landscape, device.size(self._phone.landscape)
        if device.platform == "Android" and all_windows:
            return android(screen.told, self.toast, int(landscape), size)
        if self._snapshot is None and device.platform == "Android":
            self._snapshot = android((screen.active,), self.toast, int(landscape), size)
        elif self._snapshot is None:
            front = screen.active.package
            own = [each for each in screen.windows if each.package == front or each.kind == "keyboard"]
            app = apps.active if front == apps.active.id else apps.system
            self._snapshot = ios([each for each in own if each.kind != "bar"], app.label, front, size)
        return self._snapshot

    def picture(self) -> bytes:
        screen, device = self.screen(), self._phone.device
        if self._picture is None:
            size = device.size(self._phone.landscape)
            self._picture = draw(screen.windows, self.toast, size, device.density, device.ratio)
        return self._picture

    def _slides(self) -> bool:
        """Whether the page on top has just come, or has moved since it was last looked at."""
        now, serial = self._clock(), self._phone.running.top.serial
        lasts = self._phone.faults.transition_ms / 1000
        if serial != self._arrived:
            self._arrived, self._rests_at = serial, now + lasts
        before, self._slide = self._slide, max(0.0, (self._rests_at - now) / lasts) if lasts else 0.0
        return before != self._slide
