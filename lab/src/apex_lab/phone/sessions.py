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

from apex_lab.phone.errors import InvalidSession, NoSuchElement, StaleElement
from apex_lab.phone.handset import Handset
from apex_lab.phone.locators import Locator, find
from apex_lab.phone.views import Path, View

DEFAULT_SETTINGS: dict[str, object] = {
    "waitForIdleTimeout": 10000,
    "waitForSelectorTimeout": 10000,
    "enableMultiWindows": False,
    "allowInvisibleElements": False,
    "ignoreUnimportantViews": False,
    "snapshotMaxDepth": 70,
    "actionAcknowledgmentTimeout": 3000,
    "keyInjectionDelay": 0,
    "simpleBoundsCalculation": False,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Handle:
    """An element that was handed out: its place in its window, and how to find it again when it was the only one."""

    path: Path
    tag: str
    locator: Locator | None


@dataclass(kw_only=True)
class Session:
    """One session. `lock` is the queue of its commands, `commands` how many run or wait in it."""

    phone: Handset
    capabilities: dict[str, object]
    timeout: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    settings: dict[str, object] = field(default_factory=lambda: dict(DEFAULT_SETTINGS))
    implicit_ms: int = 0
    alive: bool = True
    commands: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    last_used: float = field(default_factory=time.monotonic)
    handles: dict[str, Handle] = field(default_factory=dict[str, Handle])

    @property
    def all_windows(self) -> bool:
        return self.settings.get("enableMultiWindows") is True

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
        snapshot = self.phone.snapshot(all_windows=self.all_windows)
        view = snapshot.by_path.get(handle.path)
        if view is not None and view.tag == handle.tag:
            return view
        if handle.locator is None:
            raise StaleElement(element)
        found = find(snapshot, handle.locator, self.phone.package)
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
        """A new session; the one that the phone had ends."""
        for old in self.of(phone):
            self.end(old)
        session = Session(phone=phone, capabilities=capabilities, timeout=timeout, last_used=self._clock())
        self._open[session.id] = session
        return session

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
