"""The HTTP server: routes, keys, ordered faults, and the wire's error bodies.

Consumes provider requests and the lab's own commands under `/lab/model/`; emits provider answers, each with the header
`x-apex-scripted: true`. Owns the fault queue, the call log and the prefix cache of one running server.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Literal

import msgspec
from aiohttp import web

from apex_lab.model import anthropic_messages, openai_chat, openai_responses
from apex_lab.model.answered import Answered
from apex_lab.model.calls import CallLog
from apex_lab.model.errors import FaultInvalid, RequestRefused
from apex_lab.model.faults import Fault, FaultQueue
from apex_lab.model.kinds import CLAUDE, OPENAI, claude_model_info, openai_model_info
from apex_lab.model.streams import anthropic_events, chat_events, responses_events
from apex_lab.model.tools import Json
from apex_lab.model.usage import PrefixCache

Provider = Literal["anthropic", "openai"]
_MAX_BODY = 32 * 1024 * 1024
_COMPLETIONS: dict[str, Callable[[Json], Iterator[bytes]]] = {
    "/v1/messages": anthropic_events,
    "/v1/chat/completions": chat_events,
    "/v1/responses": responses_events,
}


class ScriptedModel:
    """One server's state and handlers."""

    def __init__(self) -> None:
        self._faults = FaultQueue()
        self._calls = CallLog()
        self._cache = PrefixCache()
        self._serials = count(1)

    def app(self) -> web.Application:
        """The aiohttp application with all routes."""
        app = web.Application(client_max_size=_MAX_BODY)
        app.add_routes(
            [
                web.get("/lab/model/health", self._health),
                web.post("/lab/model/next", self._next),
                web.get("/lab/model/calls", self._listed),
                web.post("/lab/model/reset", self._reset),
                web.route("*", "/{path:.*}", self._provider),
            ]
        )
        return app

    async def _health(self, _: web.Request) -> web.Response:
        return _json({"scripted": True, "models": [*CLAUDE, *OPENAI], "waiting": len(self._faults)})

    async def _next(self, request: web.Request) -> web.Response:
        try:
            return _json({"waiting": self._faults.order(await request.read())})
        except FaultInvalid as invalid:
            return _json({"error": str(invalid)}, status=400)

    async def _listed(self, _: web.Request) -> web.Response:
        return _json({"calls": self._calls.listed()})

    async def _reset(self, _: web.Request) -> web.Response:
        self._faults.clear()
        self._calls.clear()
        self._cache.clear()
        return _json({"waiting": 0})

    async def _provider(self, request: web.Request) -> web.StreamResponse:
        began, serial, raw = time.perf_counter(), next(self._serials), await request.read()
        path = request.path.rstrip("/")
        completion = request.method == "POST" and path in _COMPLETIONS
        call = self._calls.begin(
            serial=serial, method=request.method, path=path, headers=dict(request.headers), raw=raw
        )  # fmt: skip
        fault = self._faults.take(path, completion=completion)
        if fault is not None and fault.delay_ms:
            await asyncio.sleep(fault.delay_ms / 1000)
        if fault is not None and fault.answers:
            call |= {"status": fault.status or 200, "source": "reset" if fault.reset else "ordered"}
            body, kind = fault.content()
            answer = web.Response(body=body, status=fault.status or 200)
            answer.headers["Content-Type"] = kind
        else:
            answer = self._answer(request, path, raw, call, serial)
        call["ms"] = round((time.perf_counter() - began) * 1000, 3)
        answer.headers.update(_marks(serial))
        answer.headers.update(fault.headers if fault is not None else {})
        return await _send(request, answer, fault)

    def _answer(self, request: web.Request, path: str, raw: bytes, call: Json, serial: int) -> web.Response:
        provider = _provider_of(request, path)
        try:
            _check_key(request, provider)
            answered = self._answered(request, path, raw, serial)
        except RequestRefused as refused:
            call |= {"status": refused.status, "source": "refused"}
            return _json(_error_body(refused, provider, serial), status=refused.status)
        call |= {"status": 200, "source": f"playbook:{answered.playbook}"}
        if not answered.stream:
            return _json(answered.body)
        events = _COMPLETIONS[path](answered.body)
        return web.Response(body=b"".join(events), headers={"Content-Type": "text/event-stream"})

    def _answered(self, request: web.Request, path: str, raw: bytes, serial: int) -> Answered:
        match request.method, path:
            case "POST", "/v1/messages":
                betas = ",".join(request.headers.getall("anthropic-beta", []))
                return anthropic_messages.answer(raw, betas=betas, cache=self._cache, serial=serial)
            case "POST", "/v1/chat/completions":
                return openai_chat.answer(raw, cache=self._cache, serial=serial)
            case "POST", "/v1/responses":
                return openai_responses.answer(raw, cache=self._cache, serial=serial)
            case "GET", "/v1/models":
                return Answered(body=_models(_provider_of(request, path)), playbook="models")
            case "GET", _ if path.startswith("/v1/models/"):
                name = path.removeprefix("/v1/models/")
                return Answered(body=_model(name, _provider_of(request, path)), playbook="models")
            case method, _:
                raise RequestRefused(f"Invalid URL ({method} {path})", status=404, kind="not_found_error")


