"""The provider's own list of calls, read while it still has them: it keeps the newest thousand."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from apex_lab.chaos.evidence import Call

_EVERY_S: Final = 5.0


class Calls:
    """Completions that were answered, by serial. `ports` names the process behind each port that calls come by."""

    def __init__(self, url: str, ports: Mapping[int, str]) -> None:
        self._url, self._ports = url, ports
        self._found: dict[int, Call] = {}
        self._offset_ms: float | None = None

    async def follow(self) -> None:
        """Until cancelled."""
        while True:
            await self.read()
            await asyncio.sleep(_EVERY_S)

    async def read(self) -> None:
        async with aiohttp.ClientSession(self._url, timeout=aiohttp.ClientTimeout(total=10)) as session:
            if self._offset_ms is None:
                began = time.time() * 1_000
                async with session.get("/v1/models", headers={"Authorization": "Bearer clock"}):
                    pass
                listed = await _listed(session)
                self._offset_ms = began - next(call["at_ms"] for call in listed if call["path"] == "/v1/models")
            for call in await _listed(session):
                if call["method"] == "POST" and call["status"] == 200 and call["ms"] is not None:
                    began_ms = call["at_ms"] + self._offset_ms
                    host = urlsplit(f"http://{call['headers'].get('Host', '')}")
                    process = self._ports.get(host.port or 0)
                    self._found[call["serial"]] = Call(
                        call["serial"], round(began_ms), round(began_ms + call["ms"]), process
                    )

    @property
    def all(self) -> tuple[Call, ...]:
        return tuple(self._found[serial] for serial in sorted(self._found))


async def _listed(session: aiohttp.ClientSession) -> list[dict[str, Any]]:
    async with session.get("/lab/model/calls") as reply:
        return (await reply.json())["calls"]
