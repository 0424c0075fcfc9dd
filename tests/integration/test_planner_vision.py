"""A screenshot on its way to the provider and a point on its way back, over both transports and all three APIs."""

import base64
import io
import json
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from integration.containers import nats_container
from PIL import Image
from planner_lab import ModelServer, Transport, bus_of, client_over
from planner_rows import chat, function, item, message, response, text, use
from planner_world import SIZE, scene, world

from apex_bus.provision import provision
from apex_lab.embedded.nats import nats_server as embedded_nats
from apex_planner.ai_planner import AIPlanner
from apex_schemas import envelope, subjects
from apex_schemas.actions import Tap
from apex_schemas.decision import DecisionRecord, Picture
from apex_schemas.geometry import Point
from apex_schemas.ids import new_task_id
from apex_schemas.steps import PlannedStep
from apex_schemas.subjects import Identity

pytestmark = pytest.mark.asyncio(loop_scope="module")
TRANSPORTS: tuple[Transport, ...] = ("direct", "cloud-proxy")
AT = {"x": 352, "y": 784, "purpose": "p", "expected_outcome": "e"}
ANSWERS = {
    "anthropic": message(text(), use(AT)),
    "chat": chat(content=None, tool_calls=[function(json.dumps(AT))]),
    "responses": response(item(json.dumps(AT))),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nats_url(in_containers: bool, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str]:
    async with AsyncExitStack() as stack:
        folder = tmp_path_factory.mktemp("nats")
        server = await stack.enter_async_context(nats_container(None) if in_containers else embedded_nats(folder))
        async with bus_of(Identity.PROVISIONER, server.url) as bus:
            await provision(bus, ("pixel",), store_mib=512)
        yield server.url


class Listening:
    """A provider that gives one answer and keeps what it was sent, pictures and all."""

    def __init__(self) -> None:
        self.answer, self.heard = "", list[str]()
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.heard.append((await request.read()).decode())
        return web.Response(text=self.answer, content_type="application/json")


@pytest_asyncio.fixture(loop_scope="module")
async def provider() -> AsyncGenerator[Listening]:
    listening = Listening()
    app = web.Application(client_max_size=10 * 2**20)
    app.router.add_route("*", "/{path:.*}", listening.handle)
    async with TestServer(app) as server:
        listening.url = str(server.make_url("")).rstrip("/")
        yield listening


def screenshot() -> Picture:
    """A whole screen, as perception stores it."""
    data = io.BytesIO()
    Image.effect_noise((SIZE.width, SIZE.height), 60).convert("RGB").save(data, "PNG")
    return Picture(data=data.getvalue(), media_type="image/png", size=SIZE, sha256="ab" * 32)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("api", list(ANSWERS))
async def test_the_model_sees_a_small_picture_is_told_its_size_and_its_point_is_mapped_back(
    api: str, transport: Transport, provider: Listening, nats_url: str
) -> None:
    provider.answer = json.dumps(ANSWERS[api])
    whole, task = screenshot(), new_task_id()
    async with client_over(transport, ModelServer(provider.url).environ(api), nats_url) as client:
        step = await AIPlanner(client).plan(scene(source="screenshot-only"), world(), whole, task=task)
    assert isinstance(step, PlannedStep)
    assert (step.action, step.ungrounded) == (Tap(at=Point(x=540, y=1200)), True)

    (sent,) = provider.heard
    assert r"size=\"705x1568\"" in sent
    found = re.search(r"/9j/[A-Za-z0-9+/=]+", sent)
    assert found is not None, "no JPEG was sent"
    with Image.open(io.BytesIO(base64.b64decode(found[0]))) as shown:
        assert shown.size == (705, 1568)
    if transport == "cloud-proxy":
        async with bus_of(Identity.DECISION_LOG, nats_url) as bus:
            stored = await bus.get("DECISIONS", subjects.decision(task, 0, 0))
        assert stored is not None
        assert found[0][:200].encode() not in stored.data
        record = envelope.decode(stored.data).body
        assert isinstance(record, DecisionRecord)
        assert (record.screenshot_sha256, record.screenshot_bytes) == (whole.sha256, len(whole.data))
