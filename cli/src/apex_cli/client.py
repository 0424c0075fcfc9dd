"""A client of the system: publishes requests and cancellations, follows a task live, asks the query subjects.

Consumes `task.*.<task>.*` slots that clients may follow and the answers of `query.*`; emits `request.<pool>` and
`cancel.<task>`.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import nats.errors
from nats.aio.msg import Msg

from apex_bus import tracing
from apex_bus.connection import Bus, Refused, connect, flushed
from apex_bus.errors import BusError, NotPermitted, StoreFull, Transient, Unacknowledged, Unreachable
from apex_bus.tasklog import TaskLog
from apex_cli.errors import NoRoom, NotFound, NotReachable, NotStored
from apex_cli.place import Place
from apex_schemas import envelope, subjects
from apex_schemas.devices import DeviceStatus
from apex_schemas.errors import WireError
from apex_schemas.queries import (
    QueryError,
    TaskList,
    TasksQuery,
    Timeline,
    TimelineQuery,
    WaitingRequests,
)
from apex_schemas.slots import Slot
from apex_schemas.task import CancelRequest, TaskFinished, TaskRequest

Result = TypeVar("Result")
Answer = TypeVar("Answer", Timeline, TaskList)
Each = TypeVar("Each")

CONNECT_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 5.0
_RECHECK_SECONDS: Final = 2.0
_DEVICES_SECONDS: Final = 1.5
_DEVICES_QUIET_SECONDS: Final = 0.3


class Happening(msgspec.Struct, frozen=True):
    """A slot of the followed task that was filled just now: TaskStarted, PlannedStep, WorldEvent or TaskFinished."""

    slot: Slot
    body: Any


class Client:
    """The commands of a client over one connection. Errors of the bus become sentences with the server's place."""

    def __init__(self, bus: Bus, found: str) -> None:
        self._bus, self._found = bus, found
        self.lost = bus.fatal

    async def submit(self, request: TaskRequest, pool: str) -> int:
        """Store the request and return its sequence in REQUESTS. A span around it is linked to by the task's trace."""
        data = msgspec.json.encode(request)
        return await self._bus.publish(subjects.request(pool), data, headers=tracing.origin() or None)

    async def cancel(self, task: str, reason: str) -> None:
        await self._bus.publish(subjects.cancel(task), msgspec.json.encode(CancelRequest(reason=reason)))

    async def ended(self, task: str) -> "Happening | None":
        """How a task ended, a TaskFinished; None while it has not. An end that cannot be read is a failure."""
        entry = await TaskLog(self._bus).ended(task)
        return None if entry is None else Happening(entry.slot, entry.body)

    @asynccontextmanager
    async def following(self, task: str) -> AsyncGenerator[AsyncIterator[Happening]]:
        """Subscribes before the body runs, so that a task submitted inside is seen from its start.

        The iterator ends after `finished`, which it also finds when the message about it was missed.
        """
        queue: asyncio.Queue[Msg] = asyncio.Queue()
        patterns = (f"task.*.{task}.0.started", f"task.*.{task}.*.planned", f"task.*.{task}.*.event")
        subscriptions = [
            await self._bus.client.subscribe(pattern, cb=queue.put)  # pyright: ignore[reportUnknownMemberType]
            for pattern in (*patterns, f"task.*.{task}.end.finished")
        ]
        await flushed(self._bus.client)
        try:
            yield self._happenings(task, queue)
        finally:
            with contextlib.suppress(nats.errors.ConnectionClosedError):  # ended from outside: nothing is subscribed
                for subscription in subscriptions:
                    await subscription.unsubscribe()

    async def _happenings(self, task: str, queue: "asyncio.Queue[Msg]") -> AsyncIterator[Happening]:
        while True:
            try:
                message = await asyncio.wait_for(queue.get(), _RECHECK_SECONDS)
                seen = _happening(message.subject, message.data)
            except TimeoutError:
                seen = await self.ended(task)
            except WireError:
                continue  # forged, or of a newer version: what counts is stored, and read back above
            if seen is None:
                continue
            yield seen
            if isinstance(seen.body, TaskFinished):
                return

    async def timeline(self, task: str | None = None, *, scenes: bool = False) -> Timeline:
        """One task turn by turn, the last one without an id; with `scenes` also what was on the screen.

        Raises NotFound or NotReachable.
        """
        page = await self._query(subjects.QUERY_TIMELINE, TimelineQuery(task=task, scenes=scenes), Timeline)
        steps = [*page.steps]
        while page.next_turn is not None:
            query = TimelineQuery(task=page.summary.task, from_turn=page.next_turn, scenes=scenes)
            page = await self._query(subjects.QUERY_TIMELINE, query, Timeline)
            steps += page.steps
        return Timeline(summary=page.summary, steps=tuple(steps))

    async def waiting(self) -> WaitingRequests | None:
        """The requests that wait for a device, as far as the executors together know; each once, the oldest first, and
        without a gap. None where no executor answers."""
        try:
            answers = await self._answers(subjects.QUERY_QUEUE, WaitingRequests)
        except NotReachable:
            return None
        if not answers:
            return None
        # Behind the last one that an executor tells of more, only others' are known, and not all of them.
        last = min((each.waiting[-1].sequence for each in answers if each.omitted and each.waiting), default=None)
        told = [[one for one in each.waiting if last is None or one.sequence <= last] for each in answers]
        found = {waiting.task: waiting for each in told for waiting in each}
        return WaitingRequests(
            waiting=tuple(sorted(found.values(), key=lambda waiting: waiting.sequence)),
            omitted=max(
                answer.omitted + len(answer.waiting) - len(each) for answer, each in zip(answers, told, strict=True)
            ),
            complete=all(answer.complete for answer in answers),
        )

    async def tasks(self, query: TasksQuery) -> TaskList:
        return await self._query(subjects.QUERY_TASKS, query, TaskList)

    async def _query(self, subject: str, query: TimelineQuery | TasksQuery, type_: type[Answer]) -> Answer:
        try:
            data = await self._bus.request(subject, msgspec.json.encode(query), timeout_s=ANSWER_SECONDS)
        except Transient as error:
            raise NotReachable(f"the decision-log does not answer ({error})", self._found) from error
        answer = _refusal(data)
        if answer is None:
            return msgspec.json.decode(data, type=type_)
        if "not_found" in answer.code or "unknown" in answer.code:
            raise NotFound(answer.error)
        raise NotReachable(f"the decision-log could not answer ({answer.error})", self._found)

    async def devices(self) -> list[DeviceStatus]:
        """Every device that some executor knows; of several answers about one the newest epoch counts."""
        found: dict[str, DeviceStatus] = {}
        for statuses in await self._answers(subjects.QUERY_DEVICES, list[DeviceStatus]):
            for status in statuses:
                known = found.get(status.device)
                if known is None or status.epoch >= known.epoch:
                    found[status.device] = status
        return sorted(found.values(), key=lambda status: status.device)

    async def _answers(self, subject: str, type_: type[Each]) -> list[Each]:
        """What every executor answers, until nobody says more."""
        inbox = self._bus.client.new_inbox()
        subscription = await self._bus.client.subscribe(inbox)  # pyright: ignore[reportUnknownMemberType]
        await self._bus.client.publish(subject, b"", reply=inbox)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _DEVICES_SECONDS
        found: list[Each] = []
        wait = _DEVICES_SECONDS
        try:
            while (left := min(wait, deadline - loop.time())) > 0:
                message = await subscription.next_msg(timeout=left)
                if (message.headers or {}).get("Status") == "503":
                    raise NotReachable("no executor is running", self._found)
                found.append(msgspec.json.decode(message.data, type=type_))
                wait = _DEVICES_QUIET_SECONDS
        except nats.errors.TimeoutError:
            pass  # nobody else answers
        finally:
            await subscription.unsubscribe()
        return found


