"""What an error of an Appium call proves: that nothing was done, or only that it may have been.

One table for all acts. Only what provably did not reach the phone is reported as failed; everything else is unknown.
"""

import socket

from selenium.common import exceptions as selenium
from urllib3 import exceptions as urllib3

from apex_executor.errors import ActCutShort
from apex_executor.outcomes import Failure

_NOT_DONE: tuple[tuple[type[BaseException], str, str], ...] = (
    (selenium.StaleElementReferenceException, "STALE_SCENE", "the element is no longer on the screen"),
    (selenium.NoSuchElementException, "STALE_SCENE", "the element is not on the screen"),
    (selenium.ElementNotInteractableException, "NOT_INTERACTABLE", "the element takes no input now"),
    (selenium.InvalidElementStateException, "NOT_INTERACTABLE", "the element takes no input now"),
    (selenium.MoveTargetOutOfBoundsException, "OFF_SCREEN", "the point lies outside the screen"),
    (selenium.InvalidArgumentException, "REFUSED_BY_DRIVER", "the driver refused the arguments"),
    (selenium.UnknownMethodException, "NOT_SUPPORTED", "the driver of this device does not know this act"),
    # A browser runs the name of a command that it does not know as a script.
    (selenium.JavascriptException, "NOT_SUPPORTED", "the driver of this device does not know this act"),
    (selenium.UnexpectedAlertPresentException, "DIALOG_CLOSED", "a dialog of the page was in the way and was closed"),
)


def classify(error: BaseException) -> Failure:
    """What an error of a call to Appium means for the act that it was part of."""
    if isinstance(error, ActCutShort):
        return _cut_short(classify(error.cause))
    text = _first_line(error)
    if isinstance(error, selenium.InvalidSessionIdException):
        if "session deleted" in text.lower():  # a browser that ended, perhaps in the middle of the act
            return Failure("UNKNOWN_OUTCOME", None, True, "the browser ended before or during the act")
        return Failure("SESSION_LOST", False, True, "the session with the phone was lost before the act; look again")
    for type_, code, message in _NOT_DONE:
        if isinstance(error, type_):
            return Failure(code, False, False, message)
    if _never_connected(error):
        return Failure("DEVICE_UNREACHABLE", False, True, "the phone's Appium server could not be reached")
    lowered = text.lower()
    if "instrumentation process is not running" in lowered or "socket hang up" in lowered:
        return Failure("UNKNOWN_OUTCOME", None, True, "the phone's driver broke down during the act")
    if isinstance(error, urllib3.TimeoutError | urllib3.HTTPError | TimeoutError | OSError):
        return Failure("UNKNOWN_OUTCOME", None, True, "no answer came from the phone; it may have been done")
    return Failure("UNKNOWN_OUTCOME", None, False, f"the driver reported an error: {text}")


def _cut_short(rest: Failure) -> Failure:
    """A part was done. Where the driver answered that it did not do the rest, the act has failed; else who knows."""
    if rest.acted is False and not rest.session_dead:
        return rest._replace(message=f"only a part was done: {rest.message}")
    return rest._replace(code="UNKNOWN_OUTCOME", acted=None, message=f"a part was done, then: {rest.message}")


def _never_connected(error: BaseException) -> bool:
    """Whether the request provably never left: its connection was refused."""
    if isinstance(error, urllib3.MaxRetryError):
        error = error.reason or error
    return isinstance(error, urllib3.NewConnectionError | urllib3.ConnectTimeoutError | socket.gaierror)


def _first_line(error: BaseException) -> str:
    text = (error.msg or "") if isinstance(error, selenium.WebDriverException) else str(error)
    return text.strip().splitlines()[0][:200] if text.strip() else type(error).__name__
