"""The Appium edge: one phone and its session. Blocking; used from one thread a device.

Consumes points in pixels and hands the driver its own units: the one place where they are converted. Every request
passes a gate right before it is sent, in this thread, so that nothing is begun after the deadline or the lease (see
`connection`).
"""

import time
from collections.abc import Callable
from typing import Any, Final, Literal, cast

import urllib3
from appium.options.common import AppiumOptions
from appium.webdriver import Remote
from appium.webdriver.client_config import AppiumClientConfig
from appium.webdriver.webelement import WebElement
from selenium.common.exceptions import InvalidSessionIdException, WebDriverException
from urllib3.exceptions import HTTPError
from urllib3.util.retry import Retry

from apex_executor.connection import Connection, Gate
from apex_executor.errors import Stillborn
from apex_executor.ports import own_ports
from apex_executor.settings import DeviceConfig
from apex_schemas.devices import SessionHandle
from apex_schemas.geometry import Bounds, Point, Size

Dialect = Literal["android", "ios", "web"]
"""Whose commands a session understands: UiAutomator2's, XCUITest's, or those of a browser."""

_SETTINGS: Final[dict[Dialect, dict[str, Any]]] = {
    "android": {"waitForIdleTimeout": 100, "enableMultiWindows": True},
    "ios": {"waitForIdleTimeout": 0.1, "animationCoolOffTimeout": 0.1},
    "web": {},
}
"""Do not wait 10 s for an animation to end: UiAutomator2 counts in milliseconds, XCUITest in seconds. Of Android show
keyboards and dialogs of other windows."""
_AUTOMATION: Final = {"android": "UiAutomator2", "ios": "XCUITest"}
_APPIUMS_IME: Final = "io.appium.settings/"


