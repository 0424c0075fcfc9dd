"""What an error of an Appium call proves: that nothing was done, or only that it may have been.

One table for all acts, read from the top; three kinds of rows. *Not done* (`acted` False): the code reaches the model,
which decides anew on a fresh look; the request itself is tried again only where it never left (see `connection`).
*May have been done* (None): unknown, never repeated. With `session_dead` the session is made again before the next
look.
"""

from typing import Final, NamedTuple

from selenium.common import exceptions as selenium
from urllib3 import exceptions as urllib3

from apex_executor.connection import never_connected
from apex_executor.errors import ActCutShort
from apex_executor.outcomes import Failure

_UNKNOWN: Final = "UNKNOWN_OUTCOME"
_BROKE: Final = Failure(_UNKNOWN, None, True, "the phone's driver broke down during the act")


class _Row(NamedTuple):
    """An error of this type, with one of these words in its first line where there are any, means this."""

    type_: type[BaseException]
    words: tuple[str, ...]
    meaning: Failure


def _not_done(code: str, message: str, *, session_dead: bool = False) -> Failure:
    return Failure(code, False, session_dead, message)


TABLE: Final = (
    # A browser that ended, perhaps in the middle of the act.
    _Row(
        selenium.InvalidSessionIdException,
        ("session deleted",),
        Failure(_UNKNOWN, None, True, "the browser ended before or during the act"),
    ),
    _Row(
        selenium.InvalidSessionIdException,
        (),
        _not_done("SESSION_LOST", "the session with the phone was lost before the act; look again", session_dead=True),
    ),
    _Row(
        selenium.NoSuchWindowException,
        (),
        _not_done("SESSION_LOST", "the browser's window was closed before the act; look again", session_dead=True),
    ),
    _Row(
        selenium.StaleElementReferenceException, (), _not_done("STALE_SCENE", "the element is no longer on the screen")
    ),
    _Row(selenium.NoSuchElementException, (), _not_done("STALE_SCENE", "the element is not on the screen")),
    _Row(selenium.ElementClickInterceptedException, (), _not_done("OCCLUDED", "something lies over the element")),
    _Row(
        selenium.ElementNotInteractableException, (), _not_done("NOT_INTERACTABLE", "the element takes no input now")
    ),
    _Row(selenium.InvalidElementStateException, (), _not_done("NOT_INTERACTABLE", "the element takes no input now")),
    _Row(selenium.MoveTargetOutOfBoundsException, (), _not_done("OFF_SCREEN", "the point lies outside the screen")),
    _Row(selenium.InvalidArgumentException, (), _not_done("REFUSED_BY_DRIVER", "the driver refused the arguments")),
    _Row(
        selenium.UnknownMethodException,
        (),
        _not_done("NOT_SUPPORTED", "the driver of this device does not know this act"),
    ),
    # A browser runs the name of a command that it does not know as a script.
    _Row(
        selenium.JavascriptException, (), _not_done("NOT_SUPPORTED", "the driver of this device does not know this act")
    ),
    _Row(
        selenium.UnexpectedAlertPresentException,
        (),
        _not_done("DIALOG_CLOSED", "a dialog of the page was in the way and was closed"),
    ),
    _Row(
        selenium.WebDriverException,
        ("unsupported execute method",),
        _not_done("NOT_SUPPORTED", "the driver of this device does not know this act"),
    ),
    _Row(
        selenium.WebDriverException,
        ("shell input text",),
        _not_done("TEXT_REFUSED", "the phone's input takes no such letters; nothing was typed"),
    ),
    # The instrumentation's own words would prove that this request was not passed on; a method of several requests
    # may have passed on others before. And whatever broke while a request was under way proves nothing.
    _Row(
        selenium.WebDriverException,
        (
            "instrumentation process is not running", "socket hang up", "could not proxy", "cannot be proxied",
            "econnreset", "econnrefused", "uiautomation not connected", "device offline", "adb: device",
            "webdriveragent", "chrome not reachable", "disconnected", "tab crashed",
        ),
        _BROKE,
    ),
)  # fmt: skip


def classify(error: BaseException) -> Failure:
    """What an error of a call to Appium means for the act that it was part of."""
    if isinstance(error, ActCutShort):
        return _cut_short(classify(error.cause))
    text = _first_line(error)
    lowered = text.lower()
    for row in TABLE:
        if isinstance(error, row.type_) and (not row.words or any(word in lowered for word in row.words)):
            return row.meaning
    if never_connected(error):
        return _not_done("DEVICE_UNREACHABLE", "the phone's Appium server could not be reached", session_dead=True)
    if isinstance(error, urllib3.TimeoutError | urllib3.HTTPError | TimeoutError | OSError):
        return Failure(_UNKNOWN, None, True, "no answer came from the phone; it may have been done")
    return Failure(_UNKNOWN, None, False, f"the driver reported an error: {text}")


def _cut_short(rest: Failure) -> Failure:
    """A part was done. Where the driver answered that it did not do the rest, the act has failed; else who knows."""
    if rest.acted is False and not rest.session_dead:
        return rest._replace(message=f"only a part was done: {rest.message}")
    return rest._replace(code=_UNKNOWN, acted=None, message=f"a part was done, then: {rest.message}")


def _first_line(error: BaseException) -> str:
    text = (error.msg or "") if isinstance(error, selenium.WebDriverException) else str(error)
    return text.strip().splitlines()[0][:200] if text.strip() else type(error).__name__
