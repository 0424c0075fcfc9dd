"""Broken forms of perception, planner and endpoint, each with one rule of theirs taken away: what a walk must find."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from chaos.virtual_process import Life

from apex_perception import healing
from apex_perception.service import PerceptionService
from apex_planner.recorded import RecordedClient, record_of
from apex_schemas.decision import DecisionReply, DecisionRequest


@contextmanager
def picture_after_scene() -> Iterator[None]:
    """The Scene names a picture that is stored behind it."""
    publish = Life.publish

    async def late(self: Life, subject: str, data: bytes, **more: Any) -> int:
        held: list[Any] = self.__dict__.setdefault("held", [])
        if subject.startswith("shot."):
            held.append((subject, data, more))
            return 0
        sequence = await publish(self, subject, data, **more)
        while subject.endswith(".scene") and held:
            picture, content, rest = held.pop()
            await publish(self, picture, content, **rest)
        return sequence

    with mock.patch.object(Life, "publish", late):
        yield


@contextmanager
def acknowledged_before_the_scene() -> Iterator[None]:
    handle = PerceptionService.handle

    async def early(self: PerceptionService, delivery: Any) -> Any:
        await delivery.ack()
        return await handle(self, delivery)

    with mock.patch.object(PerceptionService, "handle", early):
        yield


@contextmanager
def healing_that_waits_for_its_answer() -> Iterator[None]:
    """As it was: whoever was asked for a session is waited for, though the device has one from somebody else."""
    with mock.patch.object(healing, "_LOOK_EVERY_S", 1_000.0):
        yield


@contextmanager
def record_after_answer() -> Iterator[None]:
    recording: list[asyncio.Task[Any]] = []

    async def call(self: RecordedClient, request: DecisionRequest) -> DecisionReply:
        if (known := await self._ledger.recorded(request.key)) is not None:
            return known.reply
        answer = await self._provider.ask(request)

        async def afterwards() -> None:
            await asyncio.sleep(0.01)
            await self._ledger.record(record_of(request, answer))

        recording.append(asyncio.create_task(afterwards()))
        return answer.reply

    with mock.patch.object(RecordedClient, "_call", call):
        yield


@contextmanager
def calls_without_a_look_at_the_record() -> Iterator[None]:
    async def call(self: RecordedClient, request: DecisionRequest) -> DecisionReply:
        return (await self._ledger.record(record_of(request, await self._provider.ask(request)))).reply

    with mock.patch.object(RecordedClient, "_call", call):
        yield