class Phone:
    """One device's Appium session. `driver` is there between `open` and `end`."""

    def __init__(
        self, config: DeviceConfig, *, request_s: float, idle_s: float, open_s: float = 240.0, allot_ports: bool = True
    ) -> None:
        self.config = config
        self._request_s, self._idle_s, self._open_s, self._allot_ports = request_s, idle_s, open_s, allot_ports
        self._driver: Remote | None = None
        self._connection: Connection | None = None
        self.handle: SessionHandle | None = None
        self.dialect: Dialect = config.platform
        self.lists_windows = True
        """Whether the driver tells the windows above an app; found out when it is asked, anew in each session: it may
        have been in trouble only."""

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
            self._connection.gate = gate

    def open(self, *, ports: int = 0) -> SessionHandle:
        """Create a session, set the driver's own waits low and see that it answers.

        Raises what the client raises, and Stillborn when there was a session that does not answer. `ports`: which of
        the device's sets of ports, see `ports`.
        """
        config = AppiumClientConfig(
            remote_server_addr=self.config.url,
            timeout=int(max(self._open_s, 1)),
            keep_alive=True,
            init_args_for_pool_manager={"init_args_for_pool_manager": {"retries": Retry(0)}},
        )
        connection = Connection(client_config=config)
        driver = Remote(connection, options=AppiumOptions().load_capabilities(self._capabilities(ports)))  # pyright: ignore[reportArgumentType]
        self._driver, self._connection = driver, connection
        config.timeout = max(self._request_s, 1)  # pyright: ignore[reportAttributeAccessIssue]  (as it is, urllib3 takes parts of a second)
        assert driver.session_id is not None
        made = SessionHandle(id=driver.session_id, url=self.config.url, platform=self.config.platform)
        try:
            self.dialect = self._dialect(driver)
            self.lists_windows = True
            self._prepare(driver)
            driver.get_window_rect()  # pyright: ignore  (a session that does not answer is none)
            self.handle = SessionHandle(
                id=driver.session_id,
                url=self.config.url,
                platform=self.config.platform,
                web=self.dialect == "web",
                scale=self._scale(driver),
                opened_at_ms=time.time_ns() // 1_000_000,
            )
        except (WebDriverException, HTTPError, OSError) as error:
            self._driver = self._connection = self.handle = None
            delete_session(made, timeout_s=5)
            raise Stillborn(made.id, error) from error
        return self.handle

    def _capabilities(self, ports: int) -> dict[str, Any]:
        defaults: dict[str, Any] = {
            "platformName": "Android" if self.config.platform == "android" else "iOS",
            "appium:automationName": _AUTOMATION[self.config.platform],
            "appium:newCommandTimeout": int(self._idle_s),
            "appium:noReset": True,
        }
        asked = {**defaults, **self.config.capabilities}
        return {**asked, **own_ports(self.config.alias, asked, turn=ports)} if self._allot_ports else asked

    def _dialect(self, driver: Remote) -> Dialect:
        """By what the session says that it is; a driver that says neither is taken for the configured platform."""
        told = cast("dict[str, Any]", driver.capabilities)  # pyright: ignore[reportUnknownMemberType]
        own_app = {"app", "appium:app"} & self.config.capabilities.keys()
        if told.get("browserName") and not own_app:
            return "web"
        named: dict[str, Dialect] = {"android": "android", "ios": "ios"}
        return named.get(str(told.get("platformName", "")).lower(), self.config.platform)

    def _prepare(self, driver: Remote) -> None:
        settings = _SETTINGS[self.dialect]
        if settings:
            self._try(lambda: driver.update_settings(settings))
        if self.dialect == "android":
            self._try(lambda: self._restore_keyboard(driver))

    def _restore_keyboard(self, driver: Remote) -> None:
        """Take Appium's own input method away where an earlier run left it: with it no keyboard comes up."""
        commands = driver.command_executor
        commands.add_command("apexActiveIme", "GET", "/session/$sessionId/ime/active_engine")  # pyright: ignore
        if not str(driver.execute("apexActiveIme")["value"]).startswith(_APPIUMS_IME):
            return
        commands.add_command("apexImes", "GET", "/session/$sessionId/ime/available_engines")  # pyright: ignore
        commands.add_command("apexUseIme", "POST", "/session/$sessionId/ime/activate")  # pyright: ignore
        known = cast("list[str]", driver.execute("apexImes")["value"])
        if usual := next((engine for engine in known if not engine.startswith(_APPIUMS_IME)), None):
            driver.execute("apexUseIme", {"engine": usual})

    def _scale(self, driver: Remote) -> float:
        """Pixels of the screenshot per unit of the session; 1 on Android."""
        if self.dialect == "web":
            return float(driver.execute_script("return window.devicePixelRatio") or 1)  # pyright: ignore
        if self.dialect == "ios":
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

    def script(self, text: str, **arguments: Any) -> Any:
        """Run a script, or a `mobile:` method."""
        return self.driver.execute_script(text, *((arguments,) if arguments else ()))  # pyright: ignore[reportUnknownMemberType]

    def units(self, point: Point) -> tuple[int, int]:
        """Pixels to the session's units."""
        return round(point.x / self.scale), round(point.y / self.scale)

    def bounds_of(self, element: WebElement) -> Bounds:
        """Where an element is, in pixels."""
        return self.pixels(cast("dict[str, float]", element.rect))  # pyright: ignore[reportUnknownMemberType]

    def pixels(self, rect: dict[str, float]) -> Bounds:
        """A rectangle of the session in pixels."""
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
            width, height = cast("list[float]", self.script("return [innerWidth, innerHeight]"))
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


def sessions_of(config: DeviceConfig, *, timeout_s: float) -> list[SessionHandle]:
    """The sessions that a server has for this device, by its `udid`; none where the server does not tell them: it
    does with `--allow-insecure "*:session_discovery"`."""
    udid = _capability(config.capabilities, "udid")
    if udid is None:
        return []
    try:
        answer = urllib3.request(
            "GET", f"{config.url.rstrip('/')}/appium/sessions", timeout=timeout_s, retries=False, redirect=False
        )
        told: Any = answer.json() if answer.status == 200 else {}
        found = cast("list[dict[str, Any]]", told["value"]) if isinstance(told, dict) and "value" in told else []
        return [
            SessionHandle(id=str(each["id"]), url=config.url, platform=config.platform)
            for each in found
            if _capability(each.get("capabilities") or {}, "udid") == udid
        ]
    except (HTTPError, ValueError, TypeError, KeyError, AttributeError):
        return []


def _capability(capabilities: dict[str, Any], name: str) -> Any:
    return capabilities.get(f"appium:{name}", capabilities.get(name))
