"""Finding a task: by its id or by as much of it as is unique, wherever it is: waiting, on a phone, ended, on record.

Consumes `query.queue`, `query.devices`, `query.tasks` and the slot `finished`; emits nothing. What could not be asked
is said and not taken for an absence: a task that nobody knows may still wait where no executor looks.
"""

import asyncio
import re
from collections.abc import Iterable
from typing import Final, Literal, assert_never

import click
import msgspec

from apex_cli.client import Client
from apex_cli.errors import Ambiguous, NotFound, NotReachable
from apex_cli.text import plain, shortened
from apex_schemas.devices import DeviceStatus
from apex_schemas.ids import is_task_id
from apex_schemas.queries import TasksQuery, TaskSummary, Timeline, WaitingRequest
from apex_schemas.task import TaskFinished

SHORTEST: Final = 4
_PREFIX: Final = re.compile(rf"[0-9a-f]{{{SHORTEST},32}}")
_MORE_LOOKS: Final = 2
_AGAIN_S: Final = 0.5
_LISTED: Final = 20

Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class Whereabouts(msgspec.Struct, frozen=True, kw_only=True):
    """A task and where it is. `request`, `before` (how many come first in its pool) and `phones` (the pool's, and what
    each is at) are of one that waits, `why` of one that ended: its answer, or the reason."""

    task: str
    status: Status
    goal: str = ""
    device: str | None = None
    why: str = ""
    request: WaitingRequest | None = None
    before: int = 0
    phones: tuple[str, ...] = ()

    @property
    def ended(self) -> bool:
        return self.status not in ("queued", "running")


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What was found by id, and in words who could not tell all."""

    tasks: dict[str, Whereabouts]
    silent: tuple[str, ...] = ()


class NotBegun(NotFound):
    """The task is known, and nothing of it is on record yet."""

    def __init__(self, found: Whereabouts) -> None:
        super().__init__(f"nothing of task {found.task} is on record yet: {told(found)}", look="")
        self.found = found


def task_id(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """For click: a task id, or what one begins with, as it was written or copied."""
    if value is None:
        return None
    wanted = value.strip().rstrip("….").lower()
    if _PREFIX.fullmatch(wanted) is None or not wanted.strip("0"):
        raise click.BadParameter(
            f"{value!r} is no task id: 32 digits of 0-9 and a-f, as `apex tasks` lists them, or the first {SHORTEST} "
            "or more"
        )
    return wanted


def told(found: Whereabouts) -> str:
    """In one clause, without the id."""
    match found.status:
        case "queued":
            pool = found.request.pool if found.request else "any"
            place = f"{found.before} before it" if found.before else "it is the next"
            return f"it waits for a phone in pool {pool}, {place}"
        case "running":
            return f"it runs on {found.device}" if found.device else "it runs"
        case "succeeded" | "failed" | "cancelled":
            ended = "it was cancelled" if found.status == "cancelled" else f"it has {found.status}"
            return f"{ended}: {plain(found.why)}" if found.why else ended
        case _:
            assert_never(found.status)


async def find(client: Client, wanted: str) -> Whereabouts:
    """The one task of this id or beginning. Raises NotFound, Ambiguous, or NotReachable where nobody could be asked."""
    found, silent = await search(client, wanted)
    if found is None:
        raise unknown(wanted, silent)
    return found


async def search(client: Client, wanted: str) -> tuple[Whereabouts | None, tuple[str, ...]]:
    """The task, and who could not be asked. It is looked for more than once, for one may be on its way from the queue
    to a phone. Raises Ambiguous."""
    known = await _known(client, wanted)
    for _ in range(_MORE_LOOKS):
        if not known.tasks:
            await asyncio.sleep(_AGAIN_S)
            known = await _known(client, wanted)
    if len(known.tasks) > 1:
        raise Ambiguous(wanted, [_line(each) for each in known.tasks.values()])
    return next(iter(known.tasks.values()), None), known.silent


def _line(found: Whereabouts) -> str:
    return f"{found.task}  {found.status}  {shortened(plain(found.goal), 60)}".rstrip()


def unknown(wanted: str, silent: Iterable[str]) -> NotFound:
    what = f"there is no task {wanted}" if is_task_id(wanted) else f"no task begins with {wanted}"
    return NotFound("; ".join((what, *silent)))


async def timeline(client: Client, wanted: str | None, *, scenes: bool = False) -> Timeline:
    """As `Client.timeline`, for a beginning of an id too. Raises NotBegun for a task that is not on record yet."""
    if wanted is None or is_task_id(wanted):
        try:
            return await client.timeline(wanted, scenes=scenes)
        except NotFound:
            if wanted is None:
                raise
    found = await find(client, wanted)
    try:
        return await client.timeline(found.task, scenes=scenes)
    except NotFound:
        raise NotBegun(found) from None


def queued(requests: Iterable[WaitingRequest]) -> list[Whereabouts]:
    """Requests that wait, each with how many are before it in its pool; the order is that of the requests."""
    before: dict[str, int] = {}
    found: list[Whereabouts] = []
    for request in requests:
        place = before.get(request.pool, 0)
        before[request.pool] = place + 1
        found.append(Whereabouts(task=request.task, status="queued", goal=request.goal, request=request, before=place))
    return found


async def _known(client: Client, wanted: str) -> Known:
    waiting, devices, record = await asyncio.gather(client.waiting(), _devices(client), _on_record(client, wanted))
    silent: list[str] = []
    found: dict[str, Whereabouts] = {}
    if waiting is None:
        silent.append("no executor answers, so that nobody knows what waits")
    else:
        if not waiting.complete:
            silent.append("an executor that has just started does not know yet all that waits: ask again in 20 s")
        if waiting.omitted:
            silent.append(f"{waiting.omitted} more wait than the executors tell one by one")
        waits = (each for each in queued(waiting.waiting) if each.task.startswith(wanted))
        found |= {each.task: msgspec.structs.replace(each, phones=_phones(each, devices)) for each in waits}
    for status in devices:
        if status.task and status.task.startswith(wanted):
            found[status.task] = Whereabouts(task=status.task, status="running", device=status.device)
    if record is None:
        silent.append("the decision-log does not answer")
    found |= {each.task: of_summary(each) for each in record or () if each.task.startswith(wanted)}
    for task in (wanted,) if is_task_id(wanted) else tuple(found):
        if (task not in found or not found[task].ended) and (end := await client.ended(task)) is not None:
            found[task] = of_end(task, end.body, found.get(task))
    return Known(tasks=found, silent=tuple(silent))


def _phones(found: Whereabouts, devices: Iterable[DeviceStatus]) -> tuple[str, ...]:
    pool = found.request.pool if found.request else "any"
    serving = [each for each in devices if pool in ("any", each.platform, each.device, *each.pools)]
    return tuple(f"{each.device} {each.state}" + (f": {each.reason}" if each.reason else "") for each in serving)


async def _devices(client: Client) -> list[DeviceStatus]:
    try:
        return await client.devices()
    except NotReachable:
        return []  # nobody answers on the queue either, which is said


async def _on_record(client: Client, wanted: str) -> tuple[TaskSummary, ...] | None:
    try:
        return (await client.tasks(TasksQuery(task=wanted, limit=_LISTED))).tasks
    except NotReachable:
        return None


def of_summary(summary: TaskSummary) -> Whereabouts:
    why = summary.answer if summary.status == "succeeded" else summary.failure_reason or summary.reason
    return Whereabouts(
        task=summary.task, status=summary.status, goal=summary.goal, device=summary.device, why=why or ""
    )


def of_end(task: str, end: TaskFinished, before: Whereabouts | None) -> Whereabouts:
    why = end.answer if end.status == "succeeded" else end.failure_reason or end.reason
    goal = end.goal or (before.goal if before else "")
    return Whereabouts(task=task, status=end.status, goal=goal, device=before and before.device, why=why or "")
