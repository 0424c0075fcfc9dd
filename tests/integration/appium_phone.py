"""The two services that reach Appium, on a real server and without a bus: sessions by the executor's code, Scenes by
perception's.

A test module names it in `pytest_plugins`, after `integration.appium_server`.
(PYTEST_DONT_REWRITE: a test module imports it before it names it as a plugin.)
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest_asyncio
from integration.appium_server import AppiumServer

from apex_executor.outcomes import Outcome
from apex_executor.session import PhoneSession
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_perception.appium import attach
from apex_perception.settings import PerceptionSettings
from apex_perception.settle import Observer
from apex_schemas.actions import DeviceAction
from apex_schemas.devices import SessionHandle
from apex_schemas.scene import Element, Scene
from apex_schemas.steps import Target


class AppiumPhone:
    """One device as the executor holds it, looked at as perception does."""

    def __init__(self, session: PhoneSession, handle: SessionHandle) -> None:
        self.session, self.handle = session, handle

    @property
    def driver(self) -> Any:
        """The executor's own client, for what a test asks of the server beside the loop."""
        return self.session._phone.driver

    async def scene(self) -> Scene:
        """What perception sees through a session that it did not make."""
        with ThreadPoolExecutor(max_workers=2) as threads:
            attached = attach(self.handle, 20.0)
            try:
                observer = Observer(attached, self.handle, PerceptionSettings(screenshot="always"), threads)
                return (await observer.observe()).scene
            finally:
                attached.close()

    async def act(self, action: DeviceAction, target: Target | None = None) -> Outcome:
        return await self.session.perform(action, target, held=lambda: True)


OpenPhone = Callable[..., Awaitable[AppiumPhone]]


@pytest_asyncio.fixture
async def open_phone(appium_server: AppiumServer) -> AsyncGenerator[OpenPhone]:
    """`await open_phone(capabilities, platform="android", request_seconds=5)`: a session of the executor's own."""
    opened: list[PhoneSession] = []

    async def start(capabilities: Mapping[str, Any], *, platform: Any = "android", **settings: Any) -> AppiumPhone:
        config = DeviceConfig(alias="real-1", url=appium_server.url, platform=platform, capabilities=dict(capabilities))
        session = PhoneSession(config, ExecutorSettings(**settings))
        opened.append(session)
        return AppiumPhone(session, await session.open())

    yield start
    for session in opened:
        await session.end()
        session.shut()


def labelled(scene: Scene, label: str) -> Element:
    """The element whose label begins with these words."""
    found = [element for element in scene.elements if element.label.startswith(label)]
    assert found, f"{label!r} is not in {[element.label for element in scene.elements]}"
    return found[0]


def target_of(element: Element) -> Target:
    """An element of a Scene as the planner names it to the executor."""
    return Target(
        element=element.id, role=element.role, label=element.label, bounds=element.bounds,
        resource_id=element.resource_id, class_name=element.class_name, text=element.text,
        description=element.description, context=element.context,
    )  # fmt: skip
