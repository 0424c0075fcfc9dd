"""The simulated phone: apps, windows, touch, keyboard, and the truth about all of them.

Everything seen of it is made from one list of placed windows, rebuilt when something changed: page source, picture
and hit test cannot disagree. On Android the page source holds the active window alone; status bar, overlays and
keyboard are on the picture, take touches, and join the page source only with the setting `enableMultiWindows`. What
lies under a dialog is on the picture alone. On iOS
it holds all windows of the app in front, and the keyboard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from apex_lab.phone.acts import ActKind, ActLog, Hit
from apex_lab.phone.app import App, Page
from apex_lab.phone.apps import APPS
from apex_lab.phone.device import Platform, device
from apex_lab.phone.errors import InvalidArgument, InvalidElementState
from apex_lab.phone.faults import Faults
from apex_lab.phone.geometry import Point
from apex_lab.phone.launching import refuse_launch
from apex_lab.phone.looks import Looks
from apex_lab.phone.running import Apps
from apex_lab.phone.screen import Screen
from apex_lab.phone.touch import aim, describe, under, way_back
from apex_lab.phone.typist import Typist
from apex_lab.phone.views import Snapshot, View, WindowInfo

BACK, HOME, ENTER, DELETE, SPACE = 4, 3, 66, 67, 62


class Phone:
    """A Handset with apps. `width` and `height` are window units upright: pixels on Android, points on iOS.

    `scale` is pixels per point (iOS): 3, or 2 for a smaller screen.
    """

    def __init__(
        self,
        udid: str,
        *,
        platform: Literal["android", "ios"] = "android",
        width: int | None = None,
        height: int | None = None,
        scale: int = 3,
        permission_popup: bool = True,
        apps: Sequence[type[App[Any]]] = APPS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.udid = udid
        self.permission_popup = permission_popup
        self.device = device(udid, platform, width, height, scale)
        self._kinds = tuple(apps)
        self._clock = clock
        self.acts = ActLog()
        self.faults = Faults()
        self.reset()

    # -- what the server reads

    @property
    def platform(self) -> Platform:
        return self.device.platform

    @property
    def size(self) -> tuple[int, int]:
        return self.device.size(self.landscape)

    @property
    def ratio(self) -> int:
        return self.device.ratio

    @property
    def package(self) -> str:
        return self.screen().active.package

    @property
    def activity(self) -> str:
        return self.screen().active.activity

    @property
    def keyboard_shown(self) -> bool:
        return self.typist.shown

    @property
    def busy_seconds(self) -> float:
        return self._looks.busy_seconds

    def capabilities(self) -> dict[str, object]:
        return self.device.capabilities(self.landscape)

    def source(self, *, all_windows: bool = False) -> str:
        return self._looks.source(all_windows=all_windows)

    def snapshot(self, *, all_windows: bool = False) -> Snapshot:
        return self._looks.snapshot(all_windows=all_windows)

    def picture(self) -> bytes:
        return self._looks.picture()

    def screen(self) -> Screen:
        """The windows as they lie now."""
        return self._looks.screen()

    # -- inputs

    def tap(self, point: Point, session: str) -> None:
        self._touch("tap", point, session)

    def long_press(self, point: Point, session: str) -> None:
        self._touch("long_press", point, session)

    def swipe(self, start: Point, end: Point, session: str) -> int:
        window, trail = under(self.screen(), start)
        moved = 0
        scroller = next((node for node in reversed(trail) if node.reach > 0), None)
        if scroller is not None and window is not None and not window.modal and not self.faults.stuck_scroll:
            offsets = self.running.top.offsets
            before = min(offsets.get(scroller.widget.rid, 0), scroller.reach)
            offsets[scroller.widget.rid] = min(scroller.reach, max(0, before + start.y - end.y))
            moved = offsets[scroller.widget.rid] - before
        aimed = scroller or (trail[-1] if trail else None)
        hit = describe(aimed, window, acted=moved != 0) if aimed and window else None
        self._log("swipe", session, at=start, to=end, scrolled=moved, hit=hit)
        self._looks.toast = ""
        self.changed()
        return moved

    def set_text(self, view: View, text: str, session: str, *, replace: bool) -> None:
        node = view.node
        if node is None or node.widget.on_text is None or not node.widget.enabled:
            raise InvalidElementState(f"Cannot set the element to '{text}'. Did you interact with the correct element?")
        widget = node.widget
        shown = "•" * len(text) if widget.password else text
        self._log(
            "text" if text else "clear", session, value=shown, hit=describe(node, self.screen().active, acted=True)
        )
        self._looks.toast = ""
        if replace:
            self.typist.clear(widget)
        enter = "\n" if self.platform == "iOS" else "\\n"  # on Android the two letters, a quirk of its driver
        pressed_enter = text.endswith(enter)
        value = text.replace(enter, "") if pressed_enter else text
        if value:
            kept = "" if replace and self.faults.typing != "appended" else widget.text
            self.typist.put(widget, kept, value)
        if pressed_enter:
            self.typist.enter()

    def key(self, code: int, session: str) -> None:
        self._log("key", session, value=str(code))
        self._looks.toast = ""
        if code == BACK:
            self._back()
        elif code == HOME:
            self.running.home()
        elif code == ENTER:
            self.typist.enter()
        elif code == DELETE:
            self.typist.erase()
        elif 7 <= code <= 16:
            self.typist.write(str(code - 7))
        elif 29 <= code <= 54:
            self.typist.write(chr(ord("a") + code - 29))
        elif code == SPACE:
            self.typist.write(" ")
        self.changed()

    def write(self, text: str, session: str) -> None:
        widget = self.typist.field()
        secret = widget is not None and widget.password
        self._log("text", session, value="•" * len(text) if secret else text)
        self.typist.write(text)

    def hide_keyboard(self, session: str) -> bool:
        shown = self.keyboard_shown
        if shown:
            self._log("hide_keyboard", session)
            self.typist.hide()
        return shown

    def rotate(self, landscape: bool, session: str) -> None:
        self._log("rotate", session, value="LANDSCAPE" if landscape else "PORTRAIT")
        self.landscape = landscape
        self.changed()

    def activate(self, package: str, session: str) -> None:
        refuse_launch(package, self.running.installed, self.platform, self.faults.launch)
        self._log("launch", session, value=package)
        self._looks.toast = ""
        if self.faults.launch == "nothing":
            return
        self.launch(package)
        if self.faults.launch == "popup":
            self.popup()

    def terminate(self, package: str, session: str) -> bool:
        self._log("terminate", session, value=package)
        running = self.running.terminate(package)
        self.changed()
        return running

    def app_state(self, package: str) -> int:
        return self.running.code(package)

    def apps(self) -> dict[str, str]:
        return {package: app.label for package, app in self.running.installed.items()}

    def windows(self) -> list[WindowInfo]:
        screen = self.screen()
        return [
            WindowInfo(package=each.package, rect=each.root.rect, kind=each.kind, active=each is screen.active)
            for each in reversed(screen.told)
        ]

    def hit(self, view: View) -> bool:
        if view.node is None:
            return True
        return not view.node.hidden and any(each is view.node for each in under(self.screen(), view.middle)[1])

    def popup(self) -> None:
        self.running.system.show_popup()
        self.changed()

    # -- the truth

    def state(self) -> dict[str, object]:
        """Apps' states by package, what is in front, what is on the screen besides."""
        return {
            "udid": self.udid,
            "platform": self.platform,
            "simulated": True,
            "foreground": self.running.front,
            "page": self.running.top.name,
            "keyboard_shown": self.keyboard_shown,
            "focus": self.typist.rid if self.keyboard_shown else "",
            "toast": self._looks.toast,
            "landscape": self.landscape,
            "permission_popup": self.permission_popup,
            "acts": len(self.acts.since()),
            "rests_in_ms": None if self._looks.animated else round(1000 * self.busy_seconds),
            "apps": self.running.state(),
        }

    def patch(self, changes: object) -> None:
        """``{"permission_popup": false, "com.android.settings": {"wifi": true}}``"""
        if not isinstance(changes, dict):
            raise InvalidArgument("a change of state is a JSON object: package → fields")
        for name, value in cast("dict[str, object]", changes).items():
            if name == "permission_popup":
                self.permission_popup = bool(value)
            else:
                self.running.patch(name, value)
        self.changed()

    def reset(self) -> None:
        self.faults = Faults()
        self.acts.clear()
        self.landscape = False
        self.running = Apps(self._kinds, self, self._clock)
        self.typist = Typist(self)
        self._looks = Looks(self, self._clock)

    def changed(self) -> None:
        """Forgets what was made of the last screen."""
        self._looks.changed()

    # -- what apps ask for (Shell)

    @property
    def reads(self) -> int:
        return self._looks.reads

    @property
    def top(self) -> Page:
        return self.running.top

    def toast(self, text: str) -> None:
        self._looks.toast = text

    def launch(self, package: str) -> None:
        self.running.launch(package, self.faults.slow_start_ms)
        self.changed()

    def focus(self, rid: str) -> None:
        self.typist.focus(rid)

    def installed(self) -> list[tuple[str, str]]:
        return self.running.icons()

    def connect_reads(self) -> int:
        return self.faults.connect_reads

    def now(self) -> float:
        return self._clock()

    # -- how inputs arrive

    def _touch(self, kind: Literal["tap", "long_press"], point: Point, session: str) -> None:
        aimed = aim(self.screen(), point, held=kind == "long_press")
        self._log(kind, session, at=point, hit=aimed.hit)
        self._looks.toast = ""
        if aimed.field is not None:
            self.focus(aimed.field.rid)
        elif aimed.press is not None:
            aimed.press()
        self.changed()

    def _back(self) -> None:
        screen, app = self.screen(), self.running.active
        if self.platform == "iOS":  # there is no such key: the driver looks for a way back on the screen
            if (press := way_back(screen)) is not None:
                press()
        elif self.keyboard_shown:
            self.typist.hide()
        elif screen.cancel is not None:
            screen.cancel()
        elif screen.active.modal:
            return
        elif len(app.pages) > 1:
            app.close()
        else:
            self.running.home()

    def _log(
        self,
        kind: ActKind,
        session: str,
        *,
        at: Point | None = None,
        to: Point | None = None,
        scrolled: int | None = None,
        value: str | None = None,
        hit: Hit | None = None,
    ) -> None:
        where = f"{self.package}:{self.running.top.name}"
        self.acts.add(kind, session, where, at=at, to=to, scrolled=scrolled, value=value, hit=hit)
