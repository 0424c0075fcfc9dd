"""The home screen: a clock and the icons of the installed apps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from apex_lab.phone.app import App
from apex_lab.phone.widgets import Widget, column, grid, space, text
from apex_lab.phone.windows import Window, page


@dataclass
class LauncherState:
    launches: int = 0


class Launcher(App[LauncherState]):
    package: ClassVar[str] = "com.android.launcher3"
    bundle: ClassVar[str] = "com.apple.springboard"
    label: ClassVar[str] = "Home"
    icon: ClassVar[bool] = False

    def fresh(self) -> LauncherState:
        return LauncherState()

    def home(self) -> Window:
        icons = [self.icon_of(package, label) for package, label in self.phone.installed()]
        clock = Widget(cls="android.widget.TextClock", text="12:00", rid="clock", look="title", height=40)
        return page(
            column(space(40), clock, text("Monday, 1 June", rid="date", look="small"), space(60), pad=16),
            grid(icons, rid="workspace"),
            activity=".Launcher",
        )

    def icon_of(self, package: str, label: str) -> Widget:
        picture = Widget(cls="android.widget.ImageView", text="", desc="", rid="icon_image", look="icon", height=64)
        name = Widget(cls="android.widget.TextView", text=label, rid="icon_label", look="small", height=20)
        return Widget(
            cls="android.widget.LinearLayout",
            desc=label,
            rid="icon",
            children=(picture, name),
            pad=6,
            on_tap=partial(self.start_app, package),
        )

    def start_app(self, package: str) -> None:
        self.state.launches += 1
        self.phone.launch(package)
