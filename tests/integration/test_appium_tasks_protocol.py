"""The simulated phone answers as a real Appium server does: the same requests to both, the same shapes, with errors,
so that it cannot drift into kindness. Its element rectangles and apps are its own (the fake driver has none).
"""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import components
import pytest
import pytest_asyncio
from appium.webdriver.errorhandler import MobileErrorHandler
from integration.appium_server import AppiumServer, fake_app, fake_capabilities
from selenium.common.exceptions import WebDriverException

from apex_lab.phone import Phone, serve

pytest_plugins = ("integration.appium_server",)
pytestmark = [pytest.mark.appium, pytest.mark.slow]

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
TAP = {
    "actions": [
        {
            "type": "pointer", "id": "finger", "parameters": {"pointerType": "touch"},
            "actions": [
                {"type": "pointerMove", "duration": 0, "x": 5, "y": 5, "origin": "viewport"},
                {"type": "pointerDown", "button": 0}, {"type": "pause", "duration": 50},
                {"type": "pointerUp", "button": 0},
            ],
        }
    ]
}  # fmt: skip


class Answer(NamedTuple):
    """What a client sees: the status, the shape of the value, the error and the client's name for it."""

    status: int
    shape: object
    error: str | None
    raised: str | None


def shape(value: Any) -> object:
    """Types in place of values; the names of an object's fields stay."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


class Server:
    def __init__(self, http: aiohttp.ClientSession, url: str, capabilities: dict[str, Any]) -> None:
        self.http, self.url, self.capabilities, self.session = http, url, capabilities, ""

    async def open(self) -> None:
        async with self.http.post(f"{self.url}/session", json=asked(self.capabilities)) as reply:
            value = (await reply.json())["value"]
            assert reply.status == 200, value
            self.session = value["sessionId"]

    async def send(self, verb: str, path: str, body: object = None) -> Answer:
        """`{session}` in the path is the open session."""
        data = None if body is None else body if isinstance(body, str) else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        url = self.url + path.replace("{session}", self.session)
        async with self.http.request(verb, url, data=data, headers=headers) as reply:
            text = await reply.text()
        value = json.loads(text)["value"]
        failed = isinstance(value, dict) and "error" in value
        try:
            MobileErrorHandler().check_response({"status": reply.status, "value": text} if failed else {"value": value})
            raised = None
        except WebDriverException as error:
            raised = type(error).__name__
        return Answer(reply.status, shape(value), value["error"] if failed else None, raised)


def asked(capabilities: dict[str, Any]) -> dict[str, Any]:
    return {"capabilities": {"alwaysMatch": capabilities, "firstMatch": [{}]}}


@pytest_asyncio.fixture
async def both(appium_server: AppiumServer, tmp_path: Path) -> AsyncGenerator[tuple[Server, Server]]:
    """The simulated phone's server and the real one, a session open on each."""
    app = fake_app(components.dumps() / "001_settings-top-en.xml", tmp_path, width=1080, height=2400)
    caps = {"platformName": "Android", "appium:automationName": "UiAutomator2", "appium:udid": "sim-1"}
    async with serve([Phone("sim-1")], port=0) as url, aiohttp.ClientSession() as http:
        servers = Server(http, url, caps), Server(http, appium_server.url, fake_capabilities(app))
        for server in servers:
            await server.open()
        yield servers
        for server in servers:
            await server.send("DELETE", "/session/{session}")


SAME: dict[str, tuple[str, str, object]] = {
    "no-such-session": ("GET", "/session/0f0e/window/rect", None),
    "act-in-no-session": ("POST", "/session/0f0e/actions", TAP),
    "end-no-session": ("DELETE", "/session/0f0e", None),
    "no-such-route": ("POST", "/session/{session}/no/such/route", {}),
    "window": ("GET", "/session/{session}/window/rect", None),
    "source": ("GET", "/session/{session}/source", None),
    "picture": ("GET", "/session/{session}/screenshot", None),
    "tap": ("POST", "/session/{session}/actions", TAP),
    "actions-missing": ("POST", "/session/{session}/actions", {}),
    "settings": ("POST", "/session/{session}/appium/settings", {"settings": {"waitForIdleTimeout": 100}}),
    "settings-missing": ("POST", "/session/{session}/appium/settings", {}),
    "one-absent": ("POST", "/session/{session}/element", {"using": "xpath", "value": "//absent"}),
    "many-absent": ("POST", "/session/{session}/elements", {"using": "xpath", "value": "//absent"}),
    "find-nothing-said": ("POST", "/session/{session}/element", {}),
    "timeouts": ("POST", "/session/{session}/timeouts", {"implicit": 0}),
    "unknown-mobile": ("POST", "/session/{session}/execute/sync", {"script": "mobile: noSuchThing", "args": []}),
    "body-is-no-json": ("POST", "/session/{session}/element", "{"),
    "orientation": ("GET", "/session/{session}/orientation", None),
}


