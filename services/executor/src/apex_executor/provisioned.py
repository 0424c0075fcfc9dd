"""Whether NATS has the consumers of a device, and lets this executor use them.

Asked on a connection of its own: a refusal on the executor's would end its process. Since consumers are listed one by
one in the server's permissions, a device that is new to the installation has neither until it is provisioned.
"""

from typing import Final

from apex_bus.connection import connect
from apex_bus.errors import BusError, Transient
from apex_bus.settings import BusSettings
from apex_executor.settings import DeviceConfig
from apex_schemas.consumers import device_consumer, pool_consumer
from apex_schemas.subjects import Identity

_ANSWER_S: Final = 2.0
_CONNECT_S: Final = 10.0
_DO: Final = (
    "name it in APEX_DEVICES, run `python -m apex_bus.credentials`, have the NATS server read its configuration again, "
    "and run `python -m apex_bus.provision`"
)


async def missing(settings: BusSettings, config: DeviceConfig) -> str | None:
    """What the server lacks for a device, and what to do; None when it lacks nothing. Raises Transient."""
    try:
        bus = await connect(Identity.EXECUTOR, settings, timeout_s=_CONNECT_S)
    except BusError as error:
        raise Transient(str(error)) from error
    try:
        for consumer in (*map(pool_consumer, (config.alias, *config.pools)), device_consumer(config.alias)):
            try:
                info = await bus.api(f"CONSUMER.INFO.{consumer.stream}.{consumer.name}", timeout_s=_ANSWER_S)
            except Transient:
                if bus.fatal.done():
                    return f"NATS does not let the executor use {consumer.name}: {_DO}"
                raise
            if "error" in info:
                return f"NATS has no consumer {consumer.name}: {_DO}"
    finally:
        await bus.close()
    return None
