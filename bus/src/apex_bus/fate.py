"""What a handler's outcome means for its message: one table, for messages that are delivered and that come again.

| the handler | the message |
|---|---|
| returns Done | is done with |
| returns Later; raises LogTorn or Transient | comes again after a delay |
| raises UnknownKind | is skipped: a newer version's message is none of our business |
| raises another WireError | is dead, since it is wrong for ever |
| raises any other error | is failing: a bug, which may be mended |
| is cancelled | has no fate: somebody will get it again |
"""

import logging
from typing import Final, NamedTuple

from apex_bus.delivery import Delivery, Done, Handler, Later
from apex_bus.errors import NotPermitted, StoreFull, Transient
from apex_schemas.errors import LogTorn, SubjectMismatch, UnknownKind, WireError

log = logging.getLogger(__name__)

_TORN_DELAY_S: Final = 0.2
_COPIED: Final = "Nats-Sequence"
"""A header that the server puts on what it reads for a client, whose reply subject may have been one of a stream."""


class Skipped(NamedTuple):
    reason: str


class Waits(NamedTuple):
    """As Later, for a reason that the handler did not choose. `level` is how loudly it is said."""

    reason: str
    delay_s: float
    level: int = logging.INFO


class Dead(NamedTuple):
    reason: str


class Failing(NamedTuple):
    error: Exception


Fate = Done | Later | Waits | Skipped | Dead | Failing


async def fate_of(handle: Handler, delivery: Delivery) -> Fate:
    """Run the handler. Raises NotPermitted, which is no message's fault."""
    try:
        if _COPIED in delivery.headers:
            raise SubjectMismatch(delivery.subject, "another place: the server read it there for somebody")
        return await handle(delivery)
    except UnknownKind as error:
        return Skipped(str(error))
    except LogTorn as error:
        return Waits(str(error), _TORN_DELAY_S)
    except Transient as error:
        level = logging.WARNING if isinstance(error, StoreFull) else logging.INFO
        return Waits(str(error), error.delay_s, level)
    except NotPermitted:
        raise
    except WireError as error:
        return Dead(str(error))
    except Exception as error:
        log.exception("handler failed on %s", delivery.subject)
        return Failing(error)
