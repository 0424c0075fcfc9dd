"""A phone in virtual time, and the session that stands in for `PhoneSession`: its sessions stay until deleted."""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from chaos.virtual_process import Life
from selenium.common.exceptions import InvalidSessionIdException

from apex_executor.errors import ActRefused, DeviceFailed
from apex_executor.outcomes import Outcome
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_schemas.actions import Tap
from apex_schemas.devices import SessionHandle


class VirtualPhone:
    """A phone behind an Appium server that keeps every session until it is deleted; a session's acts take a while."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.acts: list[tuple[float, int, int]] = []


class VirtualSession:
    """A PhoneSession. `checked` False is the broken form that begins acts without looking at lease and deadline."""

    checked = True
    building: ClassVar[Life]
    """The life whose worker is being made."""

    def __init__(self, config: DeviceConfig, settings: ExecutorSettings) -> None:
        self.config, self._settings = config, settings
        self.life = VirtualSession.building
        self._phone = self.life.world.phones[config.alias]
        self.handle: SessionHandle | None = None

    async def open(self) -> SessionHandle:
        log = self.life.world.log
        await self.life.point()
        await log.clock.nap(log.rng.uniform(0.1, 3))
        if log.chance(0.03):
            raise DeviceFailed(self.config.alias, "no session can be had")
        self.life.world.sessions += 1
        session = f"s{self.life.world.sessions}"
        self._phone.sessions.add(session)
        await self.life.point()
        self.handle = SessionHandle(id=session, url="http://phone")
        return self.handle

    async def alive(self) -> bool:
        await self.life.point()
        return self.handle is not None and self.handle.id in self._phone.sessions

    async def end(self) -> None:
        if self.handle is not None:
            await self.fence(self.handle)
        self.handle = None

    async def clear(self, known: SessionHandle | None) -> int:
        return 0

    async def fence(self, old: SessionHandle) -> bool:
        log = self.life.world.log
        await self.life.point()
        if log.chance(log.faults.fence_fails):
            await log.clock.nap(1)
            return False
        self._phone.sessions.discard(old.id)
        await self.life.point()
        return True

    async def perform(self, action: Any, target: Any, *, held: Callable[[], bool]) -> Outcome:
        log = self.life.world.log
        deadline = log.now + self._settings.act_seconds
        if log.chance(log.faults.pause_in_act):
            self.life.pause()
        await self.life.point()
        if self.checked and (log.now > deadline or not held()):
            raise ActRefused("NOT_BEGUN", "the lease or the deadline was over")
        assert self.handle is not None
        session = self.handle.id
        arrived = log.clock.create_future()
        takes_s = log.rng.uniform(0.05, log.faults.longest_act_s)
        log.clock.call_later(takes_s, self._touch, session, action, arrived)
        if log.faults.cut_in_act and log.chance(log.faults.cut_in_act):
            raise OSError("the connection was cut while the act was under way")
        touched = await asyncio.shield(arrived)
        await self.life.point()
        if not touched:
            raise InvalidSessionIdException("the session is gone")
        if log.chance(0.03):
            raise OSError("the answer was lost")
        return Outcome(success=True)

    def _touch(self, session: str, action: Tap, arrived: "asyncio.Future[bool]") -> None:
        alive = session in self._phone.sessions
        if alive:
            self._phone.acts.append((self.life.world.log.now, action.at.x, action.at.y))
        if not arrived.done():
            arrived.set_result(alive)

    def shut(self) -> None:
        return