def _marks(serial: int) -> dict[str, str]:
    identity = f"req_scripted_{serial:08d}"
    return {"x-apex-scripted": "true", "request-id": identity, "x-request-id": identity}


def _provider_of(request: web.Request, path: str) -> Provider:
    named = "anthropic-version" in request.headers or "x-api-key" in request.headers
    return "anthropic" if named or path.startswith("/v1/messages") else "openai"


def _check_key(request: web.Request, provider: Provider) -> None:
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer").strip()
    if provider == "anthropic":
        if not (request.headers.get("x-api-key", "").strip() or bearer):
            raise RequestRefused("x-api-key header is required", status=401, kind="authentication_error")
        if not request.headers.get("anthropic-version"):
            raise RequestRefused("anthropic-version: header is required")
    elif not bearer:
        said = "You didn't provide an API key. Provide it in an Authorization header using Bearer auth."
        raise RequestRefused(said, status=401)


def _error_body(refused: RequestRefused, provider: Provider, serial: int) -> Json:
    if provider == "anthropic":
        error: Json = {"type": refused.kind, "message": refused.message}
        return {"type": "error", "error": error, "request_id": f"req_scripted_{serial:08d}"}
    kind = "invalid_request_error"
    return {"error": {"message": refused.message, "type": kind, "param": refused.param, "code": refused.code}}


def _models(provider: Provider) -> Json:
    if provider == "openai":
        return {"object": "list", "data": [openai_model_info(kind) for kind in OPENAI.values()]}
    listed = [claude_model_info(kind) for kind in CLAUDE.values()]
    return {"data": listed, "has_more": False, "first_id": listed[0]["id"], "last_id": listed[-1]["id"]}


def _model(name: str, provider: Provider) -> Json:
    if provider == "openai":
        if name not in OPENAI:
            raise openai_chat.unknown_model(name)
        return openai_model_info(OPENAI[name])
    if name not in CLAUDE:
        raise RequestRefused(f"model: {name}", status=404, kind="not_found_error")
    return claude_model_info(CLAUDE[name])


def _json(body: Json, *, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json")


async def _send(request: web.Request, answer: web.Response, fault: Fault | None) -> web.StreamResponse:
    """The answer whole, or as much of it as the fault lets through."""
    transport = request.transport
    if fault is None or transport is None or not (fault.reset or fault.cut_after is not None):
        return answer
    if fault.reset:
        transport.abort()
        return answer
    body = answer.body if isinstance(answer.body, bytes) else b""
    partial = web.StreamResponse(status=answer.status, headers=answer.headers)
    partial.content_length = len(body) + 1
    await partial.prepare(request)
    await partial.write(body[: fault.cut_after])
    transport.close()
    return partial


@asynccontextmanager
async def serve(*, host: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[str]:
    """Run a scripted model server; the value is its URL without a path.

    Raises:
        OSError: the port is taken.
    """
    runner = web.AppRunner(ScriptedModel().app(), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        address = runner.addresses[0]
        yield f"http://{host}:{address[1]}"
    finally:
        await runner.cleanup()
