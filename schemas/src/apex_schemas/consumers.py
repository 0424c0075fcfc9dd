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


def takes(consumer: Consumer, subject: str) -> bool:
    """Whether a message on this subject is among those that the consumer is given."""
    return any(_fits(pattern.split("."), subject.split(".")) for pattern in consumer.filters)


def _fits(pattern: list[str], tokens: list[str]) -> bool:
    for n, wanted in enumerate(pattern):
        if wanted == ">":
            return len(tokens) > n
        if n >= len(tokens) or wanted not in ("*", tokens[n]):
            return False
    return len(pattern) == len(tokens)


def consumer_of(service: str, stream: str, subject: str) -> Consumer | None:
    """Through which consumer a service was given a message; of several on a request the intake, which sees all."""
    tokens = subject.split(".")
    own = (device_consumer(tokens[1]),) if tokens[0] == "task" and len(tokens) > 1 else ()
    for consumer in (*SHARED_CONSUMERS, *own):
        if consumer.identity == service and consumer.stream == stream and takes(consumer, subject):
            return consumer
    return None
