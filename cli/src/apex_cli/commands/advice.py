"""What to do about a message met on the way to a first task. The same table stands in docs/DEVICES.md."""

from typing import Final

ADVICE: Final = (
    ("device unauthorized", "unlock the phone and allow USB debugging for this computer"),
    ("device offline", "unplug the phone and plug it in again, or run `adb reconnect`"),
    (
        "no permissions",
        "add a udev rule for the phone (package android-sdk-platform-tools-common), then plug it in again",
    ),
    (
        "device not connected",
        "plug the phone in, enable Developer options → USB debugging, use a cable that carries data",
    ),
    (
        "was not in the list of connected devices",
        "`adb devices` must list the udid; correct `appium:udid` or plug it in",
    ),
    (
        "no Appium server answers",
        "start it: `appium server --address 127.0.0.1 --port 4723`; from a container the url's host is "
        "host.docker.internal, and Appium must listen on an address that containers reach",
    ),
    (
        "could not find a driver",
        "`appium driver install uiautomator2` (Android) or `xcuitest` (iOS), then start Appium again",
    ),
    ("ANDROID_HOME", "set ANDROID_HOME to the Android SDK's folder where Appium is started"),
    ("ANDROID_SDK_ROOT", "set ANDROID_HOME to the Android SDK's folder where Appium is started"),
    ("INSTALL_FAILED_USER_RESTRICTED", "Developer options → allow installing by USB (Xiaomi and others)"),
    ("INSTALL_FAILED", "remove io.appium.uiautomator2.server and .test from the phone, then try again"),
    (
        "WRITE_SECURE_SETTINGS",
        "Developer options → USB debugging (Security settings), or set `appium:ignoreHiddenApiPolicyError` to true",
    ),
    (
        "already in use",
        "another session has this port: leave systemPort, wdaLocalPort and chromedriverPort to be allotted",
    ),
    (
        "instrumentation process is not running",
        "let the phone's maker's battery saver spare io.appium.*, then try again",
    ),
    (
        "socket hang up",
        "the driver on the phone has died: it is started anew by itself; if it stays so, restart the phone",
    ),
    (
        "does not answer",
        "the driver on the phone dies at once: remove io.appium.uiautomator2.server(.test), or restart the phone",
    ),
    ("xcodebuild", "open WebDriverAgent.xcodeproj in Xcode, sign WebDriverAgentRunner with your team, see step 6"),
    (
        "WebDriverAgent",
        "sign it with your team in Xcode, and trust the developer on the phone: Settings → General → VPN & "
        "Device Management",
    ),
    (
        "Chromedriver",
        "start Appium with `--allow-insecure uiautomator2:chromedriver_autodownload`, or name "
        "`appium:chromedriverExecutable`",
    ),
    (
        "no consumer",
        "the device is new: run `python -m apex_bus.credentials` and `python -m apex_bus.provision` with "
        "APEX_DEVICES that names it (compose: `docker compose up`), then have NATS read its configuration "
        "again",
    ),
    (
        "does not let the executor",
        "the device is new: run `python -m apex_bus.credentials` with APEX_DEVICES that names it, have NATS "
        "read its configuration again, then run `python -m apex_bus.provision`",
    ),
    ("no perception answers", "start perception; its log says why it stopped"),
    ("no planner answers", "start the planner; its log says why it stopped"),
    ("its executor has stopped", "start an executor whose devices name it"),
    ("elsewhere", "another executor drives it; ask again in some seconds"),
    ("opening", "a first session may take some minutes; `apex devices` shows how it goes"),
)
"""Words of a message, whatever their case → what to do."""
_OTHERWISE: Final = "docs/DEVICES.md explains the messages; the Appium server's log has more"


def advice(message: str) -> str:
    lowered = message.lower()
    return next((do for words, do in ADVICE if words.lower() in lowered), _OTHERWISE)
