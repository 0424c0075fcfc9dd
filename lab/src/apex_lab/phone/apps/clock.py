"""Clock: alarms with switches, a new alarm, a timer and a stopwatch that never stand still while they run.

Owns the alarms, the timer and the stopwatch. Time is the phone's, so that a test can hold it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from apex_lab.phone.app import App
from apex_lab.phone.widgets import (
    Handler,
    Widget,
    bar,
    button,
    column,
    floating,
    icon_button,
    over,
    progress,
    recycler,
    row,
    space,
    switch_item,
    tabs,
    text,
)
from apex_lab.phone.windows import Window, dialog, page


@dataclass
class ClockState:
    """`alarms` are time → on. A timer or stopwatch that runs has `since`: the phone's seconds at its start."""

    alarms: dict[str, bool] = field(default_factory=lambda: {"07:00": False, "08:30": True})
    hour: int = 6
    minute: int = 0
    timer_seconds: int = 300
    timer_since: float | None = None
    watch_since: float | None = None
    watch_kept: float = 0.0


class Clock(App[ClockState]):
    package: ClassVar[str] = "com.google.android.deskclock"
    bundle: ClassVar[str] = "com.apple.mobiletimer"
    label: ClassVar[str] = "Clock"

    def fresh(self) -> ClockState:
        return ClockState()

    @property
    def animated(self) -> bool:
        running = {"timer": self.state.timer_since, "stopwatch": self.state.watch_since}
        return bool(self.pages) and running.get(self.pages[-1].name) is not None

    # -- pages

    def home(self) -> Window:
        rows = [
            switch_item(time, on, partial(self.toggle, time), summary="On" if on else "Off")
            for time, on in sorted(self.state.alarms.items())
        ]
        everything = over(
            column(bar("Alarms"), recycler(rows, rid="alarms"), grow=True), floating("Add alarm", self.add)
        )
        return page(everything, self.tabs("Alarm"), activity=".DeskClock")

    def new_alarm(self) -> Window:
        state = self.state
        return dialog(
            "New alarm",
            row(text(f"{state.hour:02}:{state.minute:02}", rid="time", look="title"), height=36),
            self.wheel("hour", partial(self.turn, 1, 0), partial(self.turn, -1, 0)),
            self.wheel("minute", partial(self.turn, 0, 5), partial(self.turn, 0, -5)),
            space(8),
            row(
                button("Cancel", self.close, rid="android:id/button2"),
                button("OK", self.save, rid="android:id/button1"),
            ),
            activity=".DeskClock",
            cancel=self.close,
        )

    def wheel(self, what: str, up: Handler, down: Handler) -> Widget:
        return row(
            text(what.capitalize(), look="text"),
            icon_button(f"Earlier {what}", down, rid=f"{what}_down"),
            icon_button(f"Later {what}", up, rid=f"{what}_up"),
            height=52,
        )

    def timer(self) -> Window:
        left, whole = self.left(), self.state.timer_seconds
        running = self.state.timer_since is not None
        start = button("Pause" if running else "Start", self.run_timer, rid="timer_start", enabled=left > 0)
        return page(
            bar("Timer"),
            space(40),
            text(f"{left // 60:02}:{left % 60:02}", rid="timer_text", look="title", height=48),
            progress(left / whole if whole else 0, "Time left", rid="timer_progress"),
            space(16),
            row(button("+1 min", partial(self.lengthen, 60), rid="timer_more"), start, height=52),
            button("Reset", self.reset_timer, rid="timer_reset"),
            column(grow=True),
            self.tabs("Timer"),
            activity=".DeskClock",
        )

    def stopwatch(self) -> Window:
        hundredths = round(self.watched() * 100)
        running = self.state.watch_since is not None
        shown = f"{hundredths // 6000:02}:{hundredths // 100 % 60:02}.{hundredths % 100:02}"
        return page(
            bar("Stopwatch"),
            space(40),
            text(shown, rid="stopwatch_text", look="title", height=48),
            row(
                button("Stop" if running else "Start", self.run_watch, rid="watch_start"),
                button("Reset", self.reset_watch, rid="watch_reset", enabled=not running),
                height=52,
            ),
            column(grow=True),
            self.tabs("Stopwatch"),
            activity=".DeskClock",
        )

    def tabs(self, chosen: str) -> Widget:
        choices = (("Alarm", None), ("Timer", self.timer), ("Stopwatch", self.stopwatch))
        return tabs(chosen, [(label, partial(self.switch, target)) for label, target in choices])

    # -- what the user does

    def switch(self, target: Callable[[], Window] | None) -> None:
        self.close(len(self.pages))
        if target is not None:
            self.open(target)

    def toggle(self, time: str) -> None:
        self.state.alarms[time] = not self.state.alarms[time]

    def add(self) -> None:
        self.open(self.new_alarm)

    def turn(self, hours: int, minutes: int) -> None:
        self.state.hour = (self.state.hour + hours) % 24
        self.state.minute = (self.state.minute + minutes) % 60

    def save(self) -> None:
        self.state.alarms[f"{self.state.hour:02}:{self.state.minute:02}"] = True
        self.close()
        self.phone.toast("Alarm set")

    def left(self) -> int:
        """Seconds that the timer still has."""
        since = self.state.timer_since
        gone = 0.0 if since is None else self.phone.now() - since
        return max(0, -int(-(self.state.timer_seconds - gone) // 1))

    def run_timer(self) -> None:
        if self.state.timer_since is None:
            self.state.timer_since = self.phone.now()
        else:
            self.state.timer_seconds, self.state.timer_since = self.left(), None

    def lengthen(self, seconds: int) -> None:
        self.state.timer_seconds += seconds

    def reset_timer(self) -> None:
        self.state.timer_seconds, self.state.timer_since = 300, None

    def watched(self) -> float:
        since = self.state.watch_since
        return self.state.watch_kept + (0.0 if since is None else self.phone.now() - since)

    def run_watch(self) -> None:
        if self.state.watch_since is None:
            self.state.watch_since = self.phone.now()
        else:
            self.state.watch_kept, self.state.watch_since = self.watched(), None

    def reset_watch(self) -> None:
        self.state.watch_kept = 0.0
