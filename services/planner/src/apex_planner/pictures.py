"""Screenshots for the model: read from SHOTS by the reference in a Scene, held against its hash, never kept."""

import asyncio
import hashlib
from typing import Final

from apex_bus.connection import Bus
from apex_planner.errors import PictureMissing
from apex_schemas.decision import Picture
from apex_schemas.scene import ScreenshotRef

_READS: Final = 12
_READ_AGAIN_S: Final = 0.25
"""The picture is stored before the Scene that names it, but a lagging replica may not have heard of it yet."""


class BusPictures:
    """The exception to the Perception Boundary: the current turn's picture."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def get(self, reference: ScreenshotRef) -> Picture:
        """Raises PictureMissing when it has expired, or is not the picture that the Scene means."""
        stored = await self._bus.get("SHOTS", reference.subject)
        for _ in range(_READS):
            if stored is not None:
                break
            await asyncio.sleep(_READ_AGAIN_S)
            stored = await self._bus.get("SHOTS", reference.subject)
        if stored is None or hashlib.sha256(stored.data).hexdigest() != reference.sha256:
            raise PictureMissing(reference.subject)
        return Picture(data=stored.data, media_type=reference.media_type, size=reference.size, sha256=reference.sha256)