DIFFERENT: dict[str, tuple[tuple[str, str, object], str, str]] = {
    # The fake driver has no list of strategies; UiAutomator2 has, and refuses by it as the simulated phone does.
    "unknown-strategy": (
        ("POST", "/session/{session}/element", {"using": "by magic", "value": "x"}),
        "invalid selector",
        "unknown command",
    ),
    # The server looks for a driver first; the simulated phone is all drivers, and looks for the phone.
    "session-not-made": (
        ("POST", "/session", asked({"platformName": "Nothing", "appium:automationName": "Nothing"})),
        "session not created",
        "unknown error",
    ),
    "session-nothing-said": (("POST", "/session", {}), "invalid argument", "session not created"),
    "no-such-method-of-route": (("PATCH", "/session/{session}/source", None), "unknown method", "unknown command"),
    "script-missing": (
        ("POST", "/session/{session}/execute/sync", {"args": []}),
        "unknown command",
        "invalid argument",
    ),
}
"""Case → request, the simulated phone's error, the real server's: known, and of no kindness, since all of them are
refusals of what no client of ours sends."""


@pytest.mark.parametrize("case", DIFFERENT)
async def test_known_difference_is_still_one_and_a_refusal_on_both_sides(
    both: tuple[Server, Server], case: str
) -> None:
    request, *errors = DIFFERENT[case]
    answers = [await server.send(*request) for server in both]
    assert [answer.error for answer in answers] == errors
    assert answers[0].shape == answers[1].shape


@pytest.mark.parametrize("case", SAME)
async def test_same_request_has_the_same_answer(both: tuple[Server, Server], case: str) -> None:
    simulated, real = [await server.send(*SAME[case]) for server in both]
    assert simulated == real


async def test_status_tells_of_readiness(both: tuple[Server, Server]) -> None:
    for server in both:
        answer = await server.send("GET", "/status")
        assert answer.status == 200
        assert isinstance(answer.shape, dict)
        assert answer.shape["ready"] == "bool"


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("GET", "/rect", None),
        ("GET", "/text", None),
        ("GET", "/attribute/text", None),
        ("POST", "/click", {}),
        ("POST", "/clear", {}),
        ("POST", "/value", {"text": "x"}),
    ],
)
async def test_element_that_nobody_handed_out_is_refused_alike(
    both: tuple[Server, Server], verb: str, path: str, body: object
) -> None:
    simulated, real = [await server.send(verb, "/session/{session}/element/0-0-0" + path, body) for server in both]
    assert simulated.error in ("no such element", "stale element reference")
    assert real.error in ("no such element", "stale element reference")
    assert simulated.status == real.status == 404


@pytest.mark.parametrize("path", ["/window/rect", "/source", "/screenshot", "/appium/settings"])
async def test_session_that_was_ended_answers_alike(both: tuple[Server, Server], path: str) -> None:
    answers: list[Answer] = []
    for server in both:
        assert (await server.send("DELETE", "/session/{session}")).status == 200
        answers.append(await server.send("GET", "/session/{session}" + path))
    assert answers[0] == answers[1]
    assert answers[0].raised == "InvalidSessionIdException"


@pytest.mark.parametrize(("many", "wanted"), [("", {ELEMENT: "str"}), ("s", [{ELEMENT: "str"}])])
async def test_elements_are_handed_out_alike(both: tuple[Server, Server], many: str, wanted: object) -> None:
    """The real server adds the name of the protocol before W3C's, which no client of ours reads."""
    body = {"using": "xpath", "value": "//*"}
    simulated, real = [await server.send("POST", f"/session/{{session}}/element{many}", body) for server in both]
    assert simulated.shape == wanted
    assert str(real.shape).replace("'ELEMENT': 'str', ", "") == str(wanted)
