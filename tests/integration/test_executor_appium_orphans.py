"""Sessions that a dead executor left on a real Appium server: ended before the device gets a new one."""

from collections.abc import Iterator
from pathlib import Path

import components
import pytest
from integration.appium_server import AppiumServer, fake_app, fake_capabilities, open_session, running_appium
from selenium.common.exceptions import InvalidSessionIdException

from apex_executor.session import PhoneSession
from apex_executor.settings import DeviceConfig, ExecutorSettings

pytest_plugins = ("integration.appium_server",)
pytestmark = [pytest.mark.appium, pytest.mark.slow]

MINE, OTHER = "phone-1", "phone-2"


@pytest.fixture(scope="module")
def telling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppiumServer]:
    """A server that tells its sessions."""
    home = tmp_path_factory.mktemp("appium")
    with running_appium(components.appium(), home, "--allow-insecure", "*:session_discovery") as server:
        yield server


def capabilities(folder: Path, udid: str) -> dict[str, object]:
    app = fake_app(components.dumps() / "001_settings-top-en.xml", folder, width=1080, height=2400)
    return fake_capabilities(app) | {"appium:udid": udid}


async def cleared(server: AppiumServer, folder: Path) -> tuple[int, list[bool]]:
    """How many orphans of MINE are ended, and which of two old sessions still live: one of MINE, one of OTHER."""
    olds = [open_session(server, capabilities(folder, udid)) for udid in (MINE, OTHER)]
    config = DeviceConfig(alias="real-1", url=server.url, capabilities=capabilities(folder, MINE))
    session = PhoneSession(config, ExecutorSettings())
    count = await session.clear(None)
    alive: list[bool] = []
    for old in olds:
        try:
            old.get_window_size()
            alive.append(True)
            old.quit()
        except InvalidSessionIdException:
            alive.append(False)
    session.shut()
    return count, alive


async def test_orphan_of_this_device_is_ended_and_no_other(telling: AppiumServer, tmp_path: Path) -> None:
    assert await cleared(telling, tmp_path) == (1, [False, True])


async def test_server_that_does_not_tell_its_sessions_has_none_ended(
    appium_server: AppiumServer, tmp_path: Path
) -> None:
    assert await cleared(appium_server, tmp_path) == (0, [True, True])
