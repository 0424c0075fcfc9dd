"""What a decision costs beside the bare SDK call: one request, sent by the provider's SDK alone and by the planner.

    python bench/decision.py [--rounds 400] [--api anthropic|chat|responses] [--json FILE]

The provider is a process that answers at once, so what is left is everything but the provider's time. The ways are
taken in turns, in one run, and reported as ratios of medians:

    bare        the SDK's own create() with the body that the planner sends, parsed by the SDK
    direct      the planner's client: body, SDK, reading the answer (a ToolCallingClient on `direct`)
    proxy       the same behind the planner-decision endpoint, a process of its own, asked over NATS
    recorded    either with the records and claims by which a call is paid once (durable writes), as composed
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from apex_bus.connection import Bus, connect
from apex_bus.micro import Endpoint, serve
from apex_bus.provision import provision
from apex_bus.settings import BusSettings
from apex_lab.embedded.nats import nats_server
from apex_lab.embedded.process import free_port
from apex_planner.clients.choose import provider_client
from apex_planner.clients.cloud_proxy import CloudProxyClient
from apex_planner.clients.exchange import Exchange
from apex_planner.clients.protocol import ToolCallingClient
from apex_planner.decide import first_request
from apex_planner.endpoint import SERVICE, DecisionEndpoint
from apex_planner.ledger import BusLedger
from apex_planner.recorded import RecordedClient
from apex_planner.settings import load_provider
from apex_schemas.actions import Tap
from apex_schemas.decision import DecisionRequest, ToolCallDecision
from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.ids import new_task_id
from apex_schemas.scene import Element, Scene, Screen
from apex_schemas.steps import Target, WorldEvent, WorldState
from apex_schemas.subjects import PLANNER_DECISION, Identity
from apex_schemas.task import TaskRequest, TaskStarted

TARGETS: Final = {"direct": 1.3, "proxy": 1.6}
_CALL: Final = {"element": "e2", "purpose": "to turn it on", "expected_outcome": "Wi-Fi is on"}
_SAID: Final = "The page is shown. Next: the switch."
_USAGE: Final = {"input_tokens": 10, "output_tokens": 5}
ANSWERS: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "stop_sequence": None, "usage": _USAGE,
        "content": [
            {"type": "text", "text": _SAID}, {"type": "tool_use", "id": "toolu_1", "name": "tap", "input": _CALL}
        ],
    },
    "chat": {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [
            {
                "index": 0, "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant", "content": _SAID,
                    "tool_calls": [
                        {
                            "id": "call_1", "type": "function",
                            "function": {"name": "tap", "arguments": json.dumps(_CALL)},
                        }
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    },
    "responses": {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
        "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
        "output": [
            {
                "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "tap", "status": "completed",
                "arguments": json.dumps(_CALL),
            }
        ],
    },
}  # fmt: skip


def serve_provider(port: int, api: str) -> None:
    """The provider: one answer, at once."""
    body = json.dumps(ANSWERS[api]).encode()

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


async def serve_endpoint(nats_url: str, *, recorded: bool) -> None:
    """The endpoint's process; without records it is the transport alone."""
    bus = await connect(Identity.ENDPOINT, BusSettings(url=nats_url))
    settings = load_provider(os.environ)
    provider = provider_client(settings)
    client: ToolCallingClient = RecordedClient(provider, BusLedger(bus), concurrency=8) if recorded else provider
    await serve(bus, SERVICE, Endpoint("decide", PLANNER_DECISION, stream=DecisionEndpoint(client).answer))


def question() -> DecisionRequest:
    """A turn in the middle of a task: twenty elements, ten turns of history. The task is a new one each time, since
    a call that is recorded is not made again."""
    elements = tuple(
        Element(id=f"e{n}", role="row", label=f"Entry {n} of the settings, with a line below it", interactive=True,
                bounds=Bounds(left=0, top=100 * n, right=1080, bottom=100 * n + 100), tap_point=Point(x=540, y=50))
        for n in range(1, 21)
    )  # fmt: skip
    scene = Scene(app="com.android.settings", page="Settings", screen=Screen(size=Size(width=1080, height=2400)),
                  elements=elements, fingerprint="f")  # fmt: skip
    event = WorldEvent(
        action=Tap(at=Point(x=1, y=1)), success=True, page="Settings", rationale="The list is shown. " * 6,
        target=Target(element="e1", role="row", label="Network & internet"),
    )  # fmt: skip
    started = TaskStarted(request=TaskRequest(goal="turn on Wi-Fi"), pool="any", request_sequence=1,
                          request_digest="", started_at_ms=1)  # fmt: skip
    made = first_request(scene, WorldState(started=started, history=(event,) * 10), None, task=new_task_id())
    assert isinstance(made, DecisionRequest)
    return made


