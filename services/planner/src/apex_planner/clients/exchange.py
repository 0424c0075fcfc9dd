"""One question to one provider: features dropped where refused, one deadline over everything, every end a reply.

The wire format is a `Dialect`; retries of transport errors are its SDK's own. Nothing here knows NATS.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any, Final, Protocol, cast

from msgspec import structs

from apex_planner.clients.features import Feature, Features
from apex_planner.clients.protocol import Answer
from apex_planner.clients.reading import Json, Parts, conclude, storable
from apex_planner.clients.refusals import Where, fault_of, fault_of_silence, not_a_completion
from apex_planner.errors import ProviderRefused, ProviderUnreachable
from apex_planner.text import cut
from apex_schemas.decision import DecisionReply, DecisionRequest

_RAW_CHARACTERS: Final = 400_000
_SECRET_FIELDS: Final = frozenset({"signature", "encrypted_content"})
_SHORTEST_KEY: Final = 8


class Dialect(Protocol):
    """How one API is asked and read."""

    @property
    def features(self) -> Sequence[Feature]: ...

    async def body(self, request: DecisionRequest, features: Features) -> Json: ...

    async def send(self, body: Json) -> str:
        """The body of a success. Raises ProviderRefused or ProviderUnreachable."""
        ...

    def read(self, raw: str) -> Parts | None: ...

    async def close(self) -> None: ...


class Exchange:
    """A ProviderClient over a dialect."""

    def __init__(self, dialect: Dialect, where: Where, *, key: str) -> None:
        self._dialect, self._where, self._key = dialect, where, key
        self.features = Features(dialect.features, endpoint=f"{where.model} at {where.base_url}")

    async def decide(self, request: DecisionRequest) -> DecisionReply:
        return (await self.ask(request)).reply

    async def ask(self, request: DecisionRequest) -> Answer:
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._where.timeout_s):
                answer = self._read(await self._send(request))
        except ProviderRefused as refused:
            shown = ProviderRefused(refused.status, self._hidden(refused.body), request_id=refused.request_id)
            answer = Answer(fault_of(shown, self._where), _for_record(shown.body))
        except ProviderUnreachable as unreachable:
            shown = ProviderUnreachable(self._hidden(unreachable.reason), timed_out=unreachable.timed_out)
            answer = Answer(fault_of_silence(shown, self._where))
        except TimeoutError:
            answer = Answer(fault_of_silence(ProviderUnreachable("deadline", timed_out=True), self._where))
        elapsed = round((time.monotonic() - begun) * 1_000)
        return answer._replace(reply=structs.replace(answer.reply, latency_ms=elapsed))

    async def close(self) -> None:
        """Give back the connections. Whoever made it for a while calls this; a service keeps it to its end."""
        await self._dialect.close()

    async def _send(self, request: DecisionRequest) -> str:
        """Ask, and ask again as often as there is a feature to leave out."""
        while True:
            body = await self._dialect.body(request, self.features)
            try:
                return await self._dialect.send(body)
            except ProviderRefused as refused:
                if not self.features.drop(refused.status, refused.body, body):
                    raise

    def _read(self, raw: str) -> Answer:
        raw = self._hidden(raw)
        parts = self._dialect.read(raw)
        if parts is None:
            return Answer(not_a_completion(raw, self._where), _for_record(raw))
        reply = conclude(parts, provider=self._where.provider, model=self._where.model)
        return Answer(reply, _for_record(raw), parts.ignored)

    def _hidden(self, text: str) -> str:
        """The text without our key, should a server repeat it."""
        return text.replace(self._key, "[key]") if len(self._key) >= _SHORTEST_KEY else text


def _for_record(raw: str) -> str:
    """The body as text, without what only its provider can read: signatures, and the data of redacted thinking."""
    try:
        return cut(storable(json.dumps(_bare(json.loads(raw)), ensure_ascii=False)), _RAW_CHARACTERS)
    except (ValueError, RecursionError):
        return cut(storable(raw), _RAW_CHARACTERS)


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [_bare(each) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(Json, value)
    secret = {*_SECRET_FIELDS, "data"} if fields.get("type") == "redacted_thinking" else _SECRET_FIELDS
    return {name: "[left out]" if name in secret and each else _bare(each) for name, each in fields.items()}
