"""Postgres against the task log: each message is there, once, and says the same."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

from apex_lab.chaos.evidence import Evidence
from apex_schemas.actions import tool_name
from apex_schemas.slots import Kind

Key = TypeVar("Key", bound=Hashable)


def compare(evidence: Evidence) -> dict[str, list[str]]:
    """What is missing, doubled or otherwise in Postgres."""
    tables = evidence.tables
    decisions = [_decision(each.subject) for each in evidence.decisions]
    found: dict[str, list[str]] = {
        "decisions_missing_in_postgres": _without(decisions, tables.decisions),
        "decisions_doubled_in_postgres": _doubled(tables.decisions),
        "decisions_only_in_postgres": _without(tables.decisions, decisions),
        "scenes_missing_in_postgres": _without(_turns(evidence, "scene"), tables.scenes),
        "steps_doubled_in_postgres": _doubled((task, turn) for task, turn, *_ in tables.steps),
        "tasks_doubled_in_postgres": _doubled(task for task, _ in tables.tasks),
    }
    steps = {
        (task, turn): (planned, intended, done, success)
        for task, turn, planned, intended, done, success in tables.steps
    }
    empty = (None, False, None, None)
    found["plans_missing_in_postgres"] = [
        str(key)
        for key, body in _turns(evidence, "planned").items()
        if steps.get(key, empty)[0] != tool_name(body.action)
    ]
    found["intents_missing_in_postgres"] = [
        str(key) for key in _turns(evidence, "acting") if not steps.get(key, empty)[1]
    ]
    found["events_missing_in_postgres"] = [
        str(key)
        for key, body in _turns(evidence, "event").items()
        if steps.get(key, empty)[2:] != (tool_name(body.action), body.success)
    ]
    statuses = dict(tables.tasks)
    found["ends_missing_in_postgres"] = [
        each.slot.task
        for each in evidence.stored
        if each.slot is not None and each.slot.kind == "finished" and statuses.get(each.slot.task) != each.body.status
    ]
    return found


def _decision(subject: str) -> tuple[str, int, int]:
    _, task, turn, call = subject.split(".")
    return task, int(turn), int(call)


def _turns(evidence: Evidence, kind: Kind) -> dict[tuple[str, int], Any]:
    return {
        (each.slot.task, each.slot.turn or 0): each.body
        for each in evidence.stored
        if each.slot is not None and each.slot.kind == kind
    }


def _without(wanted: Iterable[Key], there: Iterable[Key]) -> list[str]:
    known = set(there)
    return [str(each) for each in wanted if each not in known]


def _doubled(keys: Iterable[Hashable]) -> list[str]:
    return [str(key) for key, times in Counter(keys).items() if times > 1]
