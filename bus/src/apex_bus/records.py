"""Last-value records that are changed by compare-and-set alone: who drives a device, who is deciding a turn."""

from apex_bus.connection import FENCE_REFUSALS, Bus, Refused, Stored
from apex_bus.errors import LogUnavailable
from apex_schemas import envelope
from apex_schemas.errors import WireError
from apex_schemas.structs import Wire


class Record:
    """One subject of a stream that keeps the last message only."""

    def __init__(self, bus: Bus, stream: str, subject: str) -> None:
        self._bus, self._stream, self.subject = bus, stream, subject

    async def read(self) -> Stored | None:
        return await self._bus.get(self._stream, self.subject)

    async def write(
        self, body: Wire, *, attempt: str, last: int, ttl_s: float | None = None, device: str | None = None
    ) -> int | None:
        """Replace the record if its sequence still is `last` (0: if there is none). None when somebody else wrote.

        With `ttl_s` the record vanishes unless it is written again in time; every write must carry it, since a
        record written without would stay for ever. Raises LogUnavailable when the write had no answer and no effect
        that can be seen yet: repeat it with the same attempt.
        """
        data = envelope.encode(body, device=device, attempt=attempt)
        headers = {
            "Nats-Msg-Id": f"{self.subject}:{attempt}",
            "Nats-Expected-Last-Subject-Sequence": str(last),
        }
        if ttl_s is not None:
            headers["Nats-TTL"] = f"{max(1, round(ttl_s))}s"
        unanswered: LogUnavailable | None = None
        try:
            return await self._bus.publish(self.subject, data, headers=headers)
        except Refused as refused:
            if refused.code not in FENCE_REFUSALS:
                raise
        except LogUnavailable as error:
            unanswered = error  # it may have been stored all the same
        stored = await self.read()
        if stored is not None and _attempt(stored) == attempt:
            return stored.sequence
        if unanswered is not None and (stored.sequence if stored else 0) == last:
            raise unanswered
        return None


def _attempt(stored: Stored) -> str | None:
    """Whose write a record is. None where it is nobody's: the server stores its acknowledgement there for any client
    that names this subject as the place for it."""
    try:
        return envelope.decode(stored.data).attempt
    except WireError:
        return None
