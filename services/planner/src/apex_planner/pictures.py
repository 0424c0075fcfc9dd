"""Screenshots for the model: read from SHOTS by the reference in a Scene, held against its hash, never kept."""

import hashlib

from apex_bus.connection import Bus
from apex_planner.errors import PictureMissing
from apex_schemas.decision import Picture
from apex_schemas.scene import ScreenshotRef


class BusPictures:
    """The exception to the Perception Boundary: the current turn's picture."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def get(self, reference: ScreenshotRef) -> Picture:
        """Raises PictureMissing when it has expired, or is not the picture that the Scene means."""
        stored = await self._bus.get("SHOTS", reference.subject)
        if stored is None or hashlib.sha256(stored.data).hexdigest() != reference.sha256:
            raise PictureMissing(reference.subject)
        return Picture(data=stored.data, media_type=reference.media_type, size=reference.size, sha256=reference.sha256)
