"""The planner-decision endpoint: the control plane's holder of provider keys, asked over NATS.

Consumes DecisionRequests on `planner-decision.decide`; emits DecisionProgress every ten seconds while the provider
takes its time, then one DecisionReply; records every call. Provider, model, budget and key are this process's own.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, Final

import msgspec

from apex_bus.connection import Bus
from apex_bus.errors import Transient
from apex_bus.micro import Endpoint, serve
from apex_bus.run import run
from apex_planner.clients.choose import provider_client
from apex_planner.clients.protocol import ToolCallingClient
from apex_planner.ledger import BusLedger
from apex_planner.recorded import RecordedClient
from apex_planner.settings import load_provider
from apex_schemas.decision import DecisionProgress, DecisionReply, DecisionRequest
from apex_schemas.ids import is_task_id
from apex_schemas.subjects import PLANNER_DECISION, Identity

log = logging.getLogger(__name__)

SERVICE: Final = "planner-decision"
PROGRESS_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 1.0
_decode = msgspec.msgpack.Decoder(DecisionRequest).decode
_encode = msgspec.msgpack.Encoder().encode


class DecisionEndpoint:
    """Answers one decision request with progress and then the reply."""

    def __init__(self, client: ToolCallingClient, *, progress_s: float = PROGRESS_SECONDS) -> None:
        self._client, self._progress_s = client, progress_s

    async def answer(self, data: bytes, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Messages for the asker's inbox. Raises what msgspec says of a request that cannot be read."""
        request = _decode(data)
        if not is_task_id(request.key.task):
            raise msgspec.ValidationError("key.task is no task id")
        loop = asyncio.get_running_loop()
        begun = loop.time()
        decision = asyncio.create_task(self._decide(request))
        try:
            while not decision.done():
                await asyncio.wait((decision,), timeout=self._progress_s)
                if not decision.done():
                    yield _encode(DecisionProgress(waited_ms=round((loop.time() - begun) * 1_000)))
            yield _encode(decision.result())
        finally:
            decision.cancel()

    async def _decide(self, request: DecisionRequest) -> DecisionReply:
        """While the log does not answer, the asker is kept waiting rather than failed."""
        while True:
            try:
                return await self._client.decide(request)
            except Transient as error:
                log.warning("turn %d waits: %s", request.key.turn, error)
                await asyncio.sleep(_RETRY_SECONDS)


async def compose(bus: Bus, environ: Mapping[str, str]) -> list[Coroutine[Any, Any, Any]]:
    settings = load_provider(environ)
    client = RecordedClient(provider_client(settings), BusLedger(bus), concurrency=settings.planner.max_concurrency)
    endpoint = DecisionEndpoint(client)
    return [serve(bus, SERVICE, Endpoint("decide", PLANNER_DECISION, stream=endpoint.answer))]


if __name__ == "__main__":
    sys.exit(run(Identity.ENDPOINT, compose))