async def bare(provider: Exchange, api: str, environ: dict[str, str]) -> Callable[[], Awaitable[Any]]:
    """The SDK's own call, with the very body that the planner sends."""
    dialect = provider._dialect  # pyright: ignore[reportPrivateUsage]
    sent = {
        name: value
        for name, value in (await dialect.body(question(), provider.features)).items()
        if not name.startswith("_")
    }
    key, url = environ["AI_PLANNER_API_KEY"], environ["AI_PLANNER_BASE_URL"]
    if api == "anthropic":
        import anthropic

        sdk = anthropic.AsyncAnthropic(api_key=key, base_url=url, timeout=30, open_telemetry=False)
        return lambda: sdk.messages.create(**sent)
    import openai

    other = openai.AsyncOpenAI(api_key=key, base_url=url, timeout=30)
    if api == "chat":
        return lambda: other.chat.completions.create(**sent)
    return lambda: other.responses.create(**sent)


@contextlib.asynccontextmanager
async def child(*words: str, environ: dict[str, str]) -> AsyncGenerator[None]:
    """This file as a process of its own, in another role."""
    process = await asyncio.create_subprocess_exec(sys.executable, __file__, *words, env={**os.environ, **environ})
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def there(bus: Bus) -> None:
    async with asyncio.timeout(20):
        while not await bus.ping(SERVICE, timeout_s=0.5):  # noqa: ASYNC110  (nothing here tells us)
            await asyncio.sleep(0.05)


async def answers(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)


async def measure(api: str, rounds: int, directory: Path) -> dict[str, float]:
    """Milliseconds of the median by way."""
    port = free_port()
    environ = {
        "AI_PLANNER_PROVIDER": "anthropic" if api == "anthropic" else "openai",
        "AI_PLANNER_MODEL": "m",
        "AI_PLANNER_API_KEY": "sk-bench-0123456789",
        "AI_PLANNER_BASE_URL": f"http://127.0.0.1:{port}" + ("" if api == "anthropic" else "/v1"),
        **({} if api == "anthropic" else {"AI_PLANNER_OPENAI_API": api}),
    }
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(nats_server(directory / "nats"))
        other = await stack.enter_async_context(nats_server(directory / "nats-recorded"))
        await stack.enter_async_context(child("--serve-provider", str(port), "--api", api, environ={}))
        await stack.enter_async_context(child("--serve-endpoint", server.url, environ=environ))
        await stack.enter_async_context(child("--serve-endpoint", other.url, "--recorded", environ=environ))
        ours = await connect(Identity.PLANNER, BusSettings(url=server.url))
        recording = await connect(Identity.PLANNER, BusSettings(url=other.url))
        stack.push_async_callback(ours.close)
        stack.push_async_callback(recording.close)
        await provision(recording, ("pixel",), store_mib=512)
        await asyncio.gather(there(ours), there(recording), answers(port))
        direct = provider_client(load_provider(environ))
        stack.push_async_callback(direct.close)
        clients: dict[str, ToolCallingClient] = {
            "direct": direct,
            "proxy": CloudProxyClient(ours),
            "direct recorded": RecordedClient(direct, BusLedger(recording), concurrency=8),
            "proxy recorded": CloudProxyClient(recording),
        }
        call = await bare(direct, api, environ)
        ways = ["bare", *clients]
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(rounds + 20):
            first = turn % len(ways)  # none always comes after the same other
            for name in (*ways[first:], *ways[:first]):
                request = question()
                begun = time.perf_counter()
                reply = await (call() if name == "bare" else clients[name].decide(request))
                spent = time.perf_counter() - begun
                assert name == "bare" or isinstance(reply, ToolCallDecision), reply
                if turn >= 20:  # warm by then
                    taken[name].append(spent * 1_000)
        return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--api", choices=list(ANSWERS), default="anthropic")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--serve-provider", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--serve-endpoint", help=argparse.SUPPRESS)
    parser.add_argument("--recorded", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve_provider:
        return serve_provider(given.serve_provider, given.api)
    if given.serve_endpoint:
        return asyncio.run(serve_endpoint(given.serve_endpoint, recorded=given.recorded))
    with tempfile.TemporaryDirectory() as directory:
        medians = asyncio.run(measure(given.api, given.rounds, Path(directory)))
    print(f"{given.api}, {given.rounds} rounds; median of a decision")
    for name, value in medians.items():
        ratio = value / medians["bare"]
        target = TARGETS.get(name)
        verdict = "" if target is None else f"  (at most {target}: {'met' if ratio <= target else 'MISSED'})"
        print(f"{name:<16} {value:>7.2f} ms  {ratio:>5.2f}x{verdict}")
    if given.json:
        given.json.write_text(json.dumps(medians, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
