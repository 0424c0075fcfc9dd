"""What is no answer of an Appium server is no screen: a proxy's error page, a login page, a redirect."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from aiohttp import web

from apex_perception.appium import attach
from apex_perception.errors import PhoneError
from apex_schemas.devices import SessionHandle

PAGE = "<html><body><h1>Sign in to continue</h1></body></html>"
ANSWERS = {
    "error page": lambda: web.Response(status=502, text=PAGE, content_type="text/html"),
    "login page": lambda: web.Response(status=200, text=PAGE, content_type="text/html"),
    "redirect": lambda: web.Response(status=307, headers={"location": "/elsewhere"}),
    "moved": lambda: web.Response(status=302, headers={"location": "/elsewhere"}),
    "nothing": lambda: web.Response(status=503),
}


@pytest_asyncio.fixture
async def proxy(request: pytest.FixtureRequest) -> AsyncGenerator[str]:
    async def answer(_: web.Request) -> web.Response:
        return ANSWERS[request.param]()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    await runner.cleanup()


@pytest.mark.parametrize("proxy", list(ANSWERS), indirect=True)
@pytest.mark.parametrize("reading", ["source", "screenshot", "window"])
async def test_page_of_a_proxy_is_an_error_and_never_a_screen(proxy: str, reading: str) -> None:
    phone = attach(SessionHandle(id="s", url=proxy), 5.0)
    with pytest.raises(PhoneError) as raised:
        await asyncio.to_thread(getattr(phone, reading))
    assert "Sign in" not in str(raised.value)
