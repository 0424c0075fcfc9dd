"""The Appium edge of perception: attaches to the session that the executor made, and reads.

Blocking; used from a thread, one call at a time for each session. Every request has a time limit, none is repeated by
the client. Errors come out as PhoneError's kinds, without the screen's content.
"""

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, Final, Protocol, TypeVar, cast

from appium.options.common import AppiumOptions
from appium.webdriver import Remote
from appium.webdriver.appium_connection import AppiumConnection
from appium.webdriver.client_config import AppiumClientConfig
from selenium.common import exceptions as selenium
from urllib3.exceptions import HTTPError
from urllib3.util.retry import Retry

from apex_perception.errors import PhoneUnavailable, SessionDead, SourceUnavailable
from apex_perception.screen import Rotation
from apex_schemas.devices import SessionHandle
from apex_schemas.geometry import Size

_Answer = TypeVar("_Answer")
_DEAD: Final = ("instrumentation process is not running", "socket hang up", "session is either terminated", "crashed")
_WAKE_UP: Final = 224
_NATIVE_CONTEXT: Final = "NATIVE_APP"
_WEB_CONTEXT: Final = "WEBVIEW"
_MOST_CONTEXTS: Final = 2
_DEEP: Final = 200
"""Levels; XCUITest stops at 50 by default, UiAutomator2 at 70."""


class Phone(Protocol):
    """What perception asks of a phone. Raises SessionDead, SourceUnavailable or PhoneUnavailable."""

    def source(self) -> bytes: ...
    def screenshot(self) -> bytes: ...
    def window(self) -> Size: ...
    def rotation(self) -> Rotation | None: ...
    def wake(self) -> None: ...
    def page(self, app: str | None) -> bytes | None: ...
    def look_deeper(self) -> bool: ...
    def close(self) -> None: ...


class _Connection(AppiumConnection):
    """The client takes a proxy's error page for an answer: it would become a screen that nobody showed."""

    def execute(self, command: str, params: Any) -> Any:
        answer = cast("dict[str, Any]", super().execute(command, params))  # pyright: ignore[reportUnknownMemberType]
        if not _is_appium(answer):
            raise selenium.WebDriverException(
                f"HTTP {answer.get('status') or 200} with something that is no answer of an Appium server"
            )
        return answer


def _is_appium(answer: dict[str, Any]) -> bool:
    """The client adds `status` where the answer was an error or could not be read."""
    if "status" not in answer or "sessionId" in answer:
        return True
    try:
        return bool(json.loads(answer["value"])["value"]["error"])
    except (TypeError, ValueError, KeyError):
        return False


class _Attached(Remote):
    """A driver on a session that is there already: nothing is asked of the server to begin with."""

    def __init__(self, handle: SessionHandle, connection: AppiumConnection) -> None:
        self._handle = handle
        super().__init__(connection, options=AppiumOptions())

    def start_session(self, capabilities: Any, browser_profile: Any = None) -> None:
        self.session_id = self._handle.id
        self.caps = {"platformName": self._handle.platform}


