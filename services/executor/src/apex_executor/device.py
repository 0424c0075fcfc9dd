"""The device in hand: a session with its phone that works, and what is done on it, one thing at a time.

Consumes the wishes of its turns, of perception (a session that answers) and of the worker; emits what came of them, and
the device record's word for the session. Owns the session, and knows which sessions are gone for good.
"""

import asyncio
import logging
from collections.abc import Sequence

from apex_bus.errors import Transient
from apex_executor.apps import candidates
from apex_executor.errors import ActRefused, DeviceFailed, LeaseLost
from apex_executor.failures import classify
from apex_executor.lease import Lease
from apex_executor.outcomes import Outcome
from apex_executor.session import PhoneSession, server_of
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_schemas.actions import DeviceAction, LaunchApp
from apex_schemas.devices import SessionHandle, SessionReply
from apex_schemas.steps import Target

log = logging.getLogger(__name__)


class Device:
    """One phone of this executor, used while its lease is held. `changed` is set when its session is lost for good."""

    def __init__(
        self,
        config: DeviceConfig,
        settings: ExecutorSettings,
        *,
        lease: Lease,
        session: PhoneSession,
        changed: asyncio.Event,
    ) -> None:
        self.config, self.lease, self._settings = config, lease, settings
        self._session, self._changed = session, changed
        self._gone: set[str] = set()
        self.one_at_a_time = asyncio.Lock()
        """Held by whoever uses the session, a whole turn included."""
        self.usable = asyncio.Event()
        """Set while there is a session that turns may use."""
        self.used = False
        """A task has ended since the session was last looked at."""
        self.leaving = False
        """The device is given up: nothing new is begun on it."""

    @property
    def handle(self) -> SessionHandle | None:
        return self._session.handle

    async def alive(self) -> None:
        """Have a session that answers, a new one after a task where that is wanted. Raises DeviceFailed when none can
        be had."""
        async with self.one_at_a_time:
            stale = self.used and not self._settings.reuse_session
            if stale or not await self._session.alive():
                await self._reopen()
            await self._name()
            self.used = False

    async def open(self) -> None:
        """Have a session that answers, and let turns use it. Raises DeviceFailed when none can be had."""
        async with self.one_at_a_time:
            if self._session.handle is None or not await self._session.alive():
                await self._reopen()
            await self._name()
            self.usable.set()

    async def end(self) -> None:
        """End the session, once what is in hand has its outcome written."""
        async with self.one_at_a_time:
            await self._session.end()

    def shut(self) -> None:
        """No call comes any more."""
        self._session.shut()

    async def delete(self, old: SessionHandle) -> None:
        """Delete a session at its server; that it is gone is remembered where it is known."""
        if await self._session.fence(old):
            self._gone.add(old.id)

    async def _reopen(self) -> None:
        """A new session in place of the old one, which is gone afterwards; the record names the new one."""
        old = self._session.handle
        if old is not None:
            await self._session.end()
            await self.delete(old)
        await self._session.clear(None)
        handle = await self._session.open()
        await self.lease.update(session=handle)

    async def _name(self) -> None:
        """See that the record names the session that is held, which is where perception finds it: the device may have
        been lost, or its log away, when the session was opened."""
        handle = self._session.handle
        if handle is not None and self.lease.record.session != handle:
            await self.lease.update(session=handle)

    async def heal(self) -> None:
        try:
            await self._reopen()
        except DeviceFailed as failed:
            log.error("%s", failed)
            self.usable.clear()
            self._changed.set()

    async def heal_for(self, dead: str) -> SessionReply:
        """Perception's request: a session other than the one that it found dead, or the reason why there is none."""
        async with self.one_at_a_time:
            handle = self._session.handle
            if handle is not None and (handle.id != dead or await self._session.alive()):
                await self._name()
                return SessionReply(session=handle)
            await self.heal()
            if self._session.handle is None:
                return SessionReply(reason=f"{self.config.alias} has no session; see `apex devices`")
            return SessionReply(session=self._session.handle)

    async def fence(self, session: str, server: str = "") -> bool:
        """The session of an act that somebody began may be neither ours nor the one that the last driver had: a driver
        in between may have ended it, and died. It is ended again where it is known to live on our own server."""
        if session in self._gone:
            return True
        if self._session.handle is not None and self._session.handle.id == session:
            await self.heal()
        elif server and server == server_of(self.config.url):
            await self.delete(SessionHandle(id=session, url=self.config.url, platform=self.config.platform))
        return session in self._gone

    async def act(self, action: DeviceAction, target: Target | None) -> Outcome:
        return await self._session.perform(action, target, held=self.lease.held)

    async def prepare(self, app: str) -> str | None:
        """Open the app that a task is to begin in. Why that cannot be done; None when it is in front."""
        return await self.aside(LaunchApp(app=app), f"{app!r} could not be opened before the task")

    async def aside(self, action: DeviceAction, otherwise: str) -> str | None:
        """An act that belongs to no turn, and does no harm when it is done again. What came of it, if not what was
        wanted."""
        async with self.one_at_a_time:
            try:
                outcome = await self.act(action, None)
            except ActRefused as refused:
                return f"{otherwise}: {refused}"
            except Exception as error:  # noqa: BLE001  (every failure of an act is classified and told)
                failure = classify(error)
                return f"{otherwise}: {failure.code}: {failure.message}"
        return None if outcome.success else f"{otherwise}: {outcome.code}: {outcome.message}"

    def held(self) -> bool:
        return self.lease.held() and not self.leaving

    def packages(self, app: str, /) -> Sequence[str]:
        return candidates(app, self.config.platform, self.config.apps)

    async def waits(self, turn: int | None, reason: str | None) -> None:
        """Show on the device record that an act waits for approval; the watchdog takes that for no lateness."""
        try:
            await self.lease.update(state="busy" if turn is None else "waiting", waiting_turn=turn, reason=reason)
        except LeaseLost as lost:
            raise Transient(str(lost)) from lost
