"""What can go wrong at the phone, as the client sees it.

WireError                a W3C error body, worded as Appium and its UiAutomator2 driver word it
├── InvalidSession       404 the session ended, was replaced, timed out, or never was
├── SessionNotCreated    500 no phone fits the capabilities
├── NoSuchElement        404 nothing matches, or the element's id is not known to this session
├── StaleElement         404 the element was found once and its view is gone
├── InvalidSelector      400 the selector cannot be read
├── InvalidArgument      400 a parameter is missing or malformed
├── InvalidElementState  400 the element cannot take what is asked, such as text
├── UnknownCommand       404 no such route
├── UnsupportedOperation 500 no such ``mobile:`` method on this platform
├── UnknownError         500 everything else the real server says no to
│   └── DriverDied       500 the part of the driver that runs on the phone is gone
└── NotAPhone            404 the /lab routes: no phone of that name
RecordingError           the folder of a recorded phone cannot be used; not a wire error
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

DriverDeath = Literal["instrumentation", "socket_hang_up"]


class WireError(Exception):
    """An answer in W3C form: HTTP `status`, `code` (the W3C error), `message`."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "unknown error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def body(self) -> dict[str, object]:
        return {
            "value": {"error": self.code, "message": self.message, "stacktrace": f"{type(self).__name__}: simulated"}
        }


class InvalidSession(WireError):
    status = 404
    code = "invalid session id"

    def __init__(self, session: str) -> None:
        super().__init__("A session is either terminated or not started")
        self.session = session


class SessionNotCreated(WireError):
    code = "session not created"

    def __init__(self, why: str) -> None:
        super().__init__(f"A new session could not be created. Details: {why}")


class NoSuchElement(WireError):
    status = 404
    code = "no such element"

    def __init__(
        self, message: str = "An element could not be located on the page using the given search parameters."
    ) -> None:
        super().__init__(message)


class StaleElement(WireError):
    status = 404
    code = "stale element reference"

    def __init__(self, what: str) -> None:
        super().__init__(f"The element '{what}' does not exist in DOM anymore")


class InvalidSelector(WireError):
    status = 400
    code = "invalid selector"


class InvalidArgument(WireError):
    status = 400
    code = "invalid argument"


class InvalidElementState(WireError):
    status = 400
    code = "invalid element state"


class UnknownCommand(WireError):
    status = 404
    code = "unknown command"

    def __init__(self, what: str) -> None:
        super().__init__(
            "The requested resource could not be found, or a request was received using an HTTP method "
            f"that is not supported by the mapped resource. ({what})"
        )


class UnsupportedOperation(WireError):
    code = "unsupported operation"

    def __init__(self, method: str, known: Iterable[str]) -> None:
        super().__init__(
            f"Unsupported execute method 'mobile: {method}'. Available methods are: "
            + ", ".join(f"mobile: {name}" for name in sorted(known))
        )


class UnknownError(WireError):
    def __init__(self, why: str) -> None:
        super().__init__(f"An unknown server-side error occurred while processing the command. Original error: {why}")


class DriverDied(UnknownError):
    """`how` it shows at the server."""

    def __init__(self, how: DriverDeath, command: str) -> None:
        match how:
            case "instrumentation":
                why = (
                    f"'POST /{command}' cannot be proxied to UiAutomator2 server because the instrumentation process "
                    "is not running (probably crashed)"
                )
            case "socket_hang_up":
                why = f"Could not proxy command '/{command}' to the remote server. Original error: socket hang up"
        super().__init__(why)


class NotAPhone(WireError):
    status = 404
    code = "no such phone"

    def __init__(self, udid: str, known: list[str]) -> None:
        super().__init__(f"no phone {udid!r} here; the phones are {', '.join(known)}")


class RecordingError(Exception):
    """The folder holds nothing that a recorded phone could show."""

    def __init__(self, folder: str, why: str) -> None:
        super().__init__(f"recorded phone from {folder}: {why}; give a folder with page sources (*.xml)")
        self.folder = folder