class AppiumPhone:
    """Reads of one session."""

    def __init__(self, handle: SessionHandle, *, timeout_s: float) -> None:
        config = AppiumClientConfig(
            remote_server_addr=handle.url,
            timeout=max(1, round(timeout_s)),
            keep_alive=True,
            init_args_for_pool_manager={"init_args_for_pool_manager": {"retries": Retry(0)}},
        )
        self._handle = handle
        self._contexts = self._shallow = not handle.web
        self._connection = _Connection(client_config=config)
        self._driver = _Attached(handle, self._connection)

    def source(self) -> bytes:
        """The page source; of a browser what the page's own script finds."""

        def read() -> str:
            if self._handle.web:
                return cast(str, self._driver.execute_script(_page_script()))  # pyright: ignore[reportUnknownMemberType]
            return self._driver.page_source

        text = self._ask("page source", read)
        # Some drivers hand out what UTF-8 cannot hold; perceive() strips it.
        return text.encode("utf-8", "surrogatepass")

    def screenshot(self) -> bytes:
        return self._ask("screenshot", self._driver.get_screenshot_as_png)

    def window(self) -> Size:
        """In units of the page source; zero where the driver does not know."""

        def read() -> Size:
            rect = cast("dict[str, float]", self._driver.get_window_size())  # pyright: ignore[reportUnknownMemberType]
            return Size(width=max(0, round(rect["width"])), height=max(0, round(rect["height"])))

        return self._ask("window size", read)

    def rotation(self) -> Rotation | None:
        """None where the driver does not say."""
        try:
            orientation = self._ask("orientation", lambda: self._driver.orientation)
        except SourceUnavailable:
            return None
        return 90 if orientation.upper() == "LANDSCAPE" else 0

    def wake(self) -> None:
        """Light up a dark screen; a driver that cannot is left alone."""
        try:
            self._ask("wake up", lambda: self._driver.press_keycode(_WAKE_UP))
        except SourceUnavailable:
            return

    def page(self, app: str | None) -> bytes | None:
        """What the page inside an app says of itself; None where the session has no web context that answers.

        The session is back in its native context afterwards; where it cannot be brought back it counts as dead.
        """
        if not self._contexts:
            return None
        try:
            contexts = self._ask("contexts", lambda: self._driver.contexts)
        except SourceUnavailable:
            self._contexts = False  # a driver without contexts: asked once
            return None
        pages = [name for name in contexts if name.startswith(_WEB_CONTEXT)]
        pages.sort(key=lambda name: name != f"{_WEB_CONTEXT}_{app}")
        for name in pages[:_MOST_CONTEXTS]:
            found = self._page_in(name)
            if found is not None:
                return found
        self._contexts = not pages  # what no context answered now, as without a ChromeDriver, none will
        return None

    def _page_in(self, context: str) -> bytes | None:
        def look() -> str:
            switch(context)
            return cast(str, self._driver.execute_script(_page_script()))  # pyright: ignore[reportUnknownMemberType]

        switch = self._driver.switch_to.context
        try:
            text = self._ask("page", look)
        except SourceUnavailable:
            return None
        finally:
            try:
                self._ask("native context", lambda: switch(_NATIVE_CONTEXT))
            except SourceUnavailable as error:
                raise SessionDead("native context", error.reason) from error
        return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]

    def look_deeper(self) -> bool:
        """Raise the depth at which drivers cut page sources, once a session; whether it was raised now."""
        if not self._shallow:
            return False
        self._shallow = False
        try:
            self._ask("depth", lambda: self._driver.update_settings({"snapshotMaxDepth": _DEEP}))
        except SourceUnavailable:
            return False
        return True

    def close(self) -> None:
        """Close the connections; the session stays, it is the executor's."""
        self._connection.close()

    def _ask(self, what: str, call: Callable[[], _Answer]) -> _Answer:
        try:
            return call()
        except selenium.InvalidSessionIdException as error:
            raise SessionDead(what, "invalid session id") from error
        except selenium.WebDriverException as error:
            reason = _first_line(error)
            if any(sign in reason.lower() for sign in _DEAD):
                raise SessionDead(what, reason) from error
            raise SourceUnavailable(what, reason) from error
        except (HTTPError, OSError) as error:
            raise PhoneUnavailable(what, f"{self._handle.url} did not answer ({type(error).__name__})") from error


def attach(handle: SessionHandle, timeout_s: float) -> Phone:
    return AppiumPhone(handle, timeout_s=timeout_s)


@cache
def _page_script() -> str:
    return files("apex_perception").joinpath("page.js").read_text(encoding="utf-8")


def _first_line(error: selenium.WebDriverException) -> str:
    lines = (error.msg or type(error).__name__).strip().splitlines()
    return lines[0][:160] if lines else type(error).__name__
