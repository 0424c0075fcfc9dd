"""The recorded phone: real page sources from a folder stand for its screens, in the order of their names.

Each tap, swipe or launch shows the next screen (or none does, with `advance=False`); typed text is kept in the tree.
The picture is drawn from the bounds. What the dump is made of says whether the phone is an Android or an iOS one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path as FilePath

from PIL import Image, ImageDraw

from apex_lab.phone import picture
from apex_lab.phone.acts import ActKind, ActLog, Hit
from apex_lab.phone.device import Platform
from apex_lab.phone.errors import InvalidArgument, InvalidElementState, RecordingError, UnknownError
from apex_lab.phone.faults import Faults
from apex_lab.phone.fonts import wrap
from apex_lab.phone.geometry import Point, Rect
from apex_lab.phone.recording import EDITABLE, Recording, bounds, collect, elements_of, hit_of, label_of, record
from apex_lab.phone.views import Snapshot, View, WindowInfo
from apex_lab.phone.xmltree import Element, read, write


def recorded_phones(folder: str | FilePath, *, advance: bool = True) -> list[RecordedPhone]:
    """One phone per platform found in the folder: ``rec-android``, ``rec-ios``; raises RecordingError."""
    try:
        files = sorted(FilePath(folder).glob("*.xml"))
        screens = [record(file.stem, file.read_bytes()) for file in files]
    except OSError as error:
        raise RecordingError(str(folder), str(error)) from error
    if not screens:
        raise RecordingError(str(folder), "there is no page source in it")
    platforms: tuple[Platform, ...] = ("Android", "iOS")
    parts = ((platform, [s for s in screens if s.platform == platform]) for platform in platforms)
    return [RecordedPhone(f"rec-{platform.lower()}", part, advance=advance) for platform, part in parts if part]


class RecordedPhone:
    """A Handset that shows recordings of one platform."""

    def __init__(self, udid: str, screens: Sequence[Recording], *, advance: bool = True) -> None:
        if not screens:
            raise RecordingError(udid, "no screens")
        self.udid = udid
        self._screens: list[Recording] = list(screens)
        self._advance = advance
        self.acts = ActLog()
        self.faults = Faults()
        self.reset()

    @property
    def platform(self) -> Platform:
        return self._screen.platform

    @property
    def size(self) -> tuple[int, int]:
        return self._screen.size

    @property
    def busy_seconds(self) -> float:
        return math.inf if self.faults.moving else 0.0

    @property
    def landscape(self) -> bool:
        return self.size[0] > self.size[1]

    @property
    def package(self) -> str:
        """The first package named in the tree; on iOS the name of the application."""
        for element in elements_of(self._screen.tree):
            if name := element.get("package", "") or element.get("bundleId", ""):
                return name
        return next((name for each in elements_of(self._screen.tree) if (name := each.get("name", ""))), "")

    @property
    def activity(self) -> str:
        return f".{self._screen.name}"

    @property
    def keyboard_shown(self) -> bool:
        return any("Keyboard" in str(element.tag) for element in elements_of(self._screen.tree))

    @property
    def _screen(self) -> Recording:
        return self._screens[self._at]

    @property
    def ratio(self) -> int:
        if self.platform == "Android":
            return 1
        return 3 if self.size[1] >= 780 else 2

    def capabilities(self) -> dict[str, object]:
        android = self.platform == "Android"
        return {
            "platformName": self.platform,
            "automationName": "UiAutomator2" if android else "XCUITest",
            "platformVersion": "14" if android else "17.0",
            "deviceName": f"{self.udid} (recorded)",
            "deviceScreenSize": f"{self.size[0]}x{self.size[1]}",
            "pixelRatio": self.ratio,
        }

    def source(self, *, all_windows: bool = False) -> str:
        screen = self._screen
        return write(screen.tree) if screen.changed and screen.tree is not None else screen.raw

    def snapshot(self, *, all_windows: bool = False) -> Snapshot:
        tree = self._screen.tree
        views: dict[Element, View] = {}
        if tree is None:
            tree = read(b"<hierarchy/>")
            if tree is None:
                raise RecordingError(self.udid, "the empty tree cannot be built")
            return Snapshot(root=tree, views=views)
        collect(tree, (self._at,), views)
        return Snapshot(root=tree, views=views, by_path={view.path: view for view in views.values()})

    def picture(self) -> bytes:
        return _draw(self._screen, self.size, self.ratio)

    def tap(self, point: Point, session: str) -> None:
        self._input("tap", session, at=point)

    def long_press(self, point: Point, session: str) -> None:
        self._input("long_press", session, at=point)

    def swipe(self, start: Point, end: Point, session: str) -> int:
        self._input("swipe", session, at=start, to=end)
        return 0

    def set_text(self, view: View, text: str, session: str, *, replace: bool) -> None:
        kind = view.element.get("class", "") or view.tag
        if not kind.endswith(EDITABLE):
            raise InvalidElementState(f"Cannot set the element to '{text}'. Did you interact with the correct element?")
        name = "text" if self.platform == "Android" else "value"
        before = view.element.get(name, "")
        empty = replace or view.element.get("showing-hint", "") == "true" or before == view.element.get("hint", "")
        self._log("text" if text else "clear", session, value=text, hit=hit_of(view))
        view.element.set(name, text if empty else before + text)
        self._screen.changed = True

    def key(self, code: int, session: str) -> None:
        self._input("key", session, value=str(code))

    def write(self, text: str, session: str) -> None:
        self._log("text", session, value=text)

    def hide_keyboard(self, session: str) -> bool:
        return False

    def rotate(self, landscape: bool, session: str) -> None:
        raise UnknownError("a recorded phone cannot be turned")

    def activate(self, package: str, session: str) -> None:
        if package not in self._packages():
            raise UnknownError(
                f"Unable to resolve the launchable activity of '{package}'. Original error: No activity found"
            )
        self._input("launch", session, value=package)

    def terminate(self, package: str, session: str) -> bool:
        self._log("terminate", session, value=package)
        return package == self.package

    def app_state(self, package: str) -> int:
        return 4 if package == self.package else 1 if package in self._packages() else 0

    def apps(self) -> dict[str, str]:
        return dict.fromkeys(self._packages(), "")

    def windows(self) -> list[WindowInfo]:
        return [WindowInfo(package=self.package, rect=Rect(0, 0, *self.size), active=True)]

    def hit(self, view: View) -> bool:
        """As the recording says of what is seen: it has no windows to ask."""
        return view.element.get("visible", "") != "false"

    def popup(self) -> None:
        """Recordings have no dialogs of ours."""

    def state(self) -> dict[str, object]:
        return {
            "udid": self.udid,
            "platform": self.platform,
            "simulated": True,
            "recorded": True,
            "foreground": self.package,
            "page": self._screen.name,
            "screen": self._at,
            "screens": [screen.name for screen in self._screens],
            "advance": self._advance,
        }

    def patch(self, changes: object) -> None:
        """``{"screen": 3, "advance": false}``"""
        wanted: dict[str, object] = dict(changes) if isinstance(changes, dict) else {"": changes}  # pyright: ignore[reportUnknownArgumentType]
        screen, advance = wanted.pop("screen", self._at), wanted.pop("advance", self._advance)
        if wanted or not isinstance(screen, int) or not 0 <= screen < len(self._screens):
            raise InvalidArgument(f"a recorded phone has 'screen' from 0 to {len(self._screens) - 1} and 'advance'")
        self._at, self._advance = screen, bool(advance)

    def reset(self) -> None:
        self.faults = Faults()
        self.acts.clear()
        self._at = 0
        self._screens = [record(s.name, s.data) if s.changed else s for s in self._screens]

    def _packages(self) -> set[str]:
        found = {e.get("package", "") for screen in self._screens for e in elements_of(screen.tree)}
        return (found | {self.package}) - {""}

    def _input(
        self, kind: ActKind, session: str, *, at: Point | None = None, to: Point | None = None, value: str | None = None
    ) -> None:
        under = [v for v in self.snapshot().views.values() if at is not None and v.rect.holds(at)]
        deepest = max(under, key=lambda view: len(view.path), default=None)
        self._log(kind, session, at=at, to=to, value=value, hit=hit_of(deepest) if deepest else None)
        if self._advance and self._at + 1 < len(self._screens):
            self._at += 1

    def _log(
        self,
        kind: ActKind,
        session: str,
        *,
        at: Point | None = None,
        to: Point | None = None,
        value: str | None = None,
        hit: Hit | None = None,
    ) -> None:
        self.acts.add(kind, session, self._screen.name, at=at, to=to, value=value, hit=hit)


def _draw(screen: Recording, size: tuple[int, int], pixels: int) -> bytes:
    image = Image.new("RGB", (size[0] * pixels, size[1] * pixels), picture.WHITE)
    pen = ImageDraw.Draw(image)
    letters = max(10, min(size) * pixels // 30)
    for element in elements_of(screen.tree):
        box = bounds(element)
        if box is None or element.get("visible", "") == "false":
            continue
        box = Rect(*(side * pixels for side in box)).clip(Rect(0, 0, *image.size))
        if box.empty:
            continue
        acts = element.get("clickable", "") == "true"
        edge = (box.left, box.top, box.right - 1, box.bottom - 1)
        pen.rectangle(edge, outline=picture.BLUE if acts else picture.LINE, width=2 if acts else 1)
        if (label := label_of(element)) and not len(element):
            for number, line in enumerate(wrap(label[:200], letters, max(1, box.width - 8))[:8]):
                spot = (box.left + 4, box.top + 4 + number * round(letters * 1.3))
                if spot[1] + letters // 2 < box.bottom:
                    picture.put_text(pen, spot, line, letters, picture.INK)
    picture.put_text(pen, (4, 2), f"RECORDED {screen.name}", max(10, letters // 2), picture.GREY)
    return picture.encode(image)
