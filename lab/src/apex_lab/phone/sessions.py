"""Appium sessions: whose phone, what settings, which elements were handed out, and when they end.

As the real driver does: one session per phone, a new one ends the old; a session unused for `newCommandTimeout` is
over; the commands of a session run one after the other, and those still queued when it ends are not run.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from apex_lab.phone.device import Platform
from apex_lab.phone.errors import DriverDeath, InvalidSession, NoSuchElement, SessionNotCreated, StaleElement
from apex_lab.phone.handset import Handset
from apex_lab.phone.locators import Locator, find
from apex_lab.phone.views import Path, Snapshot, View

PORTS = ("systemPort", "wdaLocalPort", "mjpegServerPort", "chromedriverPort")
"""Capabilities that name a port of the server's machine: no two sessions can have the same."""

SETTINGS: dict[Platform, dict[str, object]] = {
    "Android": {
        "waitForIdleTimeout": 10000,
        "waitForSelectorTimeout": 10000,
        "enableMultiWindows": False,
        "allowInvisibleElements": False,
        "ignoreUnimportantViews": False,
        "snapshotMaxDepth": 70,
        "actionAcknowledgmentTimeout": 3000,
        "keyInjectionDelay": 0,
        "simpleBoundsCalculation": False,
    },
    "iOS": {
        "waitForIdleTimeout": 10,
        "animationCoolOffTimeout": 2,
        "snapshotMaxDepth": 50,
        "useFirstMatch": False,
        "boundElementsByIndex": False,
        "shouldUseCompactResponses": True,
        "elementResponseAttributes": "type,label",
        "mjpegServerFramerate": 10,
        "respectSystemAlerts": False,
    },
}
"""What a new session of a platform is set to. Mind the units: milliseconds on Android, seconds on iOS."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Handle:
    """An element that was handed out: its place in its window, and how to find it again when it was the only one."""

    path: Path
    tag: str
    locator: Locator | None


@dataclass(kw_only=True)
class Session:
    """One session. `lock` is the queue of its commands, `commands` how many run or wait in it.

    `died`: the driver on the phone is gone, and how that shows.
    """

    phone: Handset
    capabilities: dict[str, object]
    timeout: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    settings: dict[str, object] = field(default_factory=dict[str, object])
    implicit_ms: int = 0
    alive: bool = True
    died: DriverDeath | None = None
    commands: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    last_used: float = field(default_factory=time.monotonic)
    handles: dict[str, Handle] = field(default_factory=dict[str, Handle])

    def __post_init__(self) -> None:
        self.settings = {**SETTINGS[self.phone.platform], **self.settings}

    @property
    def idle_seconds(self) -> float:
        """How long a read waits at most for the screen to be idle."""
        wait = self.settings.get("waitForIdleTimeout")
        seconds = float(wait) if isinstance(wait, int | float) else 10.0
        return seconds / 1000 if self.phone.platform == "Android" and isinstance(wait, int | float) else seconds

    @property
    def all_windows(self) -> bool:
        return self.settings.get("enableMultiWindows") is True

    def snapshot(self, locator: Locator | None = None) -> Snapshot:
        """What a look-up sees: `UiSelector` the active window alone, whatever is set (it is UiAutomator's old API)."""
        legacy = locator is not None and locator.using == "-android uiautomator"
        return self.phone.snapshot(all_windows=self.all_windows and not legacy)

    def hand_out(self, view: View, locator: Locator | None) -> str:
        """A new element id."""
        element = str(uuid.uuid4())
        self.handles[element] = Handle(path=view.path, tag=view.tag, locator=locator)
        return element

    def view(self, element: str) -> View:
        """The view behind an id, found again by its locator when its place is gone; raises StaleElement."""
        handle = self.handles.get(element)
        if handle is None:
            raise NoSuchElement(
                f"The element identified by '{element}' is not present in the cache or has expired. "
                "Try to find it again"
            )
        snapshot = self.snapshot()
        view = snapshot.by_path.get(handle.path)
        if view is not None and view.tag == handle.tag:
            return view
        if handle.locator is None:
            raise StaleElement(element)
        found = find(self.snapshot(handle.locator), handle.locator, self.phone.package)
        if not found:
            raise StaleElement(str(handle.locator))
        self.handles[element] = Handle(path=found[0].path, tag=found[0].tag, locator=handle.locator)
        return found[0]


class Sessions:
    """All sessions of a server, by id; `clock` is seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._open: dict[str, Session] = {}
        self._clock = clock

    def create(self, phone: Handset, capabilities: dict[str, object], timeout: float) -> Session:
        """A new session; the one that the phone had ends. Raises SessionNotCreated for a port that is taken."""
        for other in self._open.values():
            for name in PORTS:
                if capabilities.get(name) is not None and other.phone is not phone:
                    self._check_port(name, capabilities[name], other)
        for old in self.of(phone):
            self.end(old)
        session = Session(phone=phone, capabilities=capabilities, timeout=timeout, last_used=self._clock())
        self._open[session.id] = session
        return session

    def _check_port(self, name: str, port: object, other: Session) -> None:
        if any(other.capabilities.get(each) == port for each in PORTS):
            raise SessionNotCreated(
                f"The port #{port} ({name}) is already in use by the session {other.id} of {other.phone.udid}. "
                "Give each device a port of its own"
            )

    def get(self, session_id: str) -> Session:
        """Raises InvalidSession when it is over."""
        session = self._open.get(session_id)
        if session is None:
            raise InvalidSession(session_id)
        if session.timeout and not session.lock.locked() and self._clock() - session.last_used > session.timeout:
            self.end(session)
            raise InvalidSession(session_id)
        return session

    def used(self, session: Session) -> None:
        session.last_used = self._clock()

    def end(self, session: Session) -> None:
        session.alive = False
        self._open.pop(session.id, None)

    def of(self, phone: Handset) -> list[Session]:
        return [session for session in self._open.values() if session.phone is phone]
