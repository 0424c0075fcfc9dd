"""Which apps a phone has, which of them run, which is in front, and their states, readable and changeable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, cast

import msgspec

from apex_lab.phone.app import App, Page, Shell, identity
from apex_lab.phone.apps import LAUNCHER
from apex_lab.phone.apps.system import System
from apex_lab.phone.errors import InvalidArgument
from apex_lab.phone.widgets import Widget, space, text
from apex_lab.phone.windows import page


class Apps:
    """The apps of one phone, as newly installed; the launcher is in front. `clock` is seconds that only grow."""

    def __init__(self, kinds: Sequence[type[App[Any]]], shell: Shell, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.system = System(shell)
        self.installed: dict[str, App[Any]] = {app.id: app for app in (kind(shell) for kind in kinds)}
        self._ready_at = 0.0
        self._launcher = identity(LAUNCHER, shell.platform)
        self.front = self._launcher
        self.installed[self._launcher].start()

    def icons(self) -> list[tuple[str, str]]:
        """(package, label) of what the launcher shows."""
        return [(package, app.label) for package, app in self.installed.items() if app.icon]

    @property
    def active(self) -> App[Any]:
        """The app that has the top page: a system dialog lies over any other."""
        return self.system if self.system.pages else self.installed[self.front]

    @property
    def top(self) -> Page:
        return self.active.pages[-1]

    def launch(self, package: str, start_ms: int = 0) -> None:
        """Brings an app to the front; one that was not running shows nothing of its own for `start_ms`."""
        app = self.installed[package]
        self._ready_at = self._clock() + start_ms / 1000 if start_ms and not app.pages else 0.0
        self.front = package
        app.start()

    def home(self) -> None:
        self.system.pages.clear()
        self.launch(self._launcher)

    def terminate(self, package: str) -> bool:
        """Whether it was running; what was in front gives way to the launcher."""
        app = self.installed.get(package)
        running = app is not None and app.stop()
        if package == self.front:
            self.home()
        return running

    def code(self, package: str) -> int:
        """Appium's state of an app: 0 not installed, 1 not running, 3 in the background, 4 in front."""
        app = self.installed.get(package)
        if app is None:
            return 0
        if not app.pages:
            return 1
        return 4 if package == self.front else 3

    def became_ready(self) -> bool:
        """Whether an app that was slow to start has just come up."""
        if self._ready_at and self._clock() >= self._ready_at:
            self._ready_at = 0.0
            return True
        return False

    def overlays(self) -> list[tuple[App[Any], Widget]]:
        """What running apps keep over all others."""
        return [(app, one) for app in self.installed.values() if app.pages and (one := app.overlay()) is not None]

    def stack(self) -> list[tuple[App[Any], Page]]:
        """The pages one over the other, lowest first."""
        app = self.installed[self.front]
        if self._ready_at:
            splash = Page(build=lambda: page(space(200), text(app.label, rid="splash")), name="splash", serial=0)
            return [(app, splash)]
        return [(each, one) for each in (app, self.system) for one in each.pages]

    def state(self) -> dict[str, object]:
        """The true state of each app, by package."""
        return {
            package: {"running": bool(app.pages), "pages": [one.name for one in app.pages], **asdict(app.state)}
            for package, app in {**self.installed, self.system.package: self.system}.items()
        }

    def patch(self, package: str, changes: object) -> None:
        """Sets fields of an app's state; raises InvalidArgument for an app or a field that is not there."""
        app = self.installed.get(package)
        if app is None or not isinstance(changes, dict):
            raise InvalidArgument(f"no app {package!r} to change here; the apps are {', '.join(self.installed)}")
        wanted = cast("dict[str, object]", changes)
        now = asdict(app.state)
        if unknown := wanted.keys() - now.keys():
            raise InvalidArgument(f"{package} has no {sorted(unknown)}; its fields are {', '.join(now)}")
        try:
            app.state = msgspec.convert({**now, **wanted}, cast("type[object]", type(app.state)))
        except msgspec.ValidationError as error:
            raise InvalidArgument(f"{package}: {error}") from error
