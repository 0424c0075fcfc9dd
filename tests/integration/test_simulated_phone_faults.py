"""Faults around a command: what the client gets, and what reached the phone all the same. And the program itself."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncGenerator

import aiohttp
import pytest
import pytest_asyncio

from apex_lab.phone import Phone, serve

SETTINGS = "com.android.settings"
TAP = {
    "actions": [
        {
            "type": "pointer",
            "id": "f",
            "actions": [{"type": "pointerMove", "x": 100, "y": 180}, {"type": "pointerDown"}, {"type": "pointerUp"}],
        }
    ]
}


class Client:
    """Raw requests, so that what is on the wire can be looked at."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self.http = http
        self.url = url
        self.session = ""

    async def send(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        async with self.http.request(method, self.url + path, json=body) as answer:
            return answer.status, await answer.json(content_type=None)

    async def open(self) -> None:
        caps = {"alwaysMatch": {"platformName": "Android", "appium:udid": "sim-1", "appium:appPackage": SETTINGS}}
        _, answer = await self.send("POST", "/session", {"capabilities": caps})
        value = answer["value"]
        assert isinstance(value, dict)
        self.session = value["sessionId"]

    async def command(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        return await self.send(method, f"/session/{self.session}{path}", body)

    async def faults(self, **faults: object) -> None:
        assert (await self.send("POST", "/lab/phones/sim-1/faults", faults))[0] == 200

    async def until_commands(self, count: int) -> None:
        """Waits until the server has that many commands of the session in hand."""
        async with asyncio.timeout(30):
            while True:
                async with self.http.get(f"{self.url}/lab/phones") as answer:
                    if (await answer.json())[0]["sessions"] == [{"id": self.session, "commands": count}]:
                        return
                await asyncio.sleep(0.005)

    async def acts(self) -> list[str]:
        async with self.http.get(f"{self.url}/lab/phones/sim-1/acts") as answer:
            return [act["kind"] for act in await answer.json()]


@pytest_asyncio.fixture
async def client() -> AsyncGenerator[Client]:
    async with serve([Phone("sim-1")]) as url, aiohttp.ClientSession() as http:
        client = Client(http, url)
        await client.open()
        yield client


def error_of(answer: tuple[int, dict[str, object]]) -> tuple[int, object]:
    value = answer[1]["value"]
    assert isinstance(value, dict)
    return answer[0], value["error"]


async def test_a_session_that_dies_before_the_act_leaves_the_phone_untouched(client: Client) -> None:
    await client.faults(session_death="before_act")
    assert (await client.command("GET", "/source"))[0] == 200
    assert error_of(await client.command("POST", "/actions", TAP)) == (404, "invalid session id")
    assert await client.acts() == ["launch"]
    await client.open()
    assert (await client.command("POST", "/actions", TAP))[0] == 200


async def test_a_session_that_dies_after_the_act_has_done_it(client: Client) -> None:
    await client.faults(session_death="after_act")
    assert error_of(await client.command("POST", "/actions", TAP)) == (500, "unknown error")
    assert await client.acts() == ["launch", "tap"]
    assert error_of(await client.command("GET", "/source")) == (404, "invalid session id")


async def test_an_answer_that_is_lost_belongs_to_an_act_that_was_done_once(client: Client) -> None:
    await client.faults(answer_lost=True)
    with pytest.raises(aiohttp.ClientError):
        await client.command("POST", "/actions", TAP)
    assert await client.acts() == ["launch", "tap"]
    assert (await client.command("GET", "/source"))[0] == 200


async def test_acts_queued_behind_a_slow_read_are_dropped_when_the_session_is_deleted(client: Client) -> None:
    await client.faults(latency_ms={"source": 20_000})
    reading = asyncio.create_task(client.command("GET", "/source"))
    await client.until_commands(1)
    acting = asyncio.create_task(client.command("POST", "/actions", TAP))
    await client.until_commands(2)
    assert (await client.send("DELETE", f"/session/{client.session}"))[0] == 200
    assert error_of(await acting) == (404, "invalid session id")
    assert error_of(await reading) == (404, "invalid session id")
    assert await client.acts() == ["launch"]


async def test_latency_after_the_effect_delays_only_the_answer(client: Client) -> None:
    await client.faults(latency_ms={"actions": 1_500}, latency_after=True)
    began = time.monotonic()
    acting = asyncio.create_task(client.command("POST", "/actions", TAP))
    while await client.acts() != ["launch", "tap"]:
        assert not acting.done(), "the act came no sooner than its answer"
    assert (await acting)[0] == 200
    assert time.monotonic() - began >= 1.5


async def test_a_failing_source_answers_the_given_body_as_often_as_told(client: Client) -> None:
    body = '{"value": {"error": "unknown error", "message": "Illegal character (d83d)"}}'
    await client.faults(source_error={"status": 500, "body": body, "times": 2})
    answers = [await client.command("GET", "/source") for _ in range(3)]
    assert [status for status, _ in answers] == [500, 500, 200]
    assert answers[0][1] == json.loads(body)


async def test_a_popup_comes_before_the_next_act_and_takes_it(client: Client) -> None:
    await client.faults(popup=True)
    _, before = await client.command("GET", "/source")
    assert "Battery is low" not in str(before)
    await client.command("POST", "/execute/sync", {"script": "mobile: pressKey", "args": [{"keycode": 82}]})
    _, after = await client.command("GET", "/source")
    assert "Battery is low" in str(after)


async def test_an_animated_screen_is_read_after_the_idle_timeout_of_the_settings(client: Client) -> None:
    await client.faults(animate=True)
    await client.command("POST", "/appium/settings", {"settings": {"waitForIdleTimeout": 120}})
    began = time.monotonic()
    reads = [str(await client.command("GET", "/source")) for _ in range(2)]
    assert time.monotonic() - began >= 0.24
    assert reads[0] != reads[1]


async def test_what_is_asked_wrongly_is_answered_in_w3c_form(client: Client) -> None:
    assert error_of(await client.send("GET", "/nothing")) == (404, "unknown command")
    assert error_of(await client.command("PUT", "/source")) == (405, "unknown method")
    assert error_of(await client.command("POST", "/element", {"using": "id"})) == (400, "invalid argument")
    assert error_of(await client.command("POST", "/element", [])) == (400, "invalid argument")
    assert error_of(await client.send("GET", "/lab/phones/sim-7/state")) == (404, "no such phone")
    assert error_of(await client.send("POST", "/lab/phones/sim-1/faults", {"x": 1})) == (400, "invalid argument")


@pytest.mark.parametrize(
    ("death", "words"),
    [("instrumentation", "instrumentation process is not running"), ("socket_hang_up", "socket hang up")],
)
async def test_a_driver_that_died_fails_every_command_until_the_session_is_made_anew(
    client: Client, death: str, words: str
) -> None:
    await client.faults(driver_death=death)
    for _ in range(2):
        answer = await client.command("POST", "/actions", TAP)
        assert error_of(answer) == (500, "unknown error")
        assert words in str(answer[1])
    assert error_of(await client.command("GET", "/source")) == (500, "unknown error")
    assert await client.acts() == ["launch"]
    await client.open()
    assert (await client.command("POST", "/actions", TAP))[0] == 200


async def test_a_stillborn_session_is_over_as_soon_as_it_was_made(client: Client) -> None:
    await client.faults(stillborn=2)
    for _ in range(2):
        await client.open()
        assert error_of(await client.command("GET", "/source")) == (404, "invalid session id")
    await client.open()
    assert (await client.command("GET", "/source"))[0] == 200


async def test_a_session_that_cannot_be_made_leaves_the_old_one_alive(client: Client) -> None:
    await client.faults(create_fails=1)
    caps = {"capabilities": {"alwaysMatch": {"platformName": "Android", "appium:udid": "sim-1"}}}
    assert error_of(await client.send("POST", "/session", caps)) == (500, "session not created")
    assert (await client.command("GET", "/source"))[0] == 200
    assert (await client.send("POST", "/session", caps))[0] == 200


async def test_two_devices_cannot_have_the_same_port_and_one_can_have_its_own_again() -> None:
    async with serve([Phone("a"), Phone("b")]) as url, aiohttp.ClientSession() as http:
        client = Client(http, url)

        async def open_(udid: str, port: int | None) -> tuple[int, dict[str, object]]:
            own = {} if port is None else {"appium:systemPort": port}
            caps = {"alwaysMatch": {"platformName": "Android", "appium:udid": udid, **own}}
            return await client.send("POST", "/session", {"capabilities": caps})

        assert [(await open_(udid, 8200))[0] for udid in "aa"] == [200, 200]
        taken = await open_("b", 8200)
        assert error_of(taken) == (500, "session not created")
        assert "port #8200 (systemPort) is already in use" in str(taken[1])
        assert [(await open_("b", port))[0] for port in (8201, None)] == [200, 200]


async def test_the_input_method_can_be_asked_for_and_put_back(client: Client) -> None:
    await client.faults(ime_left=True)
    _, engines = await client.command("GET", "/ime/available_engines")
    _, left = await client.command("GET", "/ime/active_engine")
    assert left["value"] == "io.appium.settings/.UnicodeIME"
    assert left["value"] in engines["value"]  # type: ignore[operator]
    keyboard = {"engine": "com.android.inputmethod.latin/.LatinIME"}
    assert (await client.command("POST", "/ime/activate", keyboard))[0] == 200
    assert (await client.command("GET", "/ime/active_engine"))[1]["value"] == keyboard["engine"]
    assert (await client.command("POST", "/ime/activate", {"engine": "no.such/.IME"}))[0] == 500


async def test_the_program_says_where_it_listens_and_ends_on_sigterm() -> None:
    command = (sys.executable, "-m", "apex_lab.phone", "--port", "0", "--phones", "2", "--ios", "1")
    program = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert program.stdout is not None
        ready = json.loads(await asyncio.wait_for(program.stdout.readline(), 20))
        assert ready["phones"] == ["sim-1", "sim-2", "ios-1"]
        async with aiohttp.ClientSession() as http, http.get(f"{ready['url']}/lab/phones") as answer:
            assert [phone["udid"] for phone in await answer.json()] == ["sim-1", "sim-2", "ios-1"]
        program.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(program.wait(), 10) == 0
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
