"""Twelve tasks on local pages, and one that cannot be done: through all four services, a real Appium server and a real
browser, decided by the scripted model. What the page says of itself is the judge, not what was claimed.
"""

from collections.abc import AsyncGenerator

import components
import pytest
import pytest_asyncio
from integration.appium_server import AppiumServer
from integration.browser_rig import BrowserRig, browser_rig

from apex_lab.embedded.nats import nats_server

pytest_plugins = ("integration.appium_server",)
pytestmark = [pytest.mark.appium, pytest.mark.chromium, pytest.mark.slow]

SAID = "document.getElementById('said').textContent"
TASKS = {
    "wifi": (
        "tasks-settings.html",
        'tap "Network" then tap "Wi-Fi" then check "Wi-Fi is on"',
        ("document.getElementById('wifi').checked", True),
    ),
    "theme": (
        "tasks-settings.html",
        'tap "Display" then tap "Dark" then check "Theme: dark"',
        ("document.querySelector('[name=theme]:checked').value", "dark"),
    ),
    "version": ("tasks-settings.html", 'tap "About" then check "Version 7.1"', ("document.body.dataset.at", "about")),
    "keep": ("tasks-settings.html", 'tap "Reset" then tap "Cancel"', (SAID, "Nothing was reset")),
    "erase": (
        "tasks-settings.html",
        'tap "Reset" then tap "Erase" then check "Everything was reset"',
        (SAID, "Everything was reset"),
    ),
    "name": ("tasks-form.html", 'type "Zoë 李 😀" into "Name"', ("document.getElementById('name').value", "Zoë 李 😀")),
    "mail": (
        "tasks-form.html",
        'type "a+b@example.org" into "E-mail" then tap "Send" then check "Sent to a+b@example.org"',
        (SAID, "Sent to a+b@example.org"),
    ),
    "note": (
        "tasks-form.html",
        'type "New & better" into "Note"',
        ("document.getElementById('note').value", "New & better"),
    ),
    "password": (
        "tasks-form.html",
        'type "hunter2" into "Password" then tap "Sign in" then check "Welcome"',
        (SAID, "Welcome"),
    ),
    "far": ("tasks-list.html", 'scroll down then scroll down then tap "Romeo"', (SAID, "Open: Romeo")),
    "count": (
        "counter.html",
        'tap "Add one" then tap "Add" then check "2"',
        ("document.getElementById('count').textContent", "2"),
    ),
    "pages": (
        "counter.html",
        'tap "Second page" then check "A page longer than the window."',
        ("location.pathname", "/second.html"),
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(appium_server: AppiumServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[BrowserRig]:
    components.nats()
    folder = tmp_path_factory.mktemp("browser")
    async with nats_server(folder / "nats") as nats, browser_rig(nats.url, appium_server, folder) as rig:
        yield rig


@pytest.mark.parametrize(("page", "goal", "truth"), TASKS.values(), ids=TASKS)
@pytest.mark.asyncio(loop_scope="module")
async def test_task_is_done_on_the_page(
    rig: BrowserRig, local_pages: str, page: str, goal: str, truth: tuple[str, object]
) -> None:
    await rig.open(f"{local_pages}/{page}")
    task, end = await rig.do(goal)
    assert (end.status, end.claimed) == ("succeeded", True), end
    assert await rig.value(truth[0]) == truth[1]
    events = [event for _, event in await rig.story(task)]
    assert events, "a task without an act proves nothing"
    assert all(event.success for event in events), [(event.action, event.code, event.message) for event in events]
    if "Password" in goal:
        assert all("hunter2" not in (event.message or "") for event in events)


@pytest.mark.asyncio(loop_scope="module")
async def test_task_that_cannot_be_done_says_so_and_the_page_is_as_it_was(rig: BrowserRig, local_pages: str) -> None:
    await rig.open(f"{local_pages}/tasks-settings.html")
    _, end = await rig.do('tap "Quantum drive"')
    assert end.status == "failed"
    assert end.failure_reason
    assert await rig.value(SAID) == ""
