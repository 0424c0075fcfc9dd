"""Paying once: every provider call is recorded under its key, and a recorded call is answered from its record.

Whoever calls a provider does it through here, planner or endpoint: claim the turn; read the record; call; record;
answer. A call that is lost before its record stays invisible, and is paid for again: said in the README.
"""

import asyncio
import logging
import time
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from opentelemetry.trace import SpanKind

from apex_bus.tracing import because_of, span
from apex_planner.clients.protocol import Answer, ProviderClient
from apex_planner.genai import describe
from apex_schemas.decision import DecisionRecord, DecisionReply, DecisionRequest
from apex_schemas.steps import DecisionKey

log = logging.getLogger(__name__)


class Ledger(Protocol):
    @property
    def worker(self) -> str: ...

    async def recorded(self, key: DecisionKey) -> DecisionRecord | None: ...

    def claim(self, key: DecisionKey) -> AbstractAsyncContextManager[bool]:
        """Hold the turn for a call, kept alive while open; False when another holds it."""
        ...

    async def record(self, record: DecisionRecord) -> DecisionRecord:
        """Write once. What is returned is what is stored, by whomever."""
        ...


class RecordedClient:
    """A ToolCallingClient: a provider behind a ledger. At most `concurrency` provider calls are in flight."""

    def __init__(self, provider: ProviderClient, ledger: Ledger, *, concurrency: int, wait_s: float = 0.25) -> None:
        self._provider, self._ledger = provider, ledger
        self._free = asyncio.Semaphore(concurrency)
        self._wait_s = wait_s

    async def decide(self, request: DecisionRequest) -> DecisionReply:
        while True:
            async with self._free, self._ledger.claim(request.key) as held:
                if held:
                    return await self._call(request)
            if (known := await self._ledger.recorded(request.key)) is not None:
                return known.reply
            await asyncio.sleep(self._wait_s)

    async def _call(self, request: DecisionRequest) -> DecisionReply:
        """Under the claim: nobody else can be about to pay, so that a look now is enough."""
        if (known := await self._ledger.recorded(request.key)) is not None:
            return known.reply
        asked_at_ms = time.time_ns() // 1_000_000
        begun = time.perf_counter()
        with span("chat", task=request.key.task, kind=SpanKind.CLIENT) as current:
            answer = await self._provider.ask(request)
            cost = describe(current, request, answer.reply, time.perf_counter() - begun)
        if answer.ignored:
            log.info("unknown parts of an answer were ignored: %s", ", ".join(answer.ignored))
        record = record_of(request, answer, requested_at_ms=asked_at_ms, worker=self._ledger.worker, cost_usd=cost)
        with because_of(current):
            return (await self._ledger.record(record)).reply


def record_of(
    request: DecisionRequest,
    answer: Answer,
    *,
    requested_at_ms: int = 0,
    worker: str = "",
    cost_usd: float | None = None,
) -> DecisionRecord:
    """All of a call, without the bytes of its picture."""
    picture = request.picture
    return DecisionRecord(
        key=request.key,
        system_prompt=request.system_prompt,
        user_prompt="\n".join(request.user_blocks),
        tools=tuple(tool.name for tool in request.tools),
        reply=answer.reply,
        raw_answer=answer.raw,
        screenshot_sha256=picture.sha256 if picture else None,
        screenshot_bytes=(picture.original_bytes or len(picture.data)) if picture else None,
        requested_at_ms=requested_at_ms,
        worker=worker,
        cost_usd=cost_usd,
    )
