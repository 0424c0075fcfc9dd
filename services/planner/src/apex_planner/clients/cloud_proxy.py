"""The cloud-proxy transport: a decision asked of the planner-decision endpoint over NATS. No SDK, no key.

The endpoint says every ten seconds that it still waits. Silence means that it died or that its answer was lost: it is
asked again, and a call that was made is answered from its record. The caller so waits longer than any endpoint may.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import msgspec
from nats.aio.msg import Msg

from apex_bus.connection import Bus
from apex_bus.tracing import headers as trace_headers
from apex_planner.errors import EndpointAway, EndpointFailed
from apex_schemas.decision import DecisionFault, DecisionProgress, DecisionReply, DecisionRequest, ToolCallDecision
from apex_schemas.envelope import MAX_MESSAGE_BYTES
from apex_schemas.subjects import PLANNER_DECISION

log = logging.getLogger(__name__)

SILENCE_SECONDS: Final = 25.0
LONGEST_SECONDS: Final = 3_600.0
_ASKED: Final = 3

_decode = msgspec.msgpack.Decoder(DecisionProgress | ToolCallDecision | DecisionFault).decode
_encode = msgspec.msgpack.Encoder().encode


class CloudProxyClient:
    """A ToolCallingClient over NATS."""

    def __init__(self, bus: Bus, *, silence_s: float = SILENCE_SECONDS) -> None:
        self._bus, self._silence_s = bus, silence_s

    async def decide(self, request: DecisionRequest) -> DecisionReply:
        """Raises EndpointAway when nobody answers; a failure that the endpoint itself reports is a fault."""
        data = _encode(request)
        if len(data) > MAX_MESSAGE_BYTES:
            return _fault("too_long", f"the request has {len(data):,} bytes; set AI_PLANNER_SCREENSHOT=never")
        failure: EndpointFailed | EndpointAway | None = None
        for _ in range(_ASKED):
            try:
                return await self._once(request.key.task, data)
            except (EndpointFailed, EndpointAway) as error:
                failure = error
                log.warning("turn %d: %s", request.key.turn, error)
                await asyncio.sleep(0.2)
        if isinstance(failure, EndpointFailed):
            return _fault("unavailable", str(failure))
        assert failure is not None
        raise failure

    async def _once(self, task: str, data: bytes) -> DecisionReply:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LONGEST_SECONDS
        async with aclosing(self._answers(task, data)) as answers:
            async for msg in answers:
                match _read(msg):
                    case DecisionProgress():
                        if loop.time() > deadline:
                            break
                    case reply:
                        return reply
        raise EndpointAway("it never came to an end")

    async def _answers(self, task: str, data: bytes) -> AsyncGenerator[Msg]:
        client = self._bus.client
        arrived: asyncio.Queue[Msg | None] = asyncio.Queue()

        def lost() -> None:
            arrived.put_nowait(None)

        self._bus.on_reconnect(lost)
        inbox = await client.subscribe(client.new_inbox(), cb=arrived.put)  # pyright: ignore[reportUnknownMemberType]
        try:
            await client.publish(PLANNER_DECISION, data, reply=inbox.subject, headers=trace_headers(task))
            while True:
                try:
                    async with asyncio.timeout(self._silence_s):
                        msg = await arrived.get()
                except TimeoutError:
                    raise EndpointAway(f"silent for {self._silence_s:g} s") from None
                if msg is None:  # whoever was asked over the old connection may not answer any more
                    raise EndpointAway("the connection was lost meanwhile")
                yield msg
        finally:
            self._bus.off_reconnect(lost)
            if not client.is_closed:
                await inbox.unsubscribe()


def _read(msg: Msg) -> DecisionProgress | ToolCallDecision | DecisionFault:
    headers = msg.headers or {}
    if headers.get("Status") == "503":
        raise EndpointAway("nobody serves it")
    if "Nats-Service-Error-Code" in headers:
        raise EndpointFailed(headers.get("Nats-Service-Error", "no reason given"))
    try:
        return _decode(msg.data)
    except msgspec.MsgspecError as error:
        raise EndpointFailed(f"its answer cannot be read: {error}") from error


def _fault(code: str, message: str) -> DecisionFault:
    return DecisionFault(code=code, message=message, correctable=False)
