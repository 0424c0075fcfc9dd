"""What the server needs of a phone, simulated or recorded: a screen to read and inputs to give."""

from __future__ import annotations

from typing import Protocol

from apex_lab.phone.acts import ActLog
from apex_lab.phone.device import Platform
from apex_lab.phone.faults import Faults
from apex_lab.phone.geometry import Point
from apex_lab.phone.views import Snapshot, View, WindowInfo


class Handset(Protocol):
    """One phone. Sizes and points are in window units; `session` is written into the act log."""

    udid: str
    faults: Faults
    acts: ActLog

    @property
    def platform(self) -> Platform: ...
    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the window, as it is turned now."""
        ...

    @property
    def ratio(self) -> int:
        """Pixels of the picture per window unit."""
        ...

    @property
    def busy_seconds(self) -> float:
        """How long it takes until the screen comes to rest: 0 when it has, infinite when it never does."""
        ...

    @property
    def landscape(self) -> bool: ...
    @property
    def package(self) -> str:
        """The package of the window that has the focus."""
        ...

    @property
    def activity(self) -> str: ...
    @property
    def keyboard_shown(self) -> bool: ...

    def capabilities(self) -> dict[str, object]:
        """What the session answers about the device."""
        ...

    def source(self, *, all_windows: bool = False) -> str:
        """The page source; counts as a read of the screen."""
        ...

    def snapshot(self, *, all_windows: bool = False) -> Snapshot:
        """The same tree for finding elements; does not count as a read."""
        ...

    def picture(self) -> bytes:
        """The screen as PNG."""
        ...

    def tap(self, point: Point, session: str) -> None: ...
    def long_press(self, point: Point, session: str) -> None: ...
    def swipe(self, start: Point, end: Point, session: str) -> int:
        """The finger's way; the answer is by how many pixels something scrolled."""
        ...

    def set_text(self, view: View, text: str, session: str, *, replace: bool) -> None:
        """Raises InvalidElementState when the view takes no text."""
        ...

    def key(self, code: int, session: str) -> None:
        """An Android key code; on iOS 3 is the home button and 4 the way back that the driver looks for."""
        ...

    def write(self, text: str, session: str) -> None:
        """Types into what has the focus."""
        ...

    def hide_keyboard(self, session: str) -> bool: ...
    def rotate(self, landscape: bool, session: str) -> None: ...
    def activate(self, package: str, session: str) -> None:
        """Raises UnknownError when there is no such app."""
        ...

    def terminate(self, package: str, session: str) -> bool:
        """Whether it was running."""
        ...

    def app_state(self, package: str) -> int:
        """0 not installed, 1 not running, 3 in the background, 4 in front."""
        ...

    def apps(self) -> dict[str, str]:
        """What is installed: package or bundle id → label."""
        ...

    def windows(self) -> list[WindowInfo]:
        """The windows that Android tells of, uppermost first."""
        ...

    def hit(self, view: View) -> bool:
        """Whether a touch in the middle of a view reaches it: XCUITest's `hittable`."""
        ...

    def popup(self) -> None:
        """Shows a dialog nobody asked for, if the phone can."""
        ...

    def state(self) -> dict[str, object]:
        """The truth, as plain JSON values."""
        ...

    def patch(self, changes: object) -> None:
        """Changes the state of apps; raises InvalidArgument for what is not there."""
        ...

    def reset(self) -> None:
        """As new: apps, screen, faults, acts."""
        ...
