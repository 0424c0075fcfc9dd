"""A model server that answers what a test ordered, and planner clients on it: direct, and through a real NATS."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import aiohttp

from apex_bus.connection import Bus, connect
from apex_bus.micro import Endpoint
from apex_bus.micro import serve as serve_micro
from apex_bus.settings import BusSettings
from apex_lab.model import serve as serve_model
from apex_planner.clients.choose import provider_client
from apex_planner.clients.cloud_proxy import CloudProxyClient
from apex_planner.clients.protocol import ToolCallingClient
from apex_planner.endpoint import SERVICE, DecisionEndpoint
from apex_planner.ledger import BusLedger
from apex_planner.recorded import RecordedClient
from apex_planner.settings import load_provider
from apex_schemas.subjects import PLANNER_DECISION, Identity

Transport = Literal["direct", "cloud-proxy"]
KEY = "sk-test-0123456789abcdef"
MODELS = {"anthropic": "scripted-old", "chat": "scripted-compatible", "responses": "scripted-gpt"}


class ModelServer:
    """The scripted model server and its lab commands."""

    def __init__(self, url: str) -> None:
        self.url = url

    def environ(self, api: str, **more: str) -> dict[str, str]:
        """Settings for a process that asks this server through one API."""
        provider = "anthropic" if api == "anthropic" else "openai"
        named = {
            "PROVIDER": provider,
            "MODEL": MODELS[api],
            "BASE_URL": self.url if api == "anthropic" else f"{self.url}/v1",
            "API_KEY": KEY,
            "MAX_RETRIES": "0",
            "TIMEOUT_SECONDS": "10",
            **({} if api == "anthropic" else {"OPENAI_API": api}),
            **more,
        }
        return {f"AI_PLANNER_{name}": value for name, value in named.items()}

    async def order(self, *answers: dict[str, Any]) -> None:
        await self._lab("next", list(answers))

    async def answer_with(self, raw: str, *, status: int = 200, **headers: str) -> None:
        """The next answer, byte for byte."""
        kind = "application/json" if raw[:1] in "{[" else "text/html"
        body = base64.b64encode(raw.encode()).decode()
        await self.order({"status": status, "body_base64": body, "headers": {"Content-Type": kind, **headers}})

    async def calls(self, method: str = "POST") -> list[dict[str, Any]]:
        """What completions were asked for, oldest first; with GET what was asked about models."""
        listed: list[dict[str, Any]] = (await self._lab("calls"))["calls"]
        return [call for call in listed if call["method"] == method]

    async def reset(self) -> None:
        await self._lab("reset", {})

    async def _lab(self, path: str, body: Any = None) -> Any:
        async with aiohttp.ClientSession() as session:
            method = "GET" if body is None else "POST"
            async with session.request(method, f"{self.url}/lab/model/{path}", json=body) as answer:
                assert answer.status == 200, await answer.text()
                return await answer.json()


@asynccontextmanager
async def model_server() -> AsyncGenerator[ModelServer]:
    async with serve_model() as url:
        yield ModelServer(url)


@asynccontextmanager
async def bus_of(identity: Identity, url: str, seed_file: str | None = None) -> AsyncGenerator[Bus]:
    bus = await connect(identity, BusSettings(url=url, seed_file=seed_file))
    try:
        yield bus
    finally:
        await bus.close()


@asynccontextmanager
async def background(work: Any) -> AsyncGenerator[asyncio.Task[Any]]:
    """A coroutine that runs as long as the block."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def client_over(
    transport: Transport, environ: dict[str, str], nats_url: str
) -> AsyncGenerator[ToolCallingClient]:
    """A client as the planner gets it: on cloud-proxy an endpoint with these settings serves it over NATS."""
    provider = provider_client(load_provider(environ))
    try:
        if transport == "direct":
            yield provider
            return
        async with bus_of(Identity.ENDPOINT, nats_url) as theirs, bus_of(Identity.PLANNER, nats_url) as ours:
            recorded = RecordedClient(provider, BusLedger(theirs), concurrency=4)
            endpoint = Endpoint("decide", PLANNER_DECISION, stream=DecisionEndpoint(recorded).answer)
            async with background(serve_micro(theirs, SERVICE, endpoint)):
                async with asyncio.timeout(30):
                    while not await ours.ping(SERVICE, timeout_s=0.5):
                        await asyncio.sleep(0.01)
                yield CloudProxyClient(ours)
    finally:
        await provider.close()
