"""A simulated phone as the executor holds it and perception sees it, without a bus; its own state is the judge.

(PYTEST_DONT_REWRITE: a test module imports it before it names it as a plugin.)
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest_asyncio
from integration.appium_phone import AppiumPhone, labelled, target_of

from apex_executor.outcomes import Outcome
from apex_executor.session import PhoneSession
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_lab.phone import Phone, serve
from apex_lab.stack.http import Handsets
from apex_schemas.actions import Tap
from apex_schemas.devices import Platform
from apex_schemas.scene import Element

PHONES: dict[Platform, str] = {"android": "sim-a", "ios": "sim-i"}


class SimPhone(AppiumPhone):
    """`truth` is what is really so on the phone."""

    def __init__(self, session: PhoneSession, handle: Any, handsets: Handsets, udid: str) -> None:
        super().__init__(session, handle)
        self.handsets, self.udid = handsets, udid

    async def truth(self) -> dict[str, Any]:
        return await self.handsets.state(self.udid)

    async def faults(self, **faults: Any) -> None:
        await self.handsets.set_faults(self.udid, faults)

    async def acts(self) -> list[dict[str, Any]]:
        return await self.handsets.acts(self.udid)

    async def tap(self, label: str) -> Outcome:
        return await self.tap_on(labelled(await self.scene(), label))

    async def tap_on(self, element: Element) -> Outcome:
        assert element.tap_point is not None
        return await self.act(Tap(at=element.tap_point), target_of(element))

    async def field(self, label: str) -> Element:
        """The field of that label or hint."""
        elements = (await self.scene()).elements
        return next(each for each in elements if each.editable and label in (each.label, each.hint))


OpenSim = Callable[..., Awaitable[SimPhone]]


@pytest_asyncio.fixture
async def open_sim() -> AsyncGenerator[OpenSim]:
    """`await open_sim("ios", state={…}, faults={…}, act_seconds=2)`: a session on a phone that is as new."""
    opened: list[PhoneSession] = []
    async with (
        serve([Phone(udid, platform=platform) for platform, udid in PHONES.items()]) as url,
        Handsets(url) as all_,
    ):

        async def start(
            platform: Platform = "android",
            *,
            state: dict[str, Any] | None = None,
            faults: dict[str, Any] | None = None,
            capabilities: dict[str, Any] | None = None,
            **settings: Any,
        ) -> SimPhone:
            udid = PHONES[platform]
            await all_.reset(udid, state or {"permission_popup": False})
            await all_.set_faults(udid, faults or {})
            asked = {"appium:udid": udid, **(capabilities or {})}
            session = PhoneSession(
                DeviceConfig(alias=udid, url=url, platform=platform, capabilities=asked), ExecutorSettings(**settings)
            )
            opened.append(session)
            return SimPhone(session, await session.open(), all_, udid)

        yield start
        for session in opened:
            await session.end()
            session.shut()
