"""The picture as a model sees it: cut down to what every provider takes at full detail, and points mapped back.

Providers shrink larger pictures before the model sees them, and answer in pixels of what it saw. So a picture is sent
no larger than all of them leave alone, its size is told, and a point is mapped back to the screen per axis.
"""

from typing import Final, NamedTuple

from apex_schemas.geometry import Point, Size

LONG_EDGE: Final = 1_568
SHORT_EDGE: Final = 768
MOST_PIXELS: Final = 1_150_000
"""Anthropic leaves alone what has at most 1,568 pixels a side and about 1.15 megapixels, OpenAI (detail: high) what
fits into 2,048 a side with a short side of 768. The smaller of each holds for both, whoever the endpoint asks."""


class View(NamedTuple):
    """Two measures of one screen: `seen` is what the model names points in, `screen` what the phone is touched in."""

    seen: Size
    screen: Size

    def point(self, x: int, y: int) -> Point | None:
        """The point on the screen; None when it lies outside of what was seen. Pixels map by their middles."""
        if not (0 <= x < max(self.seen.width, 1) and 0 <= y < max(self.seen.height, 1)):
            return None
        return Point(
            x=_mapped(x, self.seen.width, self.screen.width), y=_mapped(y, self.seen.height, self.screen.height)
        )


def _mapped(value: int, seen: int, screen: int) -> int:
    return value if seen == screen or seen < 1 else min(screen - 1, int((value + 0.5) * screen / seen))


def fit(size: Size) -> Size:
    """The size in which a picture of `size` is sent."""
    long, short = max(size.width, size.height, 1), max(min(size.width, size.height), 1)
    scale = min(1.0, LONG_EDGE / long, SHORT_EDGE / short, (MOST_PIXELS / (long * short)) ** 0.5)
    if scale == 1.0:
        return size
    return Size(width=max(1, int(size.width * scale)), height=max(1, int(size.height * scale)))
