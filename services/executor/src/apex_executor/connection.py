"""The wire to Appium: a client's connection with a gate before each request.

Consumes commands of the client; emits requests that are each sent once, follow no redirect, end at the act's deadline
and are answered by an Appium server or are an error. Only a request that provably never left, since nobody accepted
its connection, is tried again, with growing delay and through the gate.
"""

import json
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from appium.webdriver.appium_connection import AppiumConnection
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.remote.command import Command
from urllib3 import exceptions as urllib3

Gate = Callable[[bool], float]
"""Seconds that the request which is about to be sent may take; raises when it must not be sent. Is told whether it
touches the phone."""

_READS: Final = frozenset((
    Command.FIND_ELEMENT, Command.FIND_ELEMENTS, Command.W3C_GET_ACTIVE_ELEMENT, Command.GET_WINDOW_RECT,
    Command.GET_ELEMENT_RECT, Command.GET_ELEMENT_TEXT, Command.GET_ELEMENT_ATTRIBUTE, Command.GET_ELEMENT_PROPERTY,
    Command.GET_ELEMENT_TAG_NAME,
))  # fmt: skip
_READING_SCRIPTS: Final = (
    "return ", "mobile: isAppInstalled", "mobile: queryAppState", "mobile: deviceScreenInfo", "mobile: listApps",
    "mobile: listWindows",
)  # fmt: skip
_AGAIN_S: Final = (0.2, 0.5, 1.0, 2.0)
_LEAST_S: Final = 0.5


class Connection(AppiumConnection):
    """The client takes a proxy's error page for success: what does not speak the protocol is an error here."""

    gate: Gate | None = None

    def execute(self, command: str, params: Any) -> Any:
        for delay in _AGAIN_S if self.gate else ():
            try:
                return self._once(command, params)
            except (urllib3.HTTPError, OSError) as error:
                if not never_connected(error):
                    raise
                time.sleep(delay)
        return self._once(command, params)

    def _once(self, command: str, params: Any) -> Any:
        config = self.client_config
        usual = cast("float", config.timeout)  # pyright: ignore[reportUnknownMemberType]
        if self.gate is not None:
            config.timeout = max(_LEAST_S, min(usual, self.gate(touches(command, params))))  # pyright: ignore[reportAttributeAccessIssue]
        try:
            answer = cast("dict[str, Any]", super().execute(command, dict(params)))  # pyright: ignore
        finally:
            config.timeout = usual
        if not is_appium(answer):
            status = answer.get("status") or 200
            raise WebDriverException(f"HTTP {status} with something that is no answer of an Appium server")
        return answer


def touches(command: str, params: Mapping[str, Any]) -> bool:
    """Whether a request may change anything on the phone. What is not known to be a look-up does."""
    if command == Command.W3C_EXECUTE_SCRIPT:
        return not str(params["script"]).startswith(_READING_SCRIPTS)
    return command not in _READS


def is_appium(answer: Mapping[str, Any]) -> bool:
    """The client adds `status` where the answer was an error or could not be read."""
    if "status" not in answer or "sessionId" in answer:
        return True
    try:
        return bool(json.loads(answer["value"])["value"]["error"])
    except (TypeError, ValueError, KeyError):
        return False


def never_connected(error: BaseException) -> bool:
    """Whether the request provably never left: its connection was refused."""
    if isinstance(error, urllib3.MaxRetryError):
        error = error.reason or error
    return isinstance(error, urllib3.NewConnectionError | urllib3.ConnectTimeoutError | socket.gaierror)
