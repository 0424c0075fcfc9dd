"""The `mobile:` methods that come through execute_script: apps, keys, keyboard, gestures, device."""

from __future__ import annotations

import asyncio
import base64
import time
from typing import cast

from apex_lab.phone.commands import Call, at
from apex_lab.phone.device import Platform
from apex_lab.phone.errors import InvalidArgument, UnknownCommand, UnknownError, UnsupportedOperation
from apex_lab.phone.geometry import Point, Rect
from apex_lab.phone.views import View, WindowInfo

ACTING = frozenset(
    {
        "activateApp", "terminateApp", "launchApp", "pressKey", "pressButton", "hideKeyboard", "type", "clickGesture",
        "tap", "longClickGesture", "touchAndHold", "doubleClickGesture", "swipeGesture", "scrollGesture",
        "flingGesture", "dragGesture", "swipe", "scroll", "backgroundApp", "replaceElementValue",
    }
)  # fmt: skip
"""The methods that are inputs."""


_BOTH = frozenset(
    {
        "activateApp", "terminateApp", "launchApp", "queryAppState", "isAppInstalled", "listApps",
        "backgroundApp", "hideKeyboard",
        "isKeyboardShown", "deviceInfo", "getDeviceTime", "viewportRect", "viewportScreenshot", "isLocked", "lock",
        "unlock",
    }
)  # fmt: skip
METHODS = {
    "Android": _BOTH
    | {
        "getCurrentPackage", "getCurrentActivity", "pressKey", "type", "replaceElementValue", "clickGesture",
        "doubleClickGesture", "longClickGesture", "swipeGesture", "scrollGesture", "flingGesture", "dragGesture",
        "getDisplayDensity", "getSystemBars", "listWindows",
    },
    "iOS": _BOTH
    | {
        "activeAppInfo", "pressButton", "tap", "doubleTap", "touchAndHold", "swipe", "scroll", "dragFromToForDuration",
        "deviceScreenInfo", "keys",
    },
}  # fmt: skip
"""What each platform's driver knows, as far as it is here."""


_BUTTONS = {"home": 3, "volumeup": 24, "volumedown": 25}


def method_of(body: object) -> str:
    """``mobile: activateApp`` → ``activateApp``; empty for any other script."""
    script = cast("dict[str, object]", body).get("script") if isinstance(body, dict) else None
    return script.removeprefix("mobile:").strip() if isinstance(script, str) and script.startswith("mobile:") else ""


async def execute(call: Call) -> object:
    """Runs one method; raises UnsupportedOperation for one that the platform does not know."""
    method = method_of(call.body)
    if not method:
        raise UnknownCommand("only 'mobile:' scripts run in the native context")
    known = METHODS[call.session.phone.platform] - set(call.session.phone.faults.unsupported)
    if method not in known:
        raise UnsupportedOperation(method, known)
    sent = call.body.get("args")
    first = cast("list[object]", sent)[0] if isinstance(sent, list) and sent else None
    args = cast("dict[str, object]", first) if isinstance(first, dict) else dict[str, object]()
    return await _run(method, Call(session=call.session, path=call.path, body=args))


async def _run(method: str, call: Call) -> object:
    phone, session = call.session.phone, call.session.id
    match method:
        case "activateApp" | "launchApp":
            phone.activate(_app(call), session)
            return None
        case "terminateApp":
            return phone.terminate(_installed(call), session)
        case "queryAppState":
            return phone.app_state(_installed(call))
        case "isAppInstalled":
            return phone.app_state(_app(call)) > 0
        case "listApps":
            return {name: _about(phone.platform, label) for name, label in phone.apps().items()}
        case "listWindows":
            windows = phone.windows()
            return [_window(len(windows) - n, window) for n, window in enumerate(windows)]
        case "backgroundApp":
            return await _background(call)
        case "getCurrentPackage":
            return phone.package
        case "getCurrentActivity":
            return phone.activity
        case "activeAppInfo":
            return {"bundleId": phone.package, "name": "", "processArguments": {"env": {}, "args": []}, "pid": 1}
        case "deviceScreenInfo":
            width, height = phone.size
            bar = {"width": width, "height": phone.capabilities().get("statBarHeight", 0)}
            whole = {"width": width, "height": height}
            return {"statusBarSize": bar, "scale": phone.ratio, "screenSize": whole}
        case "keys":
            phone.write("".join(key for key in _keys(call) if not key.startswith("XCUIKeyboardKey")), session)
            return None
        case "pressKey" | "pressButton":
            phone.key(_keycode(call), session)
            return None
        case "hideKeyboard":
            return phone.hide_keyboard(session)
        case "isKeyboardShown":
            return phone.keyboard_shown
        case "type":
            phone.write(call.text("text"), session)
            return None
        case "replaceElementValue":
            phone.set_text(call.session.view(call.text("elementId")), call.text("text"), session, replace=True)
            return None
        case "clickGesture" | "tap":
            phone.tap(_point(call), session)
            return None
        case "doubleClickGesture" | "doubleTap":
            phone.tap(_point(call), session)
            phone.tap(_point(call), session)
            return None
        case "longClickGesture" | "touchAndHold":
            phone.long_press(_point(call), session)
            return None
        case "swipeGesture" | "swipe":
            return _sweep(call, finger=True)
        case "scrollGesture" | "flingGesture" | "scroll":
            return _sweep(call, finger=False)
        case "dragGesture":
            start = _view(call).middle if _has_view(call) else at(call.need("startX"), call.need("startY"))
            phone.swipe(start, at(call.need("endX"), call.need("endY")), session)
            return None
        case "dragFromToForDuration":
            start, end = (at(call.need(f"{way}X"), call.need(f"{way}Y")) for way in ("from", "to"))
            phone.swipe(start, end, session)
            return None
        case "getDeviceTime":
            return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
        case "deviceInfo":
            return phone.capabilities()
        case "viewportRect":
            width, height = (side * phone.ratio for side in phone.size)
            return {"left": 0, "top": 0, "width": width, "height": height}
        case "viewportScreenshot":
            return base64.b64encode(phone.picture()).decode()
        case "getDisplayDensity":
            return phone.capabilities().get("deviceScreenDensity", 160)
        case "getSystemBars":
            tall = phone.capabilities().get("statBarHeight", 0)
            bar = {"visible": True, "x": 0, "y": 0, "width": phone.size[0], "height": tall}
            return {"statusBar": bar, "navigationBar": {**bar, "visible": False, "y": phone.size[1], "height": 0}}
        case "isLocked":
            return False
        case "lock" | "unlock":
            return None
        case _:
            raise UnsupportedOperation(method, METHODS[phone.platform])


