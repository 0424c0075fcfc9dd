"""The /lab routes: what is really so on the phones, which inputs reached them, faults, reset. Not part of Appium.

GET  /lab/phones                  all phones: udid, platform, size, sessions and how many commands each has in hand
GET  /lab/phones/{udid}/state     the true state         POST …/state  changes it
GET  /lab/phones/{udid}/acts      the act log; ?since=N  only what came after act N
GET  /lab/phones/{udid}/faults    the faults             POST …/faults changes the named ones
GET  /lab/phones/{udid}/screen.png  the picture, without a session
POST /lab/phones/{udid}/reset     as new; the body may be a change of state. The sessions stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
from aiohttp import web

from apex_lab.phone.errors import InvalidArgument, NotAPhone
from apex_lab.phone.handset import Handset
from apex_lab.phone.sessions import Sessions


def add_lab_routes(app: web.Application, phones: Mapping[str, Handset], sessions: Sessions) -> None:
    """Adds the routes for these phones."""

    def phone_of(request: web.Request) -> Handset:
        udid = request.match_info["udid"]
        if udid not in phones:
            raise NotAPhone(udid, list(phones))
        return phones[udid]

    async def listing(request: web.Request) -> web.Response:
        return _json(
            [
                {
                    "udid": phone.udid,
                    "platform": phone.platform,
                    "simulated": True,
                    "width": phone.size[0],
                    "height": phone.size[1],
                    "sessions": [{"id": session.id, "commands": session.commands} for session in sessions.of(phone)],
                }
                for phone in phones.values()
            ]
        )

    async def state(request: web.Request) -> web.Response:
        return _json(phone_of(request).state())

    async def patch(request: web.Request) -> web.Response:
        phone_of(request).patch(await _sent(request))
        return _json(phone_of(request).state())

    async def acts(request: web.Request) -> web.Response:
        since = request.query.get("since", "0")
        if not since.isdigit():
            raise InvalidArgument(f"since is the number of an act, not {since!r}")
        return _json(phone_of(request).acts.since(int(since)))

    async def faults(request: web.Request) -> web.Response:
        return _json(phone_of(request).faults)

    async def set_faults(request: web.Request) -> web.Response:
        phone = phone_of(request)
        phone.faults = phone.faults.changed(await _sent(request))
        phone.patch({})
        return _json(phone.faults)

    async def reset(request: web.Request) -> web.Response:
        phone_of(request).reset()
        phone_of(request).patch(await _sent(request))
        return _json(phone_of(request).state())

    async def screen(request: web.Request) -> web.Response:
        return web.Response(body=phone_of(request).picture(), content_type="image/png")

    app.router.add_get("/lab/phones", listing)
    for method, path, handler in (
        ("GET", "state", state),
        ("POST", "state", patch),
        ("GET", "acts", acts),
        ("GET", "faults", faults),
        ("POST", "faults", set_faults),
        ("POST", "reset", reset),
        ("GET", "screen.png", screen),
    ):
        app.router.add_route(method, "/lab/phones/{udid}/" + path, handler)


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


async def _sent(request: web.Request) -> object:
    raw = await request.read()
    try:
        return json.loads(raw) if raw else {}
    except ValueError as error:
        raise InvalidArgument(f"The body is not JSON: {error}") from error
