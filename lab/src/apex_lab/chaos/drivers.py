"""Which process drives a phone at present, so that a kill can be aimed at the one that is about to act."""

from collections.abc import Callable, Mapping

from apex_bus.connection import Bus
from apex_bus.errors import Transient
from apex_schemas import envelope, subjects
from apex_schemas.devices import DeviceRecord
from apex_schemas.errors import WireError


class Drivers:
    """Reads device records as an executor may. `workers` names the process behind each worker so far."""

    def __init__(self, bus: Bus, workers: Callable[[], Mapping[str, str]]) -> None:
        self._bus, self._workers = bus, workers
        self._known: dict[str, str] = {}

    async def of(self, device: str) -> str | None:
        """The process; None when that cannot be told."""
        try:
            stored = await self._bus.get("DEVICES", subjects.device(device), timeout_s=1)
            body = envelope.decode(stored.data).body if stored else None
        except (Transient, WireError):
            return None
        if not isinstance(body, DeviceRecord):
            return None
        if body.worker not in self._known:
            self._known = dict(self._workers())
        return self._known.get(body.worker)
