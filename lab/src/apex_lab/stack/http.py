"""The simulators' own HTTP side: what is really so on a phone, and faults. Not part of what the system sees."""

from types import TracebackType
from typing import Any, Self

import aiohttp

_TIMEOUT = aiohttp.ClientTimeout(total=5)


class Handsets:
    """The phones of a phone server, by udid. Raises aiohttp.ClientError where it cannot be reached or refuses."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(self.url, raise_for_status=True, timeout=_TIMEOUT)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def state(self, udid: str) -> dict[str, Any]:
        """The phone's true state, by app."""
        return await self._get(f"/lab/phones/{udid}/state")

    async def acts(self, udid: str, *, since: int = 0) -> list[dict[str, Any]]:
        """Every input that reached the phone, oldest first, after act `since`."""
        return await self._get(f"/lab/phones/{udid}/acts?since={since}")

    async def set_faults(self, udid: str, faults: dict[str, Any]) -> None:
        await self._post(f"/lab/phones/{udid}/faults", faults)

    async def set_state(self, udid: str, state: dict[str, Any]) -> None:
        await self._post(f"/lab/phones/{udid}/state", state)

    async def reset(self, udid: str, state: dict[str, Any] | None = None) -> None:
        await self._post(f"/lab/phones/{udid}/reset", state or {})

    async def _get(self, path: str) -> Any:
        async with self._session.get(path) as reply:
            return await reply.json()

    async def _post(self, path: str, body: dict[str, Any]) -> None:
        async with self._session.post(path, json=body):
            pass


async def answers(url: str) -> bool:
    """Whether a server answers GET on a URL without an error."""
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, timeout=aiohttp.ClientTimeout(total=2)) as reply,
        ):
            return reply.ok
    except (aiohttp.ClientError, TimeoutError):
        return False
