"""A recorded phone serving the real page sources, seen through the real client."""

import asyncio

import components
import pytest
from appium import webdriver
from appium.options.common.base import AppiumOptions

from apex_lab.phone import recorded_phones, serve

DUMPS = components.DUMPS


@pytest.mark.skipif(not DUMPS.is_dir(), reason="the recorded page sources (../shared/dumps) are not here")
@pytest.mark.parametrize(("udid", "platform", "count"), [("rec-android", "Android", 15), ("rec-ios", "iOS", 5)])
async def test_every_recorded_screen_is_served_as_it_was_recorded(udid: str, platform: str, count: int) -> None:
    def look(url: str) -> None:
        options = AppiumOptions().load_capabilities({"platformName": platform, "appium:udid": udid})
        driver = webdriver.Remote(url, options=options)
        files = sorted(DUMPS.glob("*.xml"))
        seen: list[str] = []
        for _ in range(count):
            seen.append(driver.page_source)
            assert driver.get_window_size()["width"] > 0
            assert driver.get_screenshot_as_png().startswith(b"\x89PNG")
            driver.tap([(5, 5)])
        assert len(set(seen)) == count
        sources = {file.read_bytes().decode("utf-8", "replace") for file in files}
        assert set(seen) <= sources

    async with serve(recorded_phones(DUMPS)) as url:
        await asyncio.to_thread(look, url)