@asynccontextmanager
async def connected(place: Place) -> AsyncGenerator[Client]:
    """A client at the place. Raises NotReachable when there is no server or it does not know us."""
    _check_seed(place)
    try:
        bus = await connect(place.identity, place.settings, timeout_s=CONNECT_SECONDS)
    except Unreachable as error:
        raise NotReachable("no NATS server answers", place.found) from error
    except NotPermitted as error:
        raise NotReachable(f"{str(error).split(';')[0]},", place.found) from error
    try:
        yield Client(bus, place.found)
    finally:
        await bus.close()


def run(place: Place, work: Callable[[Client], Awaitable[Result]]) -> Result:
    """Connect, do the work, close. Raises NoRoom, NotStored, or NotReachable for everything else that the bus finds
    wrong."""

    async def whole() -> Result:
        async with connected(place) as client:
            working = asyncio.ensure_future(work(client))
            await asyncio.wait({working, client.lost}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                working.cancel()
                await client.lost
            return await working

    try:
        return asyncio.run(whole())
    except StoreFull as error:
        raise NoRoom(str(error).partition(";")[0], place.found) from error
    except (Unacknowledged, Refused) as error:
        raise NotStored(str(error), place.found) from error
    except BusError as error:
        raise NotReachable(f"{str(error).split(';')[0]},", place.found) from error


def _check_seed(place: Place) -> None:
    """Before anything is tried: a seed that cannot be read is no fault of the server."""
    try:
        if place.settings.seed_file:
            Path(place.settings.seed_file).read_bytes()
    except OSError as error:
        raise NotReachable(f"APEX_NATS_SEED_FILE cannot be read ({error}), so nobody was asked", place.found) from error


def _happening(subject: str, data: bytes) -> Happening:
    message = envelope.decode(data)
    return Happening(envelope.check_slot(message, subject), message.body)


def _refusal(data: bytes) -> QueryError | None:
    """A QueryError has both of its fields; no other answer decodes as one."""
    try:
        return msgspec.json.decode(data, type=QueryError)
    except msgspec.ValidationError:
        return None
