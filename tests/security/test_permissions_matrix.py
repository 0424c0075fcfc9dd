"""Every identity against every subject and API that there is: what stands under its name it may, all else it may not.

Written by hand from the design, not made from the table that it tests. A server of its own: what is allowed is done.
"""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import components
import pytest
import pytest_asyncio
from security.conftest import Guarded, start_guarded

from apex_bus.connection import flushed
from apex_schemas.subjects import Identity

I = Identity  # noqa: E741
T = "0af7651916cd43dd8448eb211c80319c"
EVERYONE = tuple(Identity)
OUTSIDE = {I.CLIENT, I.OPERATOR, I.GUEST}
LOOP = {I.PERCEPTION, I.PLANNER, I.ENDPOINT, I.EXECUTOR, I.DECISION_LOG}
NOBODY: set[Identity] = set()
GET, NEXT, ACK, API = "$JS.API.DIRECT.GET", "$JS.API.CONSUMER.MSG.NEXT", "$JS.ACK", "$JS.API"

PUBLISH: dict[str, set[Identity]] = {
    # The log.
    f"task.sim-1.{T}.0.started": {I.EXECUTOR},
    f"task.sim-1.{T}.1.scene": {I.PERCEPTION},
    f"task.sim-1.{T}.1.planned": {I.PLANNER},
    f"task.sim-1.{T}.1.acting": {I.EXECUTOR},
    f"task.sim-1.{T}.1.event": {I.EXECUTOR},
    f"task.sim-1.{T}.end.finished": {I.EXECUTOR, I.PLANNER, I.PERCEPTION},
    f"task.sim-1.{T}.1.other": NOBODY,
    f"task.sim-1.{T}.1.planned.more": NOBODY,
    # Requests.
    "request.any": OUTSIDE,
    f"cancel.{T}": OUTSIDE,
    f"approve.{T}.1": {I.OPERATOR},
    # Records.
    "device.sim-1": {I.EXECUTOR},
    f"claim.{T}.1": {I.PLANNER, I.ENDPOINT},
    f"shot.{T}.1.a": {I.PERCEPTION},
    f"decision.{T}.1.0": {I.PLANNER, I.ENDPOINT},
    "dead.executor": {I.EXECUTOR},
    "dead.perception": {I.PERCEPTION},
    "dead.planner": {I.PLANNER},
    "dead.planner-decision": {I.ENDPOINT},
    "dead.decision-log": {I.DECISION_LOG},
    # Questions.
    "session.sim-1": {I.PERCEPTION},
    "control.sim-1": {I.OPERATOR},
    "again.executor.INTAKE": {I.OPERATOR},
    "again.planner.PLANNER": {I.OPERATOR},
    "again.perception.PERCEPTION": {I.OPERATOR},
    "again.decision-log.DECISION_LOG_TASKS": {I.OPERATOR},
    "again.planner-decision.ANY": NOBODY,
    "again.executor": NOBODY,
    "planner-decision.decide": {I.PLANNER},
    "query.timeline": OUTSIDE,
    "query.tasks": OUTSIDE,
    "query.devices": OUTSIDE,
    "query.decisions": {I.OPERATOR},
    "$SRV.PING": OUTSIDE,
    "$SRV.PING.perception": OUTSIDE | {I.EXECUTOR},
    "$SRV.PING.planner": OUTSIDE | {I.EXECUTOR},
    "$SRV.PING.planner-decision": OUTSIDE | {I.PLANNER},
    "$SRV.STATS.executor": OUTSIDE,
    # Single reads, by subject.
    f"{GET}.TASKS.task.sim-1.{T}.0.started": {I.EXECUTOR, I.PLANNER, I.PERCEPTION, I.DECISION_LOG},
    f"{GET}.TASKS.task.sim-1.{T}.1.scene": {I.EXECUTOR, I.PERCEPTION, I.PLANNER, I.DECISION_LOG},
    f"{GET}.TASKS.task.sim-1.{T}.1.planned": {I.EXECUTOR, I.PLANNER, I.DECISION_LOG},
    f"{GET}.TASKS.task.sim-1.{T}.1.acting": {I.EXECUTOR, I.DECISION_LOG},
    f"{GET}.TASKS.task.sim-1.{T}.1.event": {I.EXECUTOR, I.PLANNER, I.PERCEPTION, I.DECISION_LOG},
    f"{GET}.TASKS.task.*.{T}.end.finished": {I.EXECUTOR, I.PLANNER, I.PERCEPTION, I.DECISION_LOG, *OUTSIDE},
    f"{GET}.TASKS.task.sim-1.{T}.>": {I.EXECUTOR},
    f"{GET}.REQUESTS.request.any": NOBODY,
    f"{GET}.REQUESTS.approve.{T}.1": {I.EXECUTOR},
    f"{GET}.DEVICES.device.sim-1": {I.EXECUTOR, I.PERCEPTION},
    f"{GET}.CLAIMS.claim.{T}.1": {I.EXECUTOR, I.PLANNER, I.ENDPOINT},
    f"{GET}.SHOTS.shot.{T}.1.a": {I.PLANNER},
    f"{GET}.DECISIONS.decision.{T}.1.0": {I.PLANNER, I.ENDPOINT, I.DECISION_LOG},
    f"{GET}.DEAD.dead.executor": {I.OPERATOR},
    # Whole streams, by sequence or in batches.
    f"{GET}.DEAD": {I.OPERATOR},
    f"{GET}.REQUESTS": {I.EXECUTOR},
    **{f"{GET}.{s}": NOBODY for s in ("TASKS", "DEVICES", "CLAIMS", "SHOTS", "DECISIONS")},
    **{f"{API}.STREAM.MSG.GET.{s}": NOBODY for s in ("TASKS", "REQUESTS", "SHOTS", "DECISIONS", "DEAD")},
    # Consumers.
    f"{NEXT}.TASKS.PERCEPTION": {I.PERCEPTION},
    f"{NEXT}.TASKS.PLANNER": {I.PLANNER},
    f"{NEXT}.TASKS.WATCHDOG": {I.EXECUTOR},
    f"{NEXT}.TASKS.DEVICE_sim-1": {I.EXECUTOR},
    f"{NEXT}.TASKS.DEVICE_other": NOBODY,
    f"{NEXT}.REQUESTS.INTAKE": {I.EXECUTOR},
    f"{NEXT}.REQUESTS.CANCEL": {I.EXECUTOR},
    f"{NEXT}.REQUESTS.POOL_any": {I.EXECUTOR},
    f"{NEXT}.TASKS.DECISION_LOG_TASKS": {I.DECISION_LOG},
    f"{NEXT}.DECISIONS.DECISION_LOG_DECISIONS": {I.DECISION_LOG},
    f"{NEXT}.SHOTS.ANY": NOBODY,
    f"{ACK}.TASKS.PLANNER.1.1.1.1.0": {I.PLANNER},
    f"{ACK}.TASKS.DECISION_LOG_TASKS.1.1.1.1.0": {I.DECISION_LOG},
    f"{ACK}.TASKS.OTHER.1.1.1.1.0": NOBODY,
    f"{API}.CONSUMER.INFO.TASKS.PLANNER": {I.PLANNER, I.PROVISIONER},
    f"{API}.CONSUMER.LIST.TASKS": NOBODY,
    f"{API}.CONSUMER.NAMES.TASKS": NOBODY,
    f"{API}.CONSUMER.CREATE.TASKS": NOBODY,
    f"{API}.CONSUMER.CREATE.TASKS.MINE": {I.PROVISIONER},
    f"{API}.CONSUMER.CREATE.SHOTS.MINE.shot.>": {I.PROVISIONER},
    f"{API}.CONSUMER.DURABLE.CREATE.TASKS.MINE": NOBODY,
    f"{API}.CONSUMER.DELETE.TASKS.PLANNER": NOBODY,
    f"{API}.CONSUMER.PAUSE.TASKS.PLANNER": NOBODY,
    f"{API}.CONSUMER.UNPIN.TASKS.PLANNER": NOBODY,
    f"{API}.CONSUMER.RESET.TASKS.PLANNER": NOBODY,
    # Streams: a mirror or a source of one is a stream made under another name.
    f"{API}.INFO": NOBODY,
    f"{API}.STREAM.LIST": NOBODY,
    f"{API}.STREAM.NAMES": NOBODY,
    f"{API}.STREAM.INFO.TASKS": {I.PROVISIONER},
    f"{API}.STREAM.CREATE.TASKS": {I.PROVISIONER},
    f"{API}.STREAM.CREATE.MIRROR": NOBODY,
    f"{API}.STREAM.UPDATE.TASKS": {I.PROVISIONER},
    f"{API}.STREAM.DELETE.TASKS": NOBODY,
    f"{API}.STREAM.PURGE.TASKS": NOBODY,
    f"{API}.STREAM.MSG.DELETE.TASKS": NOBODY,
    f"{API}.STREAM.SNAPSHOT.TASKS": NOBODY,
    f"{API}.STREAM.RESTORE.TASKS": NOBODY,
    f"{API}.STREAM.PEER.REMOVE.TASKS": NOBODY,
    f"{API}.STREAM.LEADER.STEPDOWN.TASKS": NOBODY,
    f"{API}.ACCOUNT.PURGE.APEX": NOBODY,
    f"{API}.META.LEADER.STEPDOWN": NOBODY,
    # The server's own, answers to others, and what nobody has thought of.
    "$SYS.REQ.SERVER.PING": NOBODY,
    "$SYS.REQ.ACCOUNT.PING": NOBODY,
    **{f"_INBOX_{each}.x": NOBODY for each in EVERYONE},
    "_INBOX.x": NOBODY,
    "_R_.x": NOBODY,
    "anything": NOBODY,
}

