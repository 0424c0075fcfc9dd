"""From pages to the windows on the screen, in paint order: page, dialogs over it, status bar, keyboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apex_lab.phone.app import Page
from apex_lab.phone.device import Device
from apex_lab.phone.faults import Faults
from apex_lab.phone.geometry import Rect
from apex_lab.phone.keyboard import HEIGHT_DP, keyboard
from apex_lab.phone.keyboard import PACKAGE as KEYBOARD_PACKAGE
from apex_lab.phone.layout import Node, Style, height_of, place
from apex_lab.phone.views import Placed
from apex_lab.phone.widgets import Handler, Widget, as_on_ios, row, text
from apex_lab.phone.windows import Window

STATUS_DP = 24
DIALOG_DP = 312
LANDSCAPE_DIALOG = 0.65
"""The least part of a wide screen's width that Android gives a dialog."""
_DECOR = Widget(cls="android.widget.FrameLayout")
_BEYOND = 12
_IOS_WORDS = {"Navigate up": "Back"}
Keys = tuple[Callable[[str], None], Handler, Handler, Handler]


@dataclass(frozen=True, kw_only=True)
class Screen:
    """The placed windows; `active` has the focus, `cancel` is what Back does to it."""

    windows: tuple[Placed, ...]
    active: Placed
    cancel: Handler | None

    @property
    def told(self) -> tuple[Placed, ...]:
        """The windows that Android tells its tools of: the active one and what lies over it. Each window of the stack
        is modal (it takes touches wherever they are), and what is under a modal window is not reported."""
        return self.windows[next(n for n, window in enumerate(self.windows) if window is self.active) :]


def arrange(
    stack: Sequence[tuple[str, Page, Window]],
    *,
    device: Device,
    landscape: bool,
    faults: Faults,
    tick: int,
    focus: tuple[int, str],
    keys: Keys,
    overlays: Sequence[tuple[str, Widget]] = (),
    slide: float = 0.0,
) -> Screen:
    """Places the pages of a stack (package, page, window; lowest first) and what the system shows around them.

    Only the last full page and the dialogs above it are on the screen. `focus` is (serial of a page, resource id) of
    the field that has the cursor, which brings the keyboard. `overlays` are (package, widget) that lie over all pages.
    `slide` is how much of the screen's width the page on top has still to go.
    """
    whole, scale, ios = Rect(0, 0, *device.size(landscape)), device.density, device.platform == "iOS"
    status = round(STATUS_DP * scale)
    keys_top = whole.bottom - min(round(HEIGHT_DP * scale), whole.height // 2)
    lowest = max((n for n, (_, _, window) in enumerate(stack) if window.kind == "page"), default=0)
    placed: list[Placed] = []
    for package, page, window in stack[lowest:]:
        style = Style(
            scale=scale,
            rtl=window.rtl,
            labels={**_IOS_WORDS, **faults.relabel} if ios else faults.relabel,
            seed=faults.shuffle,
            offsets=page.offsets,
            moving=faults.moving,
            tick=tick,
            beyond=_BEYOND if ios else 0,
        )
        body = as_on_ios(window.body) if ios else window.body
        focused = focus[1] if focus[0] == page.serial else ""
        room = whole._replace(top=status)
        if focused and window.resizes:
            room = room._replace(bottom=keys_top)
        if window.kind == "dialog":
            limit = keys_top if focused else whole.bottom
            least = round(LANDSCAPE_DIALOG * whole.width) if landscape and not ios else 0
            decor = room = _centred(body, whole._replace(top=status, bottom=limit), style, least)
        else:
            decor = whole
        if slide and page is stack[-1][1]:
            away = round(slide * whole.width)
            room = room._replace(left=room.left + away, right=room.right + away)
        root = Node(_DECOR, decor, decor, children=[place(body, room, decor, style)])
        placed.append(
            Placed(
                root=root,
                package=device.package(window.package or package),
                serial=page.serial,
                activity=window.activity,
                kind=window.kind,
                rtl=window.rtl,
                focus=focused,
            )
        )
    bar = place(_status(device.udid), whole._replace(bottom=status), whole, Style(scale=scale))
    around = [Placed(root=bar, package=device.package("com.android.systemui"), serial=-1, kind="bar")]
    for number, (package, widget) in enumerate(overlays):
        spot = place(Widget(arrange="frame", children=(widget,)), whole, whole, Style(scale=scale)).children[0]
        around.append(Placed(root=spot, package=package, serial=-10 - number, kind="overlay"))
    if focus[1]:
        keyed = place(keyboard(*keys), whole._replace(top=keys_top), whole, Style(scale=scale))
        around.append(Placed(root=keyed, package=KEYBOARD_PACKAGE, serial=-2, kind="keyboard"))
    return Screen(windows=(*placed, *around), active=placed[-1], cancel=stack[-1][2].cancel)


def _centred(body: Widget, room: Rect, style: Style, least: int) -> Rect:
    wide = min(max(style.px(DIALOG_DP), least), room.width)
    tall = min(room.height, height_of(body, wide, style))
    left, top = room.left + (room.width - wide) // 2, room.top + (room.height - tall) // 2
    return Rect(left, top, left + wide, top + tall)


def _status(udid: str) -> Widget:
    return row(
        text("12:00", rid="clock", look="small"),
        text(f"SIMULATED {udid}", rid="simulated", look="small"),
        height=STATUS_DP,
        look="bar",
    )
