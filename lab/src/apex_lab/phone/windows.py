"""What an app puts on the screen: a page, a dialog or a bottom sheet, made of widgets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from apex_lab.phone.widgets import TOUCH_OUTSIDE, Handler, Widget, column, over, space, text

WindowKind = Literal["page", "dialog", "sheet"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """What an app puts on the screen: a full page, or a dialog or bottom sheet over the page below.

    `cancel` runs on Back and on a tap beside a dialog or sheet; None: Back leaves the page. `resizes`: the window
    shrinks when the keyboard comes (adjustResize); otherwise the keyboard covers its lower part.
    """

    body: Widget
    activity: str
    kind: WindowKind = "page"
    rtl: bool = False
    resizes: bool = False
    cancel: Handler | None = None
    package: str = ""


def page(
    *children: Widget, activity: str = ".MainActivity", rtl: bool = False, cancel: Handler | None = None
) -> Window:
    """A full page."""
    return Window(body=column(*children, look="page", rid="content"), activity=activity, rtl=rtl, cancel=cancel)


def dialog(title: str, *children: Widget, activity: str, cancel: Handler | None, package: str = "") -> Window:
    """A dialog: title, content, buttons."""
    heading = text(title, rid="android:id/alertTitle", look="title")
    body = Widget(
        cls="android.widget.FrameLayout",
        rid="android:id/parentPanel",
        children=(heading, space(8), *children),
        pad=16,
        look="card",
    )
    return Window(body=body, activity=activity, kind="dialog", cancel=cancel, package=package)


def sheet(title: str, *children: Widget, activity: str, cancel: Handler) -> Window:
    """A sheet over the lower part of the page, with the area above it that closes it, as Material's sheets have."""
    heading = text(title, rid="sheet_title", look="title", height=32)
    beside = Widget(rid=TOUCH_OUTSIDE, on_tap=cancel)
    lower = column(heading, *children, rid="design_bottom_sheet", pad=12, look="card")
    body = over(beside, replace(lower, gravity="bottom"))
    return Window(body=body, activity=activity, kind="sheet", cancel=cancel)
