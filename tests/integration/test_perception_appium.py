"""Perception's edge through a real Appium 3 server: Chromium by the page's script, a recorded dump by fake-driver."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import components
import pytest
from appium import webdriver
from integration.appium_server import AppiumServer, close_session, fake_capabilities, open_session

from apex_perception.appium import AppiumPhone
from apex_perception.errors import SessionDead
from apex_perception.perceive import View, perceive
from apex_perception.settings import PerceptionSettings
from apex_perception.settle import Observer
from apex_schemas.devices import SessionHandle
from apex_schemas.scene import Element, Scene

pytest_plugins = ("integration.appium_server",)

Open = Callable[..., webdriver.Remote]


def handle(driver: Any, *, web: bool) -> SessionHandle:
    return SessionHandle(id=driver.session_id, url=driver.command_executor._client_config.remote_server_addr, web=web)


def see(driver: Any) -> Scene:
    phone = AppiumPhone(handle(driver, web=True), timeout_s=20)
    try:
        return perceive(phone.source(), View())
    finally:
        phone.close()


def named(found: Scene, label: str) -> Element:
    return next(element for element in found.elements if element.label == label)


@pytest.mark.appium
@pytest.mark.chromium
@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1.0, 2.625])
def test_a_page_is_seen_in_pixels_and_a_tap_on_what_was_seen_changes_it(
    chromium_phone: Open, local_pages: str, ratio: float
) -> None:
    driver: Any = chromium_phone(pixel_ratio=ratio)
    driver.get(f"{local_pages}/counter.html")
    before = see(driver)
    assert before.source == "web"
    button = next(element for element in before.elements if element.resource_id == "add")
    assert button.tap_point is not None
    assert button.bounds is not None
    assert (button.bounds.left, button.bounds.top) == (round(20 * ratio), round(80 * ratio))
    driver.tap([(round(button.tap_point.x / ratio), round(button.tap_point.y / ratio))])
    after = see(driver)
    assert after.fingerprint != before.fingerprint
    assert any(element.label == "1" for element in after.elements)


@pytest.mark.appium
@pytest.mark.chromium
@pytest.mark.slow
async def test_a_session_that_has_ended_is_called_dead(chromium_phone: Open, local_pages: str) -> None:
    driver: Any = chromium_phone()
    driver.get(f"{local_pages}/counter.html")
    phone = AppiumPhone(handle(driver, web=True), timeout_s=20)
    with ThreadPoolExecutor(2) as threads:
        observer = Observer(phone, handle(driver, web=True), PerceptionSettings(screenshot="always"), threads)
        seen = await observer.observe()
        assert seen.scene.settled
        assert seen.picture is not None
        driver.quit()
        with pytest.raises(SessionDead):
            await observer.observe()
    phone.close()


@pytest.mark.appium
@pytest.mark.slow
async def test_a_recorded_dump_comes_through_the_server_as_it_does_from_its_file(fake_phone: Open) -> None:
    name = "009_clock-alarm-switches.xml"
    driver: Any = fake_phone(name, width=1080, height=2088)
    session = handle(driver, web=False)
    phone = AppiumPhone(session, timeout_s=20)
    with ThreadPoolExecutor(2) as threads:
        seen = await Observer(phone, session, PerceptionSettings(screenshot="always"), threads).observe()
    phone.close()
    from_file = perceive((components.dumps() / name).read_bytes())
    assert seen.scene.settled
    assert seen.picture is not None
    assert [(e.role, e.label, e.tap_point) for e in seen.scene.elements] == [
        (e.role, e.label, e.tap_point) for e in from_file.elements
    ]


@pytest.mark.appium
@pytest.mark.slow
def test_a_web_context_that_cannot_run_the_script_leaves_the_session_in_its_native_one(
    appium_server: AppiumServer, tmp_path: Path
) -> None:
    app = tmp_path / "hybrid.xml"
    node = '<node class="android.webkit.WebView" package="org.shop" bounds="[0,0][400,800]"/>'
    page = "<MockWebView><html><body><p>Terms</p></body></html></MockWebView>"
    app.write_text(f'<app width="400" height="800"><hierarchy>{node}</hierarchy>{page}</app>', encoding="utf-8")
    driver: Any = open_session(appium_server, fake_capabilities(app))
    phone = AppiumPhone(handle(driver, web=False), timeout_s=20)
    try:
        assert any(name.startswith("WEBVIEW") for name in driver.contexts)
        assert phone.page("org.shop") is None
        assert driver.context == "NATIVE_APP"
        assert b"android.webkit.WebView" in phone.source()
    finally:
        phone.close()
        close_session(driver)