SUBSCRIBE: dict[str, set[Identity]] = {
    f"task.*.{T}.0.started": OUTSIDE,
    f"task.*.{T}.*.planned": OUTSIDE,
    f"task.*.{T}.*.event": OUTSIDE,
    f"task.*.{T}.end.finished": OUTSIDE,
    f"task.*.{T}.*.scene": NOBODY,
    f"task.*.{T}.*.acting": NOBODY,
    "task.>": NOBODY,
    "request.*": NOBODY,
    "cancel.*": NOBODY,
    "approve.>": NOBODY,
    "device.*": NOBODY,
    "claim.>": NOBODY,
    "shot.>": NOBODY,
    "decision.>": NOBODY,
    "dead.*": NOBODY,
    "session.*": {I.EXECUTOR},
    "control.*": {I.EXECUTOR},
    "again.executor.*": {I.EXECUTOR},
    "again.planner.PLANNER": {I.PLANNER},
    "again.perception.*": {I.PERCEPTION},
    "again.decision-log.*": {I.DECISION_LOG},
    "again.*.*": NOBODY,
    "again.>": NOBODY,
    "query.devices": {I.EXECUTOR},
    "query.timeline": {I.DECISION_LOG},
    "query.tasks": {I.DECISION_LOG},
    "query.decisions": {I.DECISION_LOG},
    "planner-decision.decide": {I.ENDPOINT},
    "$SRV.PING": LOOP,
    **{f"$SRV.PING.{each}": {each} for each in LOOP},
    **{f"_INBOX_{each}.>": {each} for each in EVERYONE},
    "_INBOX.>": OUTSIDE,
    "$JS.>": NOBODY,
    "$JS.API.>": NOBODY,
    "$JS.ACK.>": NOBODY,
    "$JS.EVENT.ADVISORY.>": NOBODY,
    "$SYS.>": NOBODY,
    "_R_.>": NOBODY,
    "*": NOBODY,
    ">": NOBODY,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def alone(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Guarded]:
    components.nats()
    async with start_guarded(Path(tmp_path_factory.mktemp("nats"))) as guarded:
        yield guarded


def test_the_matrix_has_more_no_than_yes() -> None:
    cells = [identity in may for table in (PUBLISH, SUBSCRIBE) for may in table.values() for identity in EVERYONE]
    assert cells.count(False) > 1_000
    assert cells.count(True) > 100


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("verb", ["publish", "subscribe"])
@pytest.mark.parametrize("identity", EVERYONE)
async def test_an_identity_may_do_what_stands_under_its_name_and_nothing_else(
    alone: Guarded, identity: Identity, verb: str
) -> None:
    table = PUBLISH if verb == "publish" else SUBSCRIBE
    async with alone.client(identity) as (client, refusals):
        for subject in table:
            if verb == "publish":
                await client.publish(subject, b"")
            else:
                await client.subscribe(subject)
        async with asyncio.timeout(30):
            await flushed(client)
        said = "\n".join(refusals)
    refused = {subject for subject in table if f'"{subject.lower()}"' in said}  # the client lowers what it is told
    may = {subject for subject, identities in table.items() if identity in identities}
    assert {"granted": may & refused, "allowed besides": set(table) - refused - may} == {
        "granted": set(),
        "allowed besides": set(),
    }
