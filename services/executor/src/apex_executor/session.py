"""The session with one phone, off the event loop: opened before work is taken, healed when it dies, closed at the end.

The session is the fencing token at the phone. Whoever takes a device over, or declares an act of somebody else as
unknown, has deleted the old session first: what is still queued in it can then no longer happen.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from selenium.common.exceptions import WebDriverException
from urllib3.exceptions import HTTPError

from apex_executor.acts import perform
from apex_executor.connection import never_connected
from apex_executor.errors import ActCutShort, ActRefused, DeviceFailed, Stillborn
from apex_executor.outcomes import Outcome
from apex_executor.phone import Phone, delete_session, sessions_of
from apex_executor.ports import port_is_taken
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_schemas.actions import DeviceAction
from apex_schemas.devices import SessionHandle
from apex_schemas.steps import Target

log = logging.getLogger(__name__)

_FENCE_SECONDS = 10.0
T = TypeVar("T")


class PhoneSession:
    """One phone behind one thread: its calls take their turn."""

    def __init__(self, config: DeviceConfig, settings: ExecutorSettings) -> None:
        self.config = config
        self._settings = settings
        self._phone = Phone(
            config,
            request_s=settings.request_seconds,
            idle_s=settings.session_idle_seconds,
            open_s=settings.open_seconds,
            allot_ports=settings.allot_ports,
        )
        self._ports = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"phone-{config.alias}")

    @property
    def handle(self) -> SessionHandle | None:
        return self._phone.handle

    async def _call(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def open(self) -> SessionHandle:
        """A new session; a second try where the first one does not answer. Raises DeviceFailed with the reason."""
        try:
            return await self._call(self._open)
        except Stillborn as first:
            log.warning("%s: %s", self.config.alias, first)
        try:
            return await self._call(self._open)
        except Stillborn as error:
            raise DeviceFailed(self.config.alias, str(error)) from error

    def _open(self) -> SessionHandle:
        try:
            return self._phone.open(ports=self._ports)
        except (WebDriverException, HTTPError, OSError) as error:
            text = str(getattr(error, "msg", None) or error or type(error).__name__)
            if port_is_taken(text):
                self._ports += 1
            raise DeviceFailed(self.config.alias, _reason(error, text, self.config.url)) from error

    async def clear(self, known: SessionHandle | None) -> int:
        """Delete what sessions the server still has for this device, but `known`: an executor that died while it
        made one has left it behind. How many there were; 0 too where the server does not tell."""
        found = await asyncio.to_thread(sessions_of, self.config, timeout_s=_FENCE_SECONDS)
        orphans = [session for session in found if known is None or session.id != known.id]
        for session in orphans:
            log.warning("%s: session %s is nobody's and is ended", self.config.alias, session.id)
            await self.fence(session)
        return len(orphans)

    async def alive(self) -> bool:
        return await self._call(self._phone.alive)

    async def end(self) -> None:
        await self._call(self._phone.end)

    async def fence(self, old: SessionHandle) -> bool:
        """Delete somebody's session. True when it is known to be gone."""
        return await asyncio.to_thread(delete_session, old, timeout_s=_FENCE_SECONDS)

    async def perform(self, action: DeviceAction, target: Target | None, *, held: Callable[[], bool]) -> Outcome:
        """Do an act within its deadline and while `held` says that the device is ours.

        Raises ActRefused when the phone was not touched, what the driver raises for the first touch, and ActCutShort
        for anything after that, a request that was held back included.
        """
        deadline = time.monotonic() + self._settings.act_seconds
        begun = touched = False  # touched: by a request before the last one

        def gate(touches: bool) -> float:
            nonlocal begun, touched
            touched = begun
            left = deadline - time.monotonic()
            if not held():
                raise ActRefused("NOT_BEGUN", "the executor lost the device before the act")
            if left < 0:
                raise ActRefused("NOT_BEGUN", "the time of an act was over before it was begun; look again")
            begun = begun or touches
            return left

        def act() -> Outcome:
            self._phone.guard(gate)
            try:
                return perform(self._phone, action, target, verify=self._settings.verify_target and self.config.verify)
            except Exception as error:
                if touched:
                    raise ActCutShort(error) from error
                raise
            finally:
                self._phone.guard(None)

        return await self._call(act)

    def shut(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def _reason(error: BaseException, text: str, url: str) -> str:
    """Why no session can be had, in one line for a person."""
    if never_connected(error):
        return f"no Appium server answers at {url}; start it, or correct the device's url"
    return text.strip().splitlines()[0][:300]


def server_of(url: str) -> str:
    """What stands for an Appium server in messages: its URL may hold a key."""
    return hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]
