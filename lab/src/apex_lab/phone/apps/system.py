"""The parts of Android that put dialogs over any app. Owns no icon and no page of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from apex_lab.phone.app import App
from apex_lab.phone.widgets import button, row, text
from apex_lab.phone.windows import Window, dialog, page


@dataclass
class SystemState:
    popups_shown: int = 0
    popups_answered: int = 0


class System(App[SystemState]):
    package: ClassVar[str] = "android"
    bundle: ClassVar[str] = "com.apple.springboard"
    label: ClassVar[str] = "Android System"
    icon: ClassVar[bool] = False

    def fresh(self) -> SystemState:
        return SystemState()

    def home(self) -> Window:
        return page(activity="")

    def show_popup(self) -> None:
        """A dialog nobody asked for (faults: popup)."""
        self.state.popups_shown += 1
        self.open(self.battery)

    def battery(self) -> Window:
        return dialog(
            "Battery is low",
            text("15% left. Battery saver makes the battery last longer.", rid="android:id/message"),
            row(
                button("No thanks", self.answer, rid="android:id/button2"),
                button("Turn on", self.answer, rid="android:id/button1"),
            ),
            activity=".BatteryWarning",
            cancel=self.answer,
        )

    def answer(self) -> None:
        self.state.popups_answered += 1
        self.pages.clear()
