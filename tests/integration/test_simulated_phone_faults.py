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
        async with asyncio.timeout(5):
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
    await client.faults(latency_ms={"source": 1000})
    reading = asyncio.create_task(client.command("GET", "/source"))
    await client.until_commands(1)
    acting = asyncio.create_task(client.command("POST", "/actions", TAP))
    await client.until_commands(2)
    assert (await client.send("DELETE", f"/session/{client.session}"))[0] == 200
    assert error_of(await acting) == (404, "invalid session id")
    assert error_of(await reading) == (404, "invalid session id")
    assert await client.acts() == ["launch"]


async def test_latency_after_the_effect_delays_only_the_answer(client: Client) -> None:
    await client.faults(latency_ms={"actions": 250}, latency_after=True)
    began = time.monotonic()
    acting = asyncio.create_task(client.command("POST", "/actions", TAP))
    while await client.acts() != ["launch", "tap"]:
        assert time.monotonic() - began < 0.25, "the act came no sooner than its answer"
    assert (await acting)[0] == 200
    assert time.monotonic() - began >= 0.25


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


async def test_the_program_says_where_it_listens_and_ends_on_sigterm() -> None:
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "apex_lab.phone", "--port", "0", "--phones", "2"), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert program.stdout is not None
        ready = json.loads(await asyncio.wait_for(program.stdout.readline(), 20))
        assert ready["phones"] == ["sim-1", "sim-2"]
        async with aiohttp.ClientSession() as http, http.get(f"{ready['url']}/lab/phones") as answer:
            assert [phone["udid"] for phone in await answer.json()] == ["sim-1", "sim-2"]
        program.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(program.wait(), 10) == 0
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
