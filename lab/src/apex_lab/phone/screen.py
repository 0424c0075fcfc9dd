"""From pages to the windows on the screen, in paint order: page, dialogs over it, status bar, keyboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apex_lab.phone.app import Page
from apex_lab.phone.faults import Faults
from apex_lab.phone.geometry import Rect
from apex_lab.phone.keyboard import HEIGHT_DP, keyboard
from apex_lab.phone.keyboard import PACKAGE as KEYBOARD_PACKAGE
from apex_lab.phone.layout import Node, Style, height_of, place
from apex_lab.phone.views import Placed
from apex_lab.phone.widgets import Handler, Widget, Window, row, text

STATUS_DP = 24
DIALOG_DP = 312
_DECOR = Widget(cls="android.widget.FrameLayout")
Keys = tuple[Callable[[str], None], Handler, Handler, Handler]


@dataclass(frozen=True, kw_only=True)
class Screen:
    """The placed windows; `active` has the focus, `cancel` is what Back does to it."""

    windows: tuple[Placed, ...]
    active: Placed
    cancel: Handler | None


def arrange(
    stack: Sequence[tuple[str, Page, Window]],
    *,
    udid: str,
    size: tuple[int, int],
    scale: float,
    faults: Faults,
    tick: int,
    focus: tuple[int, str],
    keys: Keys,
) -> Screen:
    """Places the pages of a stack (package, page, window; lowest first) and what the system shows around them.

    Only the last full page and the dialogs above it are on the screen. `focus` is (serial of a page, resource id) of
    the field that has the cursor, which brings the keyboard.
    """
    whole = Rect(0, 0, *size)
    status = round(STATUS_DP * scale)
    keys_top = whole.bottom - min(round(HEIGHT_DP * scale), whole.height // 2)
    lowest = max((n for n, (_, _, window) in enumerate(stack) if not window.dialog), default=0)
    placed: list[Placed] = []
    for package, page, window in stack[lowest:]:
        style = Style(
            scale=scale,
            rtl=window.rtl,
            labels=faults.relabel,
            seed=faults.shuffle,
            offsets=page.offsets,
            moving=faults.moving,
            tick=tick,
        )
        focused = focus[1] if focus[0] == page.serial else ""
        room = whole._replace(top=status)
        if focused and window.resizes:
            room = room._replace(bottom=keys_top)
        if window.dialog:
            limit = keys_top if focused else whole.bottom
            decor = room = _centred(window.body, whole._replace(top=status, bottom=limit), style)
        else:
            decor = whole
        root = Node(_DECOR, decor, decor, children=[place(window.body, room, decor, style)])
        placed.append(
            Placed(
                root=root,
                package=window.package or package,
                serial=page.serial,
                activity=window.activity,
                rtl=window.rtl,
                modal=window.dialog,
                focus=focused,
            )
        )
    around = [_system(_status(udid), whole._replace(bottom=status), "com.android.systemui", scale)]
    if focus[1]:
        around.append(_system(keyboard(*keys), whole._replace(top=keys_top), KEYBOARD_PACKAGE, scale))
    return Screen(windows=(*placed, *around), active=placed[-1], cancel=stack[-1][2].cancel)


def _centred(body: Widget, room: Rect, style: Style) -> Rect:
    wide = min(style.px(DIALOG_DP), room.width)
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


def _system(body: Widget, frame: Rect, package: str, scale: float) -> Placed:
    return Placed(root=place(body, frame, frame, Style(scale=scale)), package=package, serial=0)