def _app(call: Call) -> str:
    name = call.body.get("appId") or call.body.get("bundleId")
    if not isinstance(name, str):
        raise InvalidArgument("Parameter 'appId' is required: the app's package")
    return name


def _about(platform: Platform, label: str) -> dict[str, str]:
    """UiAutomator2 knows the packages and no more."""
    return {"CFBundleDisplayName": label, "CFBundleName": label} if platform == "iOS" else {}


_WINDOW_TYPES = {"keyboard": 2, "bar": 3, "overlay": 3}
"""AccessibilityWindowInfo's TYPE_INPUT_METHOD and TYPE_SYSTEM; else TYPE_APPLICATION."""


def _window(layer: int, window: WindowInfo) -> dict[str, object]:
    left, top, right, bottom = window.rect
    return {
        "windowId": layer,
        "displayId": 0,
        "physicalDisplayId": None,
        "virtualDisplayId": None,
        "rect": {"left": left, "top": top, "right": right, "bottom": bottom},
        "packageName": window.package,
        "screenshot": None,
        "type": _WINDOW_TYPES.get(window.kind, 1),
        "title": None,
        "layer": layer,
        "isAccessibilityFocused": False,
        "isActive": window.active,
        "isFocused": window.active,
        "isInPictureInPictureMode": False,
    }


def _installed(call: Call) -> str:
    """XCUITest asks about no app that is not there."""
    name = _app(call)
    if call.session.phone.platform == "iOS" and not call.session.phone.app_state(name):
        raise UnknownError(f"The application with bundle identifier '{name}' is unknown or not installed")
    return name


def _keys(call: Call) -> list[str]:
    keys = call.need("keys")
    return [str(key) for key in cast("list[object]", keys)] if isinstance(keys, list) else []


def _keycode(call: Call) -> int:
    code, name = call.body.get("keycode"), call.body.get("name")
    if name in _BUTTONS:
        return _BUTTONS[str(name)]
    if call.session.phone.platform == "iOS":
        raise UnknownError(f"The device does not have the button '{name}'")
    if not isinstance(code, int):
        raise InvalidArgument(f"Parameter 'keycode' must be a number, not {code!r}")
    return code


async def _background(call: Call) -> object:
    phone, package = call.session.phone, call.session.phone.package
    seconds = call.body.get("seconds", 0)
    phone.key(3, call.session.id)
    if isinstance(seconds, int | float) and seconds >= 0:
        await asyncio.sleep(float(seconds))
        phone.activate(package, call.session.id)
    return True


def _has_view(call: Call) -> bool:
    return isinstance(call.body.get("elementId", call.body.get("element")), str)


def _view(call: Call) -> View:
    return call.session.view(str(call.body.get("elementId", call.body.get("element"))))


def _point(call: Call) -> Point:
    """The element's centre, or x and y; with both, x and y count from the element's upper left corner."""
    if not _has_view(call):
        return at(call.need("x"), call.need("y"))
    rect = _view(call).rect
    if call.body.get("x") is None:
        return _view(call).middle
    offset = at(call.need("x"), call.need("y"))
    return Point(rect.left + offset.x, rect.top + offset.y)


def _sweep(call: Call, *, finger: bool) -> object:
    """Swipes (`direction` is the finger's) or scrolls (`direction` is the view's; answers whether it moved)."""
    width, height = call.session.phone.size
    if _has_view(call):
        area = _view(call).rect
    elif call.body.get("left") is not None:
        corner = at(call.need("left"), call.need("top"))
        extent = at(call.need("width"), call.need("height"))
        area = Rect(corner.x, corner.y, corner.x + extent.x, corner.y + extent.y)
    else:
        area = Rect(0, 0, width, height).inset(min(width, height) // 10)
    percent = call.body.get("percent", 0.8)
    part = float(percent) if isinstance(percent, int | float) else 0.8
    direction = call.text("direction").lower()
    ways = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
    if direction not in ways:
        raise InvalidArgument(f"Parameter 'direction' must be up, down, left or right, not {direction}")
    x, y = ways[direction] if finger else (-ways[direction][0], -ways[direction][1])
    middle = area.center
    half = Point(round(area.width * part / 2), round(area.height * part / 2))
    start = Point(middle.x - x * half.x, middle.y - y * half.y)
    end = Point(middle.x + x * half.x, middle.y + y * half.y)
    moved = call.session.phone.swipe(start, end, call.session.id)
    return None if finger else moved != 0
