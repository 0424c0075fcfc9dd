"""An app of the simulated phone: state in a dataclass, pages built from it, handlers that change it.

A new app is one small file in `apps/`: subclass `App`, give `package`, `label`, `fresh()` (its state as installed) and
`home()` (its first page), and name it in `apps/__init__.py`. A page is a method that returns a Window; `open(page)`
puts it on top, `close()` takes it away. The state outlives the app being ended; its pages do not. On iOS an app goes
by its `bundle`, if it has one.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from apex_lab.phone.device import Platform
from apex_lab.phone.widgets import Widget
from apex_lab.phone.windows import Window

S = TypeVar("S")
_serials = itertools.count(1)


class Shell(Protocol):
    """What the phone offers an app."""

    permission_popup: bool

    @property
    def platform(self) -> Platform: ...

    @property
    def reads(self) -> int:
        """How often the page source was read; what drifts goes by it."""
        ...

    def now(self) -> float:
        """Seconds that only grow, for timers."""
        ...

    def toast(self, text: str) -> None:
        """Shows a short message until the next input."""
        ...

    def launch(self, package: str) -> None:
        """Brings another app to the front."""
        ...

    def focus(self, rid: str) -> None:
        """Puts the cursor into a field of the page on top; the keyboard comes."""
        ...

    def installed(self) -> list[tuple[str, str]]:
        """(package, label) of the apps that have an icon."""
        ...

    def connect_reads(self) -> int:
        """How many reads of the page source a new Wi-Fi connection takes (faults)."""
        ...


@dataclass(kw_only=True)
class Page:
    """A page on the stack: what builds it and how far its lists are scrolled. `serial` is never used again."""

    build: Callable[[], Window]
    name: str
    serial: int = field(default_factory=lambda: next(_serials))
    offsets: dict[str, int] = field(default_factory=dict[str, int])


class App(ABC, Generic[S]):
    """The base of an app. `icon`: whether the launcher shows it; `bundle`: its name on iOS, when that is another."""

    package: ClassVar[str]
    bundle: ClassVar[str] = ""
    label: ClassVar[str]
    icon: ClassVar[bool] = True

    def __init__(self, phone: Shell) -> None:
        self.phone = phone
        self.id = identity(type(self), phone.platform)
        self.state: S = self.fresh()
        self.pages: list[Page] = []

    @abstractmethod
    def fresh(self) -> S:
        """The state of the app as newly installed."""

    @abstractmethod
    def home(self) -> Window:
        """The first page."""

    def started(self) -> None:
        """Called when the app starts, its home page already open."""

    def stopped(self) -> None:
        """Called when the app ends: drop what would not outlive its process."""

    def read(self) -> None:
        """Called at each read of the page source while the app is in front."""

    @property
    def animated(self) -> bool:
        """Whether what it shows changes by itself; its screen is then never idle."""
        return False

    def overlay(self) -> Widget | None:
        """A small thing that it keeps over all apps while it runs (Android only)."""
        return None

    def open(self, page: Callable[[], Window], name: str = "") -> None:
        """Puts a page, or a dialog, on top."""
        self.pages.append(Page(build=page, name=name or getattr(page, "__name__", "page")))

    def close(self, count: int = 1) -> None:
        """Takes pages from the top; the first one stays."""
        for _ in range(min(count, len(self.pages) - 1)):
            self.pages.pop()

    def start(self) -> None:
        if not self.pages:
            self.open(self.home)
            self.started()

    def stop(self) -> bool:
        """Whether it was running."""
        running = bool(self.pages)
        self.pages.clear()
        if running:
            self.stopped()
        return running


def identity(kind: type[App[Any]], platform: Platform) -> str:
    """Package or bundle id, as the platform has it."""
    return kind.bundle or kind.package if platform == "iOS" else kind.package
