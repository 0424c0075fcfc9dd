"""The HTTP server: Appium's routes over many phones, and the /lab routes that show and change the truth.

Around each command: the session's queue, the phone's faults, W3C bodies. Owns the phones and their sessions.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

from aiohttp import web

from apex_lab.phone import commands as c
from apex_lab.phone import elements as e
from apex_lab.phone import mobile
from apex_lab.phone.commands import Call, Command
from apex_lab.phone.errors import (
    DriverDied,
    InvalidArgument,
    InvalidSession,
    SessionNotCreated,
    UnknownCommand,
    WireError,
)
from apex_lab.phone.handset import Handset
from apex_lab.phone.lab import add_lab_routes
from apex_lab.phone.sessions import Session, Sessions

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ELEMENT = "/element/{element}"

ROUTES: tuple[tuple[str, str, str, Command], ...] = (
    ("GET", "", "capabilities", c.capabilities),
    ("GET", "/appium/capabilities", "capabilities", c.capabilities),
    ("GET", "/source", "source", c.source),
    ("GET", "/screenshot", "screenshot", c.screenshot),
    ("POST", "/element", "find", e.find_one),
    ("POST", "/elements", "find", e.find_all),
    ("GET", "/element/active", "active", e.active_element),
    ("POST", f"{ELEMENT}/element", "find", e.find_one),
    ("POST", f"{ELEMENT}/elements", "find", e.find_all),
    ("POST", f"{ELEMENT}/click", "click", e.click),
    ("POST", f"{ELEMENT}/clear", "clear", e.clear),
    ("POST", f"{ELEMENT}/value", "value", e.send_keys),
    ("GET", f"{ELEMENT}/text", "text", e.get_text),
    ("GET", f"{ELEMENT}/name", "name", e.get_tag),
    ("GET", ELEMENT + "/attribute/{name}", "attribute", e.get_attribute),
    ("GET", ELEMENT + "/property/{name}", "attribute", e.get_attribute),
    ("GET", f"{ELEMENT}/rect", "rect", e.get_rect),
    ("GET", f"{ELEMENT}/displayed", "displayed", e.flag("displayed", "visible")),
    ("GET", f"{ELEMENT}/enabled", "enabled", e.flag("enabled")),
    ("GET", f"{ELEMENT}/selected", "selected", e.flag("selected")),
    ("GET", "/window/rect", "window", c.window_rect),
    ("GET", "/orientation", "orientation", c.get_orientation),
    ("POST", "/orientation", "rotate", c.set_orientation),
    ("GET", "/rotation", "orientation", c.get_rotation),
    ("POST", "/rotation", "rotate", c.set_rotation),
    ("POST", "/actions", "actions", c.actions),
    ("DELETE", "/actions", "release", c.nothing),
    ("POST", "/back", "back", c.back),
    ("GET", "/ime/available_engines", "ime", c.imes),
    ("GET", "/ime/active_engine", "ime", c.ime),
    ("POST", "/ime/activate", "ime", c.set_ime),
    ("GET", "/contexts", "contexts", c.contexts),
    ("GET", "/context", "contexts", c.get_context),
    ("POST", "/context", "contexts", c.set_context),
    ("GET", "/appium/settings", "settings", c.get_settings),
    ("POST", "/appium/settings", "settings", c.update_settings),
    ("GET", "/timeouts", "timeouts", c.get_timeouts),
    ("POST", "/timeouts", "timeouts", c.set_timeouts),
    ("POST", "/execute/sync", "execute", mobile.execute),
)
ACTS = frozenset({"click", "clear", "value", "rotate", "actions", "back"})


class PhoneServer:
    """Serves phones at their udids; the first one answers a session request that names none."""

    def __init__(self, phones: Sequence[Handset]) -> None:
        if not phones:
            raise ValueError("a phone server needs at least one phone")
        self.phones: dict[str, Handset] = {phone.udid: phone for phone in phones}
        self.sessions = Sessions()

    def app(self) -> web.Application:
        """The aiohttp application; the same routes under / and /wd/hub."""
        app = web.Application(middlewares=[_wire_errors], client_max_size=32 * 2**20)
        for base in ("", "/wd/hub"):
            app.router.add_get(f"{base}/status", self._status)
            app.router.add_post(f"{base}/session", self._create)
            app.router.add_delete(base + "/session/{session}", self._delete)
            for method, path, name, command in ROUTES:
                app.router.add_route(method, base + "/session/{session}" + path, self._handler(name, command))
        add_lab_routes(app, self.phones, self.sessions)
        return app

    async def _status(self, request: web.Request) -> web.StreamResponse:
        ready = {"ready": True, "message": "The simulated phones are ready", "simulated": True}
        return _value({**ready, "build": {"version": "3.0.0-simulated"}})

    async def _create(self, request: web.Request) -> web.StreamResponse:
        sent = (await _body(request)).get("capabilities")
        wanted = _merged(sent)
        phone = self._pick(wanted)
        if phone.faults.create_fails > 0:
            phone.faults = phone.faults.changed({"create_fails": phone.faults.create_fails - 1})
            raise SessionNotCreated(
                "The instrumentation process cannot be initialized. Make sure the application "
                "under test does not crash and investigate the logcat output."
            )
        timeout = wanted.get("newCommandTimeout", 60)
        given = {**phone.capabilities(), **wanted, "apex:simulated": True, "udid": phone.udid}
        seconds = float(timeout) if isinstance(timeout, int | float) else 60.0
        session = self.sessions.create(phone, given, seconds)
        package = wanted.get("appPackage", wanted.get("bundleId"))
        if isinstance(package, str):
            phone.activate(package, session.id)
        if phone.faults.stillborn > 0:
            phone.faults = phone.faults.changed({"stillborn": phone.faults.stillborn - 1})
            self.sessions.end(session)
        return _value({"sessionId": session.id, "capabilities": given})

    def _pick(self, wanted: Mapping[str, object]) -> Handset:
        udid = wanted.get("udid")
        phone = next(iter(self.phones.values())) if udid is None else self.phones.get(str(udid))
        if phone is None:
            raise SessionNotCreated(f"Device {udid} was not in the list of connected devices: {', '.join(self.phones)}")
        platform = str(wanted.get("platformName", phone.platform))
        if platform.lower() != phone.platform.lower():
            raise SessionNotCreated(f"{phone.udid} is a phone with {phone.platform}, not {platform}")
        return phone

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        self.sessions.end(self.sessions.get(request.match_info["session"]))
        return _value(None)

    def _handler(self, name: str, command: Command) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            session = self.sessions.get(request.match_info["session"])
            body = await _body(request) if request.method == "POST" else {}
            what = mobile.method_of(body) or name if name == "execute" else name
            session.commands += 1
            try:
                async with session.lock:
                    if not session.alive:  # ended while this command was queued: it is dropped
                        raise InvalidSession(session.id)
                    call = Call(session=session, path=request.match_info, body=body)
                    return await self._run(request, what, command, call)
            finally:
                session.commands -= 1
                self.sessions.used(session)

        return handle

    async def _run(self, request: web.Request, name: str, command: Command, call: Call) -> web.StreamResponse:
        session, phone = call.session, call.session.phone
        faults = phone.faults
        acting = name in ACTS or name in mobile.ACTING
        if faults.driver_death is not None:
            session.died = faults.driver_death
            phone.faults = faults = faults.changed({"driver_death": None})
        if session.died is not None:
            raise DriverDied(session.died, name)
        if not faults.latency_after:
            await self._wait(faults.latency(name), session)
        if name == "source" and (failure := self._source_error(phone)) is not None:
            return failure
        if acting and faults.session_death == "before_act":
            phone.faults = faults.changed({"session_death": None})
            self.sessions.end(session)
            raise InvalidSession(session.id)
        if acting and faults.popup:
            phone.faults = faults = faults.changed({"popup": None})
            phone.popup()
        value = await command(call)
        if faults.latency_after:
            await asyncio.sleep(faults.latency(name))
        if acting and faults.session_death == "after_act":
            phone.faults = phone.faults.changed({"session_death": None})
            self.sessions.end(session)
            raise DriverDied("instrumentation", name)
        if acting and faults.answer_lost:
            phone.faults = phone.faults.changed({"answer_lost": None})
            if request.transport is not None:
                request.transport.close()
        return _value(value)

    async def _wait(self, seconds: float, session: Session) -> None:
        """Waits; a session that ends meanwhile takes the command with it."""
        if seconds:
            await asyncio.sleep(seconds)
            if not session.alive:
                raise InvalidSession(session.id)

    def _source_error(self, phone: Handset) -> web.StreamResponse | None:
        error = phone.faults.source_error
        if error is None or error.times == 0:
            return None
        if error.times is not None:
            left = {"status": error.status, "body": error.body, "times": error.times - 1}
            phone.faults = phone.faults.changed({"source_error": left if error.times > 1 else None})
        return web.Response(status=error.status, text=error.body, content_type="application/json")


@asynccontextmanager
async def serve(phones: Sequence[Handset], *, host: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[str]:
    """Serves the phones while the block runs; gives the URL."""
    runner = web.AppRunner(PhoneServer(phones).app(), access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        bound = cast("tuple[str, int]", runner.addresses[0])
        yield f"http://{host}:{bound[1]}"
    finally:
        await runner.cleanup()


def _value(value: object) -> web.Response:
    return web.Response(
        body=json.dumps({"value": value}, ensure_ascii=False).encode("utf-8", "surrogatepass"),
        content_type="application/json",
        charset="utf-8",
        headers={"Cache-Control": "no-cache"},
    )


async def _body(request: web.Request) -> dict[str, object]:
    raw = await request.read()
    try:
        found: object = json.loads(raw) if raw else {}
    except ValueError as error:
        raise InvalidArgument(f"The body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidArgument("The body must be a JSON object")
    return cast("dict[str, object]", found)


def _merged(sent: object) -> dict[str, object]:
    """alwaysMatch and the first of firstMatch, without the appium: prefix."""
    if not isinstance(sent, dict):
        raise InvalidArgument("The capabilities must be an object with alwaysMatch and firstMatch")
    caps = cast("dict[str, object]", sent)
    first = caps.get("firstMatch")
    parts = [caps.get("alwaysMatch"), cast("list[object]", first)[0] if isinstance(first, list) and first else None]
    merged: dict[str, object] = {}
    for part in parts:
        if isinstance(part, dict):
            merged |= {name.removeprefix("appium:"): value for name, value in cast("dict[str, object]", part).items()}
    return merged


@web.middleware
async def _wire_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except WireError as error:
        return web.json_response(error.body(), status=error.status)
    except web.HTTPNotFound:
        unknown = UnknownCommand(f"{request.method} {request.path}")
        return web.json_response(unknown.body(), status=unknown.status)
    except web.HTTPMethodNotAllowed:
        body = {"value": {"error": "unknown method", "message": f"{request.method} {request.path}", "stacktrace": ""}}
        return web.json_response(body, status=405)
