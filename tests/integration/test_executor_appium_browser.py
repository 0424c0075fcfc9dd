"""Executor and perception on a real browser behind a real Appium server: real pixels, real taps, text read back."""

from collections.abc import Callable, Coroutine
from typing import Any

import components
import pytest
from integration.appium_phone import AppiumPhone, OpenPhone, labelled, target_of
from integration.appium_server import chromium_capabilities
from selenium.common.exceptions import WebDriverException

from apex_executor.errors import ActCutShort, ActRefused
from apex_executor.failures import classify
from apex_executor.outcomes import Failure
from apex_schemas.actions import Back, DeviceAction, Home, InputText, LaunchApp, PressKey, Scroll, Swipe, Tap
from apex_schemas.geometry import Point
from apex_schemas.scene import Element, Scene

pytest_plugins = ("integration.appium_server", "integration.appium_phone")
pytestmark = [pytest.mark.appium, pytest.mark.chromium, pytest.mark.slow]

OpenPage = Callable[..., Coroutine[Any, Any, AppiumPhone]]


@pytest.fixture
def page_phone(open_phone: OpenPhone, local_pages: str, tmp_path_factory: pytest.TempPathFactory) -> OpenPage:
    """`await page_phone("counter.html", pixel_ratio=2.625)`: a browser session of the executor's own on that page."""

    async def start(page: str, **metrics: Any) -> AppiumPhone:
        browser = components.chromium()
        profile = tmp_path_factory.mktemp("profile")
        phone = await open_phone(chromium_capabilities(browser, profile, **metrics), act_seconds=20.0)
        phone.driver.get(f"{local_pages}/{page}")
        return phone

    return start


async def tap_on(phone: AppiumPhone, element: Element) -> None:
    assert element.tap_point is not None
    assert (await phone.act(Tap(at=element.tap_point), target_of(element))).success


async def failure_of(phone: AppiumPhone, action: DeviceAction) -> Failure:
    with pytest.raises((WebDriverException, ActCutShort)) as caught:
        await phone.act(action)
    return classify(caught.value)


def field_of(scene: Scene) -> Element:
    return next(element for element in scene.elements if element.editable)


def count(phone: AppiumPhone) -> str:
    """What the page itself says."""
    return phone.driver.execute_script("return document.getElementById('count').textContent")


def number(scene: Scene) -> str:
    """The count as the Scene tells it: the last word of the heading, in one text or in two."""
    texts = [element.label for element in scene.elements if element.role == "text"]
    return " ".join(texts).partition("Count:")[2].split()[0]


@pytest.mark.parametrize(("ratio", "picture"), [(1.0, (412, 915)), (2.625, (1082, 2402))])
async def test_tap_by_a_scenes_pixels_changes_the_page_at_any_scale(
    page_phone: OpenPage, ratio: float, picture: tuple[int, int]
) -> None:
    phone = await page_phone("counter.html", pixel_ratio=ratio)
    assert (phone.handle.web, phone.handle.scale) == (True, ratio)
    before = await phone.scene()
    assert (before.source, before.screen.scale) == ("web", ratio)
    assert abs(before.screen.size.width - picture[0]) <= 1
    assert abs(before.screen.size.height - picture[1]) <= 1
    add = labelled(before, "Add one")
    assert add.bounds is not None
    # CSS [20,80] 200 x 48, in pixels of the picture
    assert (add.bounds.left, add.bounds.top) == (round(20 * ratio), round(80 * ratio))
    await tap_on(phone, add)
    after = await phone.scene()
    assert count(phone) == "1"
    assert [number(scene) for scene in (before, after)] == ["0", "1"]


async def test_tap_hits_elements_at_the_edges_of_the_viewport(page_phone: OpenPage) -> None:
    """Rounding between pixels and CSS pixels leaves no element out: 12 buttons of 8 CSS pixels, at a crooked scale."""
    phone = await page_phone("counter.html", pixel_ratio=2.625)
    phone.driver.execute_script(
        "document.body.innerHTML = ''; window.hits = [];"
        "for (let i = 0; i < 12; i++) { const b = document.createElement('button');"
        " b.ariaLabel = 'b' + i + '.'; b.style = 'width:8px;height:8px;padding:0';"
        " b.style.left = (i % 2 ? 404 : 0) + 'px'; b.style.top = i * 82 + 'px';"
        " b.onclick = () => hits.push(i); document.body.append(b); }"
    )
    scene = await phone.scene()
    for number in range(12):
        await tap_on(phone, labelled(scene, f"b{number}."))
    assert phone.driver.execute_script("return hits") == list(range(12))


async def test_text_is_typed_replaced_and_read_back(page_phone: OpenPage) -> None:
    phone = await page_phone("counter.html", pixel_ratio=2.625)
    for text in ("Žofie 日本 😀", "second, shorter", ""):
        field = field_of(await phone.scene())
        outcome = await phone.act(InputText(text=text, at=field.tap_point), target_of(field))
        assert (outcome.success, outcome.code) == (True, None), text
        assert outcome.read_back_ms is not None
        assert (field_of(await phone.scene()).value or "") == text


