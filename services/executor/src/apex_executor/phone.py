"""The Appium edge: one phone, its session and its acts. Blocking; used from one thread a device.

Consumes actions in pixels and hands the driver its own units: the one place where they are converted. Every request
passes a gate right before it is sent, in this thread, so that nothing is begun after the deadline or the lease; no
request is repeated by the client, none follows a redirect, all have a time limit, and what is no answer of Appium's
is an error.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import urllib3
from appium.options.common import AppiumOptions
from appium.webdriver import Remote
from appium.webdriver.appium_connection import AppiumConnection
from appium.webdriver.client_config import AppiumClientConfig
from appium.webdriver.webelement import WebElement
from selenium.common.exceptions import InvalidSessionIdException, WebDriverException
from selenium.webdriver.remote.command import Command
from urllib3.exceptions import HTTPError
from urllib3.util.retry import Retry

from apex_executor.settings import DeviceConfig
from apex_schemas.devices import SessionHandle
from apex_schemas.geometry import Bounds, Size

Gate = Callable[[bool], None]
"""Raises when the request that is about to be sent must not be sent; is told whether it touches the phone."""

_SETTINGS: Final = {"waitForIdleTimeout": 100, "enableMultiWindows": True}
"""UiAutomator2: do not wait 10 s (ms here) for an animation to end; show keyboards and dialogs of other windows."""
_AUTOMATION: Final = {"android": "UiAutomator2", "ios": "XCUITest"}
_READS: Final = frozenset((
    Command.FIND_ELEMENT, Command.FIND_ELEMENTS, Command.W3C_GET_ACTIVE_ELEMENT, Command.GET_WINDOW_RECT,
    Command.GET_ELEMENT_RECT, Command.GET_ELEMENT_TEXT, Command.GET_ELEMENT_ATTRIBUTE, Command.GET_ELEMENT_PROPERTY,
))  # fmt: skip
_READING_SCRIPTS: Final = ("return ", "mobile: isAppInstalled", "mobile: queryAppState", "mobile: deviceScreenInfo")


def _open_gate(_: bool) -> None:
    return


class _Connection(AppiumConnection):
    """The client's connection with a gate before each request.

    The client takes a proxy's error page for success: what does not speak the protocol is an error here.
    """

    gate: Gate = staticmethod(_open_gate)

    def execute(self, command: str, params: Any) -> Any:
        self.gate(_touches(command, params))
        answer = cast("dict[str, Any]", super().execute(command, params))  # pyright: ignore[reportUnknownMemberType]
        if not _is_appium(answer):
            status = answer.get("status") or 200
            raise WebDriverException(f"HTTP {status} with something that is no answer of an Appium server")
        return answer


def _touches(command: str, params: Mapping[str, Any]) -> bool:
    """Whether a request may change anything on the phone. What is not known to be a look-up does."""
    if command == Command.W3C_EXECUTE_SCRIPT:
        return not str(params["script"]).startswith(_READING_SCRIPTS)
    return command not in _READS


def _is_appium(answer: dict[str, Any]) -> bool:
    """The client adds `status` where the answer was an error or could not be read."""
    if "status" not in answer or "sessionId" in answer:
        return True
    try:
        return bool(json.loads(answer["value"])["value"]["error"])
    except (TypeError, ValueError, KeyError):
        return False


class Phone:
    """One device's Appium session. `driver` is there between `open` and `end`."""

    def __init__(self, config: DeviceConfig, *, request_s: float, idle_s: float) -> None:
        self.config = config
        self._request_s, self._idle_s = request_s, idle_s
        self._driver: Remote | None = None
        self._connection: _Connection | None = None
        self.handle: SessionHandle | None = None

    @property
    def driver(self) -> Remote:
        if self._driver is None:
            raise InvalidSessionIdException("no session")
        return self._driver

    @property
    def scale(self) -> float:
        return self.handle.scale if self.handle else 1.0

    @property
    def web(self) -> bool:
        return self.handle.web if self.handle else False

    def guard(self, gate: Gate | None) -> None:
        """Let every following request pass `gate` first."""
        if self._connection is not None:
            self._connection.gate = gate or _open_gate

    def open(self) -> SessionHandle:
        """Create a session, probe it, and set the driver's own waits low. Raises what the client raises."""
        config = AppiumClientConfig(
            remote_server_addr=self.config.url,
            timeout=int(max(self._request_s, 1)),
            keep_alive=True,
            init_args_for_pool_manager={"init_args_for_pool_manager": {"retries": Retry(0)}},
        )
        connection = _Connection(client_config=config)
        driver = Remote(connection, options=AppiumOptions().load_capabilities(self._capabilities()))  # pyright: ignore[reportArgumentType]
        self._driver, self._connection = driver, connection
        capabilities = cast("dict[str, Any]", driver.capabilities)  # pyright: ignore[reportUnknownMemberType]
        own_app = {"app", "appium:app"} & self.config.capabilities.keys()
        web = bool(capabilities.get("browserName")) and not own_app
        assert driver.session_id is not None
        if not web:
            self._try(lambda: driver.update_settings(_SETTINGS))
        self.handle = SessionHandle(
            id=driver.session_id,
            url=self.config.url,
            platform=self.config.platform,
            web=web,
            scale=self._scale(driver, web=web),
        )
        return self.handle

    def _capabilities(self) -> dict[str, Any]:
        defaults: dict[str, Any] = {
            "platformName": "Android" if self.config.platform == "android" else "iOS",
            "appium:automationName": _AUTOMATION[self.config.platform],
            "appium:newCommandTimeout": int(self._idle_s),
            "appium:noReset": True,
        }
        return {**defaults, **self.config.capabilities}

    def _scale(self, driver: Remote, *, web: bool) -> float:
        """Pixels of the screenshot per unit of the session; 1 on Android."""
        if web:
            return float(driver.execute_script("return window.devicePixelRatio") or 1)  # pyright: ignore
        if self.config.platform == "ios":
            told = driver.capabilities.get("pixelRatio")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            if isinstance(told, int | float) and told > 0:
                return float(told)
            info: Any = self._try(lambda: driver.execute_script("mobile: deviceScreenInfo"))  # pyright: ignore
            return float(info.get("scale", 1)) if isinstance(info, dict) else 1.0  # pyright: ignore
        return 1.0

    def _try(self, call: Callable[[], Any]) -> Any:
        """A call that some drivers do not know; the phone is usable without it."""
        try:
            return call()
        except WebDriverException:
            return None

    def find(self, by: str, value: str) -> list[WebElement]:
        """The elements that the driver finds."""
        return self.driver.find_elements(by, value)  # pyright: ignore[reportUnknownMemberType]

    def bounds_of(self, element: WebElement) -> Bounds:
        """Where an element is, in pixels."""
        rect = cast("dict[str, float]", element.rect)  # pyright: ignore[reportUnknownMemberType]
        left, top = round(rect["x"] * self.scale), round(rect["y"] * self.scale)
        return Bounds(
            left=left,
            top=top,
            right=left + round(rect["width"] * self.scale),
            bottom=top + round(rect["height"] * self.scale),
        )

    def screen(self) -> Size:
        """The window's size in pixels; of a browser the part that shows the page."""
        if self.web:
            width, height = cast(
                "list[float]", self.driver.execute_script("return [innerWidth, innerHeight]")  # pyright: ignore[reportUnknownMemberType]
            )  # fmt: skip
            return Size(width=round(width * self.scale), height=round(height * self.scale))
        size = cast("dict[str, float]", self.driver.get_window_size())  # pyright: ignore[reportUnknownMemberType]
        return Size(width=round(size["width"] * self.scale), height=round(size["height"] * self.scale))

    def alive(self) -> bool:
        """Whether the session answers."""
        try:
            self.driver.get_window_rect()  # pyright: ignore
        except (WebDriverException, HTTPError, OSError):
            return False
        return True

    def end(self) -> None:
        """Delete our own session, as well as that can be done."""
        if self.handle is not None:
            delete_session(self.handle, timeout_s=5)
        self._driver = self._connection = self.handle = None


def delete_session(handle: SessionHandle, *, timeout_s: float) -> bool:
    """Delete a session, whoever made it. True when it is known to be gone: no act queued in it can happen any more."""
    url = f"{handle.url.rstrip('/')}/session/{handle.id}"
    try:
        answer = urllib3.request("DELETE", url, timeout=timeout_s, retries=False, redirect=False)
    except HTTPError:
        return False
    return answer.status == 200 or (answer.status == 404 and b"invalid session id" in answer.data)
