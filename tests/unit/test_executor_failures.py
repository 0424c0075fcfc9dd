"""What an error of an Appium call proves. Errors of the network as really raised, with the requests that arrived."""

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from selenium.common import exceptions as selenium
from urllib3 import exceptions as urllib3

from apex_executor.acts import perform
from apex_executor.errors import ActCutShort, ActRefused
from apex_executor.failures import classify
from apex_executor.outcomes import Failure
from apex_executor.phone import Phone, delete_session
from apex_executor.settings import DeviceConfig
from apex_schemas.actions import Tap
from apex_schemas.devices import SessionHandle
from apex_schemas.geometry import Point

Behaviour = Callable[[BaseHTTPRequestHandler], None]


class LyingServer(ThreadingHTTPServer):
    """An Appium server that opens sessions, and answers whatever else is posted with one `behaviour`."""

    daemon_threads = True

    def __init__(self, behaviour: Behaviour, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.behaviour = behaviour
        self.arrived: list[str] = []
        self.ended = threading.Event()
        self._connections: list[socket.socket] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.append(request)
        super().process_request(request, client_address)

    def end(self) -> None:
        """Listen no more, and close what was kept open."""
        self.ended.set()
        self.shutdown()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LyingServer

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/session":
            answer(200, {"sessionId": "s", "capabilities": {}})(self)
        elif self.path.endswith(("/appium/settings", "/ime/active_engine")):
            answer(200, None)(self)
        elif self.path.endswith("/window/rect"):
            answer(200, {"x": 0, "y": 0, "width": 400, "height": 800})(self)
        else:
            self.server.arrived.append(f"{self.command} {self.path}")
            self.server.behaviour(self)

    do_GET = do_DELETE = do_POST  # noqa: N815 (the base class names them so)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class names it so)
        """Requests are no output of a test run."""


def answer(status: int, value: Any, **headers: str) -> Behaviour:
    """A JSON answer in W3C form, or, for text, a page that somebody else wrote."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        body = value.encode() if isinstance(value, str) else json.dumps({"value": value}).encode()
        handler.send_response(status)
        for name, text in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), text)
        handler.end_headers()
        handler.wfile.write(body)

    return send


def error(status: int, code: str, message: str = "m") -> Behaviour:
    return answer(status, {"error": code, "message": message, "stacktrace": ""})


def close(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def reset(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def cut(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"value":')
    handler.wfile.flush()
    close(handler)


def hang(handler: BaseHTTPRequestHandler) -> None:
    handler.server.ended.wait(20)  # pyright: ignore
    handler.close_connection = True


@contextlib.contextmanager
def lying_server(behaviour: Behaviour) -> Iterator[LyingServer]:
    with LyingServer(behaviour) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.end()
            thread.join()


def opened(server: LyingServer) -> Phone:
    phone = Phone(DeviceConfig(alias="a", url=server.url), request_s=1, idle_s=60)
    phone.open()
    return phone


def tapped(phone: Phone) -> Failure:
    with pytest.raises(Exception) as caught:  # noqa: PT011 (whatever it is, it is classified)
        perform(phone, Tap(at=Point(x=1, y=2)), None, verify=True)
    return classify(caught.value)


UNKNOWN = "UNKNOWN_OUTCOME"
AS_IT_CAME = {
    "closed": (close, (UNKNOWN, None, True)),
    "reset": (reset, (UNKNOWN, None, True)),
    "cut": (cut, (UNKNOWN, None, True)),
    "hung": (hang, (UNKNOWN, None, True)),
    "301": (answer(301, "moved", Location="/elsewhere"), (UNKNOWN, None, True)),
    "303": (answer(303, "see other", Location="/elsewhere"), (UNKNOWN, None, True)),
    "307": (answer(307, "moved", Location="/elsewhere"), (UNKNOWN, None, True)),
    "308": (answer(308, "moved", Location="/elsewhere"), (UNKNOWN, None, True)),
    "307-nowhere": (answer(307, "moved"), (UNKNOWN, None, False)),
    "page-200": (answer(200, "<html>Sign in to this network</html>"), (UNKNOWN, None, False)),
    "page-401": (answer(401, "who are you"), (UNKNOWN, None, False)),
    "page-404": (answer(404, "<html>nothing here</html>"), (UNKNOWN, None, False)),
    "page-502": (answer(502, "<html>Bad gateway</html>"), (UNKNOWN, None, False)),
    "json-502": (answer(502, '{"message": "no upstream"}'), (UNKNOWN, None, False)),
    "503-later": (answer(503, "busy", Retry_After="0"), (UNKNOWN, None, False)),
    "empty-500": (answer(500, ""), (UNKNOWN, None, False)),
    "unknown": (error(500, "unknown error", "Could not inject"), (UNKNOWN, None, False)),
    "timeout": (error(500, "timeout"), (UNKNOWN, None, False)),
    "crashed": (
        error(500, "unknown error", "the instrumentation process is not running (probably crashed)"),
        (UNKNOWN, None, True),
    ),
    "hang-up": (error(500, "unknown error", "Could not proxy command. socket hang up"), (UNKNOWN, None, True)),
    "browser-ended": (
        error(404, "invalid session id", "invalid session id: session deleted as the browser has closed"),
        (UNKNOWN, None, True),
    ),
    "session": (error(404, "invalid session id", "either terminated or not started"), ("SESSION_LOST", False, True)),
    "no-element": (error(404, "no such element"), ("STALE_SCENE", False, False)),
    "stale": (error(404, "stale element reference"), ("STALE_SCENE", False, False)),
    "not-interactable": (error(400, "element not interactable"), ("NOT_INTERACTABLE", False, False)),
    "state": (error(400, "invalid element state"), ("NOT_INTERACTABLE", False, False)),
    "bounds": (error(500, "move target out of bounds"), ("OFF_SCREEN", False, False)),
    "argument": (error(400, "invalid argument"), ("REFUSED_BY_DRIVER", False, False)),
    "command": (error(404, "unknown command"), ("NOT_SUPPORTED", False, False)),
    "method": (error(405, "unknown method"), ("NOT_SUPPORTED", False, False)),
    "closed-window": (error(404, "no such window"), ("SESSION_LOST", False, True)),
    "under": (error(400, "element click intercepted"), ("OCCLUDED", False, False)),
    "mobile": (error(500, "unknown error", "Unsupported execute method 'mobile: x'"), ("NOT_SUPPORTED", False, False)),
    "letters": (
        error(500, "unknown error", "Error executing adbExec. Command 'adb shell input text' exited with code 255"),
        ("TEXT_REFUSED", False, False),
    ),
    "offline": (error(500, "unknown error", "adb: device offline"), (UNKNOWN, None, True)),
    "script": (error(500, "javascript error"), ("NOT_SUPPORTED", False, False)),
    "dialog": (error(500, "unexpected alert open"), ("DIALOG_CLOSED", False, False)),
}


@pytest.mark.parametrize(("behaviour", "meaning"), AS_IT_CAME.values(), ids=AS_IT_CAME)
def test_act_is_sent_once_and_its_end_told_for_what_it_proves(
    behaviour: Behaviour, meaning: tuple[str, bool | None, bool]
) -> None:
    with lying_server(behaviour) as server:
        failure = tapped(opened(server))
        assert failure[:3] == meaning
        assert server.arrived == ["POST /session/s/actions"]
        assert "<html>" not in failure.message


def test_request_that_found_nobody_is_tried_again_within_the_acts_time_and_sent_once() -> None:
    with lying_server(answer(200, None)) as server:
        phone = opened(server)
    port, began = server.server_port, time.monotonic()
    phone.guard(lambda _: 20.0 - (time.monotonic() - began))
    late = threading.Timer(0.4, lambda: returned.append(LyingServer(answer(200, None), port)))
    returned: list[LyingServer] = []
    late.start()

    def serve_when_there() -> None:
        late.join()
        returned[0].serve_forever(poll_interval=0.02)

    thread = threading.Thread(target=serve_when_there, daemon=True)
    thread.start()
    try:
        assert perform(phone, Tap(at=Point(x=1, y=2)), None, verify=True).success
    finally:
        late.join()
        returned[0].end()
        returned[0].server_close()
        thread.join()
    assert returned[0].arrived == ["POST /session/s/actions"]


def test_act_is_known_not_done_where_nobody_listens() -> None:
    with lying_server(answer(200, None)) as server:
        phone = opened(server)
    assert tapped(phone)[:3] == ("DEVICE_UNREACHABLE", False, True)
    assert server.arrived == []


@pytest.mark.parametrize(
    "reason",
    [
        urllib3.ConnectTimeoutError("slow"),
        urllib3.NameResolutionError("host", None, socket.gaierror("no such host")),  # pyright: ignore
        urllib3.NewConnectionError(None, "refused"),  # pyright: ignore
    ],
    ids=["connect-timeout", "name", "refused"],
)
def test_request_that_never_left_proves_that_nothing_was_done(reason: Exception) -> None:
    for given in (reason, urllib3.MaxRetryError(None, "/", reason)):  # pyright: ignore
        assert classify(given)[:3] == ("DEVICE_UNREACHABLE", False, True)


@pytest.mark.parametrize(
    "reason",
    [
        urllib3.ReadTimeoutError(None, "/", "m"),  # pyright: ignore
        urllib3.ProtocolError("m"),
        TimeoutError(),
        ConnectionResetError(),
    ],
    ids=lambda reason: type(reason).__name__,
)
def test_request_that_may_have_arrived_proves_nothing(reason: Exception) -> None:
    assert classify(reason)[:3] == (UNKNOWN, None, True)


@pytest.mark.parametrize(
    ("cause", "meaning"),
    [
        (selenium.InvalidElementStateException("m"), ("NOT_INTERACTABLE", False, False)),
        (selenium.StaleElementReferenceException("m"), ("STALE_SCENE", False, False)),
        (selenium.InvalidSessionIdException("m"), (UNKNOWN, None, True)),
        (urllib3.NewConnectionError(None, "refused"), (UNKNOWN, None, True)),  # pyright: ignore
        (selenium.WebDriverException("m"), (UNKNOWN, None, False)),
        (ActRefused("NOT_BEGUN", "m"), (UNKNOWN, None, False)),
        (KeyError("a bug"), (UNKNOWN, None, False)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_comes_after_the_first_touch_never_proves_that_nothing_was_done(
    cause: Exception, meaning: tuple[str, bool | None, bool]
) -> None:
    failure = classify(ActCutShort(cause))
    assert failure[:3] == meaning
    assert failure.message.partition(":")[0] in ("only a part was done", "a part was done, then")


def test_long_and_many_lined_messages_are_cut_to_a_line() -> None:
    failure = classify(selenium.WebDriverException("x" * 900 + "\nSecret second line"))
    assert len(failure.message) < 250
    assert "Secret" not in failure.message
    assert classify(selenium.WebDriverException("")).message.endswith("WebDriverException")


@pytest.mark.parametrize(
    ("behaviour", "gone"),
    [
        (answer(200, None), True),
        (error(404, "invalid session id"), True),
        (answer(404, "<html>nothing here</html>"), False),
        (error(500, "unknown error"), False),
        (answer(307, "moved", Location="/elsewhere"), False),
        (close, False),
        (hang, False),
    ],
    ids=["deleted", "gone-already", "page", "error", "redirect", "closed", "hung"],
)
def test_session_counts_as_gone_only_when_the_server_says_so(behaviour: Behaviour, gone: bool) -> None:
    with lying_server(behaviour) as server:
        seconds = 0.5 if behaviour is hang else 20
        assert delete_session(SessionHandle(id="s", url=server.url + "/"), timeout_s=seconds) is gone
        assert server.arrived == ["DELETE /session/s"]
