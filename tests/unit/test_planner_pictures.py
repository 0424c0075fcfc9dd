"""Pictures for the model, from a stream that may be read from a lagging replica."""

import hashlib
from typing import Any

import pytest

from apex_bus.connection import Stored
from apex_planner import pictures
from apex_planner.errors import PictureMissing
from apex_planner.pictures import BusPictures
from apex_schemas.geometry import Size
from apex_schemas.scene import ScreenshotRef

_DATA = b"\x89PNG"
_REFERENCE = ScreenshotRef(
    subject="shot.t.0.a", sha256=hashlib.sha256(_DATA).hexdigest(), bytes=4, size=Size(width=1, height=1)
)


class _Lagging:
    """Has the picture from a certain read on."""

    def __init__(self, *, from_read: int) -> None:
        self._from_read, self.reads = from_read, 0

    async def get(self, stream: str, subject: str) -> Stored | None:
        self.reads += 1
        if self.reads < self._from_read:
            return None
        return Stored(subject=subject, data=_DATA, sequence=1, timestamp_ns=0, headers={})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "_READ_AGAIN_S", 0.0)


async def test_a_picture_that_a_replica_has_not_heard_of_yet_is_read_again() -> None:
    bus: Any = _Lagging(from_read=3)
    assert (await BusPictures(bus).get(_REFERENCE)).data == _DATA


async def test_a_picture_that_does_not_come_is_missing() -> None:
    bus: Any = _Lagging(from_read=1_000)
    with pytest.raises(PictureMissing):
        await BusPictures(bus).get(_REFERENCE)
