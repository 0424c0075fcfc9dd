"""A task is found by its id or its first digits, wherever it is, and what could not be asked is said."""

from typing import Any, cast

import click
import msgspec
import pytest

from apex_cli import lookup
from apex_cli.client import Client, Happening
from apex_cli.errors import Ambiguous, NotFound, NotReachable
from apex_cli.lookup import NotBegun, task_id
from apex_schemas.devices import DeviceStatus
from apex_schemas.queries import TaskList, TasksQuery, TaskSummary, Timeline, WaitingRequest, WaitingRequests
from apex_schemas.slots import finished
from apex_schemas.task import TaskFinished

ONE = "f994a29b" + "0" * 24
OTHER = "f994b000" + "0" * 24


class World:
    """What a Client may ask. A source that is None does not answer."""

    def __init__(self, **there: Any) -> None:
        self.queue: WaitingRequests | None = there.get("queue", WaitingRequests())
        self.busy: list[DeviceStatus] = there.get("busy", [])
        self.record: list[TaskSummary] | None = there.get("record", [])
        self.ends: dict[str, TaskFinished] = there.get("ends", {})

    async def waiting(self) -> WaitingRequests | None:
        return self.queue

    async def devices(self) -> list[DeviceStatus]:
        if self.queue is None:
            raise NotReachable("no executor is running", "here")
        return self.busy

    async def tasks(self, query: TasksQuery) -> TaskList:
        if self.record is None:
            raise NotReachable("the decision-log does not answer", "here")
        return TaskList(tasks=tuple(self.record))

    async def ended(self, task: str) -> Happening | None:
        end = self.ends.get(task)
        return None if end is None else Happening(finished("sim-1", task), end)

    async def timeline(self, task: str | None = None, *, scenes: bool = False) -> Timeline:
        for summary in self.record or ():
            if summary.task == task:
                return Timeline(summary=summary)
        raise NotFound(f"there is no task {task}")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_AGAIN_S", 0)


def _client(**there: Any) -> Client:
    return cast("Client", World(**there))


def _waits(*tasks: str, pool: str = "any", **fields: Any) -> WaitingRequests:
    waiting = tuple(
        WaitingRequest(task=task, pool=pool, sequence=number, goal="g") for number, task in enumerate(tasks)
    )
    return WaitingRequests(waiting=waiting, **fields)


def _recorded(task: str, **fields: Any) -> TaskSummary:
    return msgspec.structs.replace(TaskSummary(task=task, goal="g", device="sim-1", status="running"), **fields)


def _busy(task: str) -> DeviceStatus:
    return DeviceStatus(device="sim-1", platform="android", state="busy", worker="w", epoch=1, task=task)


def _end(status: Any, **fields: Any) -> TaskFinished:
    return TaskFinished(status=status, turns=1, finished_at_ms=1, by="w", **fields)


@pytest.mark.parametrize("wanted", [ONE, ONE[:8], "f994"])
async def test_a_task_that_waits_is_found_with_its_place_in_the_queue(wanted: str) -> None:
    found = await lookup.find(_client(queue=_waits("a" * 32, ONE)), wanted)
    assert (found.task, found.status, found.before) == (ONE, "queued", 1)
    assert lookup.told(found) == "it waits for a phone in pool any, 1 before it"


async def test_the_place_in_the_queue_counts_the_own_pool_alone() -> None:
    requests = (*_waits("a" * 32, pool="ios").waiting, *_waits(ONE).waiting)
    assert [each.before for each in lookup.queued(requests)] == [0, 0]


async def test_a_task_on_a_phone_is_found_before_anything_is_on_record() -> None:
    found = await lookup.find(_client(busy=[_busy(ONE)]), ONE[:6])
    assert (found.task, found.status, found.device) == (ONE, "running", "sim-1")


async def test_a_task_that_has_ended_says_how_even_where_the_record_is_behind() -> None:
    client = _client(record=[_recorded(ONE)], ends={ONE: _end("failed", failure_reason="no such app")})
    found = await lookup.find(client, ONE[:6])
    assert found.ended
    assert lookup.told(found) == "it has failed: no such app"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (_end("succeeded", answer="Lab-5G"), "it has succeeded: Lab-5G"),
        (_end("cancelled", reason="changed my mind"), "it was cancelled: changed my mind"),
        (_end("failed"), "it has failed"),
    ],
)
async def test_an_end_is_told_with_what_it_said(end: TaskFinished, words: str) -> None:
    found = await lookup.find(_client(ends={ONE: end}, record=None, queue=None), ONE)
    assert lookup.told(found) == words


async def test_a_beginning_of_several_is_refused_and_names_them_wherever_they_are() -> None:
    client = _client(queue=_waits(ONE), record=[_recorded(OTHER, goal="turn on Wi-Fi")])
    with pytest.raises(Ambiguous, match=f"(?s)more than one.*{ONE}.*{OTHER}.*turn on Wi-Fi") as raised:
        await lookup.find(client, "f994")
    assert raised.value.exit_code == 5
    assert (await lookup.find(client, "f994b")).task == OTHER


async def test_an_older_decision_log_that_ignores_the_beginning_is_not_believed() -> None:
    with pytest.raises(NotFound, match="no task begins with abcd"):
        await lookup.find(_client(record=[_recorded(ONE)]), "abcd")


@pytest.mark.parametrize(
    ("there", "words"),
    [
        ({"queue": None}, "no executor answers"),
        ({"queue": WaitingRequests(complete=False)}, "just started"),
        ({"queue": WaitingRequests(omitted=3)}, "3 more wait"),
        ({"record": None}, "the decision-log does not answer"),
    ],
)
async def test_an_unknown_task_is_not_said_to_be_none_where_somebody_was_silent(
    there: dict[str, Any], words: str
) -> None:
    found, silent = await lookup.search(_client(**there), ONE)
    assert found is None
    assert words in "; ".join(silent)
    with pytest.raises(NotFound, match=words):
        await lookup.find(_client(**there), ONE)


async def test_a_task_on_its_way_from_the_queue_to_a_phone_is_looked_for_again() -> None:
    client = _client()
    world = cast("World", client)
    seen: list[str] = []

    async def begins_later(query: TasksQuery) -> TaskList:
        seen.append("looked")
        return TaskList(tasks=(_recorded(ONE),) if len(seen) > 1 else ())

    world.tasks = begins_later  # type: ignore[method-assign]
    assert (await lookup.find(client, ONE)).task == ONE


async def test_a_timeline_is_asked_for_by_a_beginning_and_is_none_for_what_waits() -> None:
    client = _client(queue=_waits(OTHER), record=[_recorded(ONE)])
    assert (await lookup.timeline(client, ONE[:5])).summary.task == ONE
    with pytest.raises(NotBegun, match="waits for a phone in pool any, it is the next"):
        await lookup.timeline(client, OTHER)


@pytest.mark.parametrize(("written", "read"), [("F994A29B…", "f994a29b"), (f" {ONE} ", ONE), ("f994...", "f994")])
def test_an_id_is_taken_as_it_was_printed_or_copied(written: str, read: str) -> None:
    assert _checked(written) == read


@pytest.mark.parametrize("written", ["", "f99", "0" * 32, "0000", f"{ONE}0", "wifi", "f994-a29b"])
def test_what_is_no_beginning_of_an_id_is_refused_in_words(written: str) -> None:
    with pytest.raises(click.BadParameter, match="is no task id: 32 digits"):
        _checked(written)


def _checked(written: str) -> str | None:
    command = click.Command("it")
    return task_id(click.Context(command), click.Argument(["task"]), written)
