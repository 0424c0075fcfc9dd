"""The simulated Android phone: apps, windows, touch, keyboard, and the truth about all of them.

Everything seen of it is made from one list of placed windows, rebuilt when something changed: page source, picture
and hit test cannot disagree. As on Android the page source holds the active window alone; status bar and keyboard are
on the picture and take touches, and join the page source only with the setting `enableMultiWindows`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from apex_lab.phone.acts import ActKind, ActLog, Hit
from apex_lab.phone.app import App
from apex_lab.phone.apps import APPS
from apex_lab.phone.errors import InvalidArgument, InvalidElementState, UnknownError
from apex_lab.phone.faults import Faults
from apex_lab.phone.geometry import Point
from apex_lab.phone.handset import Platform
from apex_lab.phone.picture import draw
from apex_lab.phone.running import Apps
from apex_lab.phone.screen import Screen, arrange
from apex_lab.phone.touch import aim, describe, under
from apex_lab.phone.views import Snapshot, View, android
from apex_lab.phone.widgets import Widget
from apex_lab.phone.xmltree import write as write_xml

BACK, HOME, ENTER, DELETE, SPACE = 4, 3, 66, 67, 62


class Phone:
    """A Handset with apps. `width` and `height` are pixels in portrait; 360 dp are the width."""

    def __init__(
        self,
        udid: str,
        *,
        width: int = 540,
        height: int = 1200,
        permission_popup: bool = True,
        apps: Sequence[type[App[Any]]] = APPS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.udid = udid
        self.permission_popup = permission_popup
        self._portrait = (width, height)
        self._kinds = tuple(apps)
        self._clock = clock
        self.acts = ActLog()
        self.faults = Faults()
        self.reset()

    # -- what the server reads

    @property
    def platform(self) -> Platform:
        return "Android"

    @property
    def size(self) -> tuple[int, int]:
        short, long = self._portrait
        return (long, short) if self.landscape else (short, long)

    @property
    def scale(self) -> float:
        return self._portrait[0] / 360

    @property
    def package(self) -> str:
        return self._screen().active.package

    @property
    def activity(self) -> str:
        return self._screen().active.activity

    @property
    def keyboard_shown(self) -> bool:
        return self._focus[1] != "" and self._keyboard and self._focus[0] == self._apps.top.serial

    def capabilities(self) -> dict[str, object]:
        width, height = self.size
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
            "deviceScreenDensity": round(160 * self.scale),
            "pixelRatio": self.scale,
            "statBarHeight": round(24 * self.scale),
            "viewportRect": {"left": 0, "top": 0, "width": width, "height": height},
        }

    def source(self, *, all_windows: bool = False) -> str:
        found = write_xml(self.snapshot(all_windows=all_windows).root)
        self._tick += 1
        self._apps.active.read()
        if self.faults.moving or self.faults.connect_reads:
            self.changed()
        return found

    def snapshot(self, *, all_windows: bool = False) -> Snapshot:
        screen = self._screen()
        if all_windows or self._snapshot is None:
            windows = screen.windows if all_windows else (screen.active,)
            found = android(windows, self._toast, int(self.landscape), self.size)
            if all_windows:
                return found
            self._snapshot = found
        return self._snapshot

    def picture(self) -> bytes:
        screen = self._screen()
        if self._picture is None:
            self._picture = draw(screen.windows, self._toast, self.size, self.scale)
        return self._picture

    # -- inputs

    def tap(self, point: Point, session: str) -> None:
        self._touch("tap", point, session)

    def long_press(self, point: Point, session: str) -> None:
        self._touch("long_press", point, session)

    def swipe(self, start: Point, end: Point, session: str) -> int:
        window, trail = under(self._screen(), start)
        moved = 0
        scroller = next((node for node in reversed(trail) if node.reach > 0), None)
        if scroller is not None and window is not None and not window.modal:
            offsets = self._apps.top.offsets
            before = min(offsets.get(scroller.widget.rid, 0), scroller.reach)
            offsets[scroller.widget.rid] = min(scroller.reach, max(0, before + start.y - end.y))
            moved = offsets[scroller.widget.rid] - before
        aimed = scroller or (trail[-1] if trail else None)
        hit = describe(aimed, window, acted=moved != 0) if aimed and window else None
        self._log("swipe", session, at=start, to=end, scrolled=moved, hit=hit)
        self._toast = ""
        self.changed()
        return moved

    def set_text(self, view: View, text: str, session: str, *, replace: bool) -> None:
        node = view.node
        if node is None or node.widget.on_text is None or not node.widget.enabled:
            raise InvalidElementState(f"Cannot set the element to '{text}'. Did you interact with the correct element?")
        widget = node.widget
        shown = "•" * len(text) if widget.password else text
        window = self._screen().active
        self._log("text" if text else "clear", session, value=shown, hit=describe(node, window, acted=True))
        self._toast = ""
        pressed_enter = text.endswith("\\n")
        value = text.replace("\\n", "") if pressed_enter else text
        self._put(widget, value if replace else widget.text + value)
        if pressed_enter:
            self._enter()

    def key(self, code: int, session: str) -> None:
        self._log("key", session, value=str(code))
        self._toast = ""
        if code == BACK:
            self._back()
        elif code == HOME:
            self._home()
        elif code == ENTER:
            self._enter()
        elif code == DELETE:
            self._erase()
        elif 7 <= code <= 16:
            self._type(str(code - 7))
        elif 29 <= code <= 54:
            self._type(chr(ord("a") + code - 29))
        elif code == SPACE:
            self._type(" ")
        self.changed()

    def write(self, text: str, session: str) -> None:
        widget = self._focused()
        secret = widget is not None and widget.password
        self._log("text", session, value="•" * len(text) if secret else text)
        self._type(text)
        self.changed()

    def hide_keyboard(self, session: str) -> bool:
        shown = self.keyboard_shown
        if shown:
            self._log("hide_keyboard", session)
            self._hide()
        return shown

    def rotate(self, landscape: bool, session: str) -> None:
        self._log("rotate", session, value="LANDSCAPE" if landscape else "PORTRAIT")
        self.landscape = landscape
        self.changed()

    def activate(self, package: str, session: str) -> None:
        if package not in self._apps.installed:
            raise UnknownError(
                f"Unable to resolve the launchable activity of '{package}'. Original error: No activity found"
            )
        self._log("launch", session, value=package)
        self._toast = ""
        self.launch(package)

    def terminate(self, package: str, session: str) -> bool:
        self._log("terminate", session, value=package)
        running = self._apps.terminate(package)
        self.changed()
        return running

    def app_state(self, package: str) -> int:
        return self._apps.code(package)

    def popup(self) -> None:
        self._apps.system.show_popup()
        self.changed()

    # -- the truth

    def state(self) -> dict[str, object]:
        """Apps' states by package, what is in front, what is on the screen besides."""
        return {
            "udid": self.udid,
            "platform": self.platform,
            "simulated": True,
            "foreground": self._apps.front,
            "page": self._apps.top.name,
            "keyboard_shown": self.keyboard_shown,
            "focus": self._focus[1] if self.keyboard_shown else "",
            "toast": self._toast,
            "landscape": self.landscape,
            "permission_popup": self.permission_popup,
            "acts": len(self.acts.since()),
            "apps": self._apps.state(),
        }

    def patch(self, changes: object) -> None:
        """``{"permission_popup": false, "com.android.settings": {"wifi": true}}``"""
        if not isinstance(changes, dict):
            raise InvalidArgument("a change of state is a JSON object: package → fields")
        for name, value in cast("dict[str, object]", changes).items():
            if name == "permission_popup":
                self.permission_popup = bool(value)
            else:
                self._apps.patch(name, value)
        self.changed()

    def reset(self) -> None:
        self.faults = Faults()
        self.acts.clear()
        self.landscape = False
        self._apps = Apps(self._kinds, self, self._clock)
        self._focus = (0, "")
        self._keyboard = False
        self._toast = ""
        self._tick = 0
        self.changed()

    # -- what apps ask for (Shell)

    def toast(self, text: str) -> None:
        self._toast = text

    def launch(self, package: str) -> None:
        self._apps.launch(package, self.faults.slow_start_ms)
        self.changed()

    def focus(self, rid: str) -> None:
        self._focus, self._keyboard = (self._apps.top.serial, rid), True

    def installed(self) -> list[tuple[str, str]]:
        return self._apps.icons()

    def connect_reads(self) -> int:
        return self.faults.connect_reads

    def changed(self) -> None:
        """Forgets what was made of the last screen."""
        self._made: Screen | None = None
        self._snapshot: Snapshot | None = None
        self._picture: bytes | None = None

    # -- the screen

    def _screen(self) -> Screen:
        if self._apps.became_ready():
            self.changed()
        if self._made is None:
            self._made = arrange(
                [(app.package, one, one.build()) for app, one in self._apps.stack()],
                udid=self.udid,
                size=self.size,
                scale=self.scale,
                faults=self.faults,
                tick=self._tick,
                focus=self._focus if self.keyboard_shown else (0, ""),
                keys=(self._type, self._erase, self._enter, self._hide),
            )
        return self._made

    def _touch(self, kind: Literal["tap", "long_press"], point: Point, session: str) -> None:
        aimed = aim(self._screen(), point, held=kind == "long_press")
        self._log(kind, session, at=point, hit=aimed.hit)
        self._toast = ""
        if aimed.field is not None:
            self.focus(aimed.field.rid)
        elif aimed.press is not None:
            aimed.press()
        self.changed()

    # -- typing

    def _focused(self) -> Widget | None:
        serial, rid = self._focus
        if not rid or serial != self._apps.top.serial:
            return None
        nodes = self._screen().active.root.walk()
        return next((node.widget for node in nodes if node.widget.rid == rid and node.widget.editable), None)

    def _put(self, widget: Widget, value: str) -> None:
        limit = widget.max_length
        if widget.on_text is not None:
            widget.on_text(value[:limit] if limit > 0 else value)
        self.changed()

    def _type(self, text: str) -> None:
        widget = self._focused()
        if widget is not None:
            self._put(widget, widget.text + text)

    def _erase(self) -> None:
        widget = self._focused()
        if widget is not None:
            self._put(widget, widget.text[:-1])

    def _enter(self) -> None:
        widget = self._focused()
        if widget is not None and widget.on_enter is not None:
            widget.on_enter()
        else:
            self._hide()
        self.changed()

    def _hide(self) -> None:
        self._keyboard = False
        self.changed()

    def _back(self) -> None:
        if self.keyboard_shown:
            self._hide()
            return
        screen, app = self._screen(), self._apps.active
        if screen.cancel is not None:
            screen.cancel()
        elif screen.active.modal:
            return
        elif len(app.pages) > 1:
            app.close()
        else:
            self._home()

    def _home(self) -> None:
        self._apps.home()
        self.changed()

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
        where = f"{self.package}:{self._apps.top.name}"
        self.acts.add(kind, session, where, at=at, to=to, scrolled=scrolled, value=value, hit=hit)
