"""How long after a screen stands still its Scene is ready, against the simulator's truth.

    python bench/settling.py [--rounds 8] [--json FILE]

An app is started on a simulated phone; it shows a bare first screen for a known time. The lag is counted from the
moment the phone truly shows the app to the last reading of the Scene, through HTTP as always. Wrong is what was
published although the phone came to show something else.
"""

import argparse
import asyncio
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from appium import webdriver
from appium.options.common.base import AppiumOptions

from apex_lab.phone import Phone, serve
from apex_perception.appium import AppiumPhone
from apex_perception.settings import PerceptionSettings
from apex_perception.settle import Observer
from apex_schemas.devices import SessionHandle

APP, SHOWS = "com.android.settings", "Network & internet"
STARTS_MS: Final = (0, 100, 300, 800, 1_500)


async def measure(rounds: int) -> dict[int, dict[str, float]]:
    phone = Phone("sim-1", permission_popup=False)
    found: dict[int, dict[str, float]] = {}
    async with serve([phone]) as url:
        options = AppiumOptions().load_capabilities(
            {"platformName": "Android", "appium:automationName": "UiAutomator2", "appium:udid": "sim-1"}
        )
        driver: Any = await asyncio.to_thread(webdriver.Remote, url, options=options)
        await asyncio.to_thread(driver.update_settings, {"enableMultiWindows": True, "waitForIdleTimeout": 50})
        handle = SessionHandle(id=driver.session_id, url=url)
        with ThreadPoolExecutor(2) as threads:
            observer = Observer(AppiumPhone(handle, timeout_s=20), handle, PerceptionSettings(), threads)
            for start_ms in STARTS_MS:
                found[start_ms] = await _round(phone, observer, start_ms, rounds)
        await asyncio.to_thread(driver.quit)
    return found


async def _round(phone: Phone, observer: Observer, start_ms: int, rounds: int) -> dict[str, float]:
    lags: list[float] = []
    wrong = unsettled = 0
    for _ in range(rounds):
        phone.reset()
        before = (await observer.observe()).scene
        phone.faults = phone.faults.changed({"slow_start_ms": start_ms})
        phone.activate(APP, "bench")
        shown_at = time.monotonic() + start_ms / 1_000
        seen = await observer.observe(before=before.fingerprint, patience_s=1.5)
        lags.append((seen.read_at - shown_at) * 1_000)
        wrong += not any(SHOWS in element.label for element in seen.scene.elements)
        unsettled += not seen.scene.settled
    return {"p50": statistics.median(lags), "max": max(lags), "wrong": wrong, "unsettled": unsettled}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    given = parser.parse_args()
    found = asyncio.run(measure(given.rounds))
    print("first screen shown for   lag p50, ms   max   wrong   unsettled")
    for start_ms, one in found.items():
        print(f"{start_ms:>19} ms {one['p50']:>13.0f} {one['max']:>5.0f} {one['wrong']:>7} {one['unsettled']:>11}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