async def test_text_that_the_page_changes_is_told_as_different(page_phone: OpenPage) -> None:
    phone = await page_phone("counter.html")
    phone.driver.execute_script("const f = document.getElementById('name'); f.oninput = () => { f.value = 'no' }")
    field = field_of(await phone.scene())
    outcome = await phone.act(InputText(text="yes", at=field.tap_point), target_of(field))
    assert (outcome.success, outcome.code) == (False, "TEXT_DIFFERS")
    assert "'no' instead of 'yes'" in (outcome.message or "")


async def test_password_is_neither_shown_by_the_scene_nor_told_by_the_executor(page_phone: OpenPage) -> None:
    phone = await page_phone("counter.html")
    phone.driver.execute_script("document.getElementById('name').type = 'password'")
    field = field_of(await phone.scene())
    outcome = await phone.act(InputText(text="hunter2", at=field.tap_point), target_of(field))
    assert outcome.success
    assert "hunter2" not in repr(outcome)
    assert "hunter2" not in repr(await phone.scene())


async def test_text_for_what_takes_none_is_refused_after_the_tap(page_phone: OpenPage) -> None:
    phone = await page_phone("counter.html")
    add = labelled(await phone.scene(), "Add one")
    assert add.tap_point is not None
    failure = await failure_of(phone, InputText(text="x", at=add.tap_point))
    assert (failure.code, failure.acted, failure.session_dead) == ("NOT_INTERACTABLE", False, False)
    assert failure.message.startswith("only a part was done")


async def test_swipe_and_scroll_move_the_page(page_phone: OpenPage) -> None:
    phone = await page_phone("second.html", pixel_ratio=2.0)
    scrolled = "return scrollY"
    await phone.act(Swipe(start=Point(x=400, y=1400), end=Point(x=400, y=600)))
    first = phone.driver.execute_script(scrolled)
    await phone.act(Scroll(direction="down"))
    second = phone.driver.execute_script(scrolled)
    await phone.act(Scroll(direction="up"))
    assert 0 < first < second
    assert phone.driver.execute_script(scrolled) < second


async def test_link_leads_to_the_next_page_and_back_returns(page_phone: OpenPage) -> None:
    phone = await page_phone("counter.html")
    await tap_on(phone, labelled(await phone.scene(), "Second page"))
    assert "Second" in (await phone.scene()).page
    assert (await phone.act(Back())).success
    assert "Counter" in (await phone.scene()).page


@pytest.mark.parametrize("action", [LaunchApp(app="Settings"), Home(), PressKey(key="app_switch")])
async def test_app_and_key_acts_are_told_as_not_supported_and_the_session_lives(
    page_phone: OpenPage, action: DeviceAction
) -> None:
    phone = await page_phone("counter.html")
    with pytest.raises(ActRefused) as refused:
        await phone.act(action)
    assert refused.value.code == "NOT_SUPPORTED"
    assert "Counter" in (await phone.scene()).page


async def test_target_under_something_is_refused_and_one_that_moved_is_followed(page_phone: OpenPage) -> None:
    phone = await page_phone("counter.html")
    add = labelled(await phone.scene(), "Add one")
    phone.driver.execute_script("document.getElementById('add').style.top = '130px'")
    await tap_on(phone, add)
    assert count(phone) == "1"
    phone.driver.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<div id=banner style=\"position:fixed;inset:0\"></div>')"
    )
    with pytest.raises(ActRefused, match="OCCLUDED: button 'Add one' lies under banner now"):
        await tap_on(phone, add)
    phone.driver.execute_script("document.getElementById('banner').remove()")
    phone.driver.execute_script("document.getElementById('add').style.top = '5000px'")
    with pytest.raises(ActRefused, match="OFF_SCREEN"):
        await tap_on(phone, add)
    phone.driver.execute_script("document.getElementById('add').remove()")
    with pytest.raises(ActRefused, match="STALE_SCENE"):
        await tap_on(phone, add)
    assert count(phone) == "1"


async def test_point_outside_the_page_is_told_as_off_screen(page_phone: OpenPage) -> None:
    failure = await failure_of(await page_phone("counter.html"), Tap(at=Point(x=5_000, y=5_000)))
    assert (failure.code, failure.acted) == ("OFF_SCREEN", False)


async def test_dialog_in_the_way_is_told_and_the_next_act_works(page_phone: OpenPage) -> None:
    phone = await page_phone("counter.html")
    add = labelled(await phone.scene(), "Add one")
    assert add.tap_point is not None
    phone.driver.execute_script("setTimeout(() => confirm('Sure?'), 0); return 0")
    failure = await failure_of(phone, Tap(at=add.tap_point))
    assert (failure.code, failure.acted, failure.session_dead) == ("DIALOG_CLOSED", False, False)
    await tap_on(phone, add)
    assert count(phone) == "1"
