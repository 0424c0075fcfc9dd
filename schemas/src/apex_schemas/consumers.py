"""The durable consumers: who pulls what from which stream. Set-up makes them from here, for the devices there are."""

from typing import Final

from apex_schemas.structs import Wire
from apex_schemas.subjects import Identity, request

_I = Identity


class Consumer(Wire, frozen=True, kw_only=True):
    """A durable pull consumer with explicit acknowledgement. `max_deliver` -1: only time or content ends a message."""

    name: str
    stream: str
    filters: tuple[str, ...]
    identity: Identity
    ack_wait_s: float = 10
    max_deliver: int = -1
    max_ack_pending: int = 1_000


SHARED_CONSUMERS: Final = (
    Consumer(
        name="PERCEPTION",
        stream="TASKS",
        filters=("task.*.*.0.started", "task.*.*.*.event"),
        identity=_I.PERCEPTION,
        max_deliver=1_000,
    ),
    Consumer(name="PLANNER", stream="TASKS", filters=("task.*.*.*.scene",), identity=_I.PLANNER, max_deliver=1_000),
    Consumer(
        name="WATCHDOG",
        stream="TASKS",
        filters=("task.*.*.0.started",),
        identity=_I.EXECUTOR,
        max_ack_pending=20_000,
    ),
    Consumer(name="INTAKE", stream="REQUESTS", filters=("request.>",), identity=_I.EXECUTOR, max_ack_pending=20_000),
    Consumer(name="CANCEL", stream="REQUESTS", filters=("cancel.*",), identity=_I.EXECUTOR),
    Consumer(
        name="DECISION_LOG_TASKS",
        stream="TASKS",
        filters=("task.>",),
        identity=_I.DECISION_LOG,
        ack_wait_s=15,
        max_ack_pending=5_000,
    ),
    Consumer(
        name="DECISION_LOG_DECISIONS",
        stream="DECISIONS",
        filters=("decision.>",),
        identity=_I.DECISION_LOG,
        ack_wait_s=15,
        max_ack_pending=1_000,
    ),
)

PLATFORM_POOLS: Final = ("android", "ios")


def pool_consumer(pool: str) -> Consumer:
    """Whoever is ready in the pool pulls from it. Short ack wait: a claim is quick, the session is opened before."""
    return Consumer(
        name=f"POOL_{pool}",
        stream="REQUESTS",
        filters=(request(pool),),
        identity=_I.EXECUTOR,
        ack_wait_s=5,
        max_ack_pending=1_000,
    )


def device_consumer(alias: str) -> Consumer:
    """What the driver of one device acts on, in order. More than one may be pending: after a crash the message that
    its last driver held stays pending until its ack wait, and must not keep the next one from the new driver."""
    return Consumer(
        name=f"DEVICE_{alias}",
        stream="TASKS",
        filters=(f"task.{alias}.*.*.planned", f"task.{alias}.*.end.finished"),
        identity=_I.EXECUTOR,
        ack_wait_s=10,
        max_ack_pending=16,
    )


def consumers(devices: tuple[str, ...]) -> tuple[Consumer, ...]:
    """All consumers of an installation with these devices."""
    pools = ("any", *PLATFORM_POOLS, *devices)
    return (*SHARED_CONSUMERS, *map(pool_consumer, pools), *map(device_consumer, devices))
