"""Places on a screen. One unit everywhere: pixels of the screenshot's full resolution, origin at the top left."""

from typing import Annotated

from msgspec import Meta

from apex_schemas.structs import Wire

Pixel = Annotated[int, Meta(ge=-100_000, le=100_000)]


class Point(Wire, frozen=True, kw_only=True):
    x: Pixel
    y: Pixel


class Bounds(Wire, frozen=True, kw_only=True):
    """A rectangle; `right` and `bottom` are the first pixel outside it."""

    left: Pixel
    top: Pixel
    right: Pixel
    bottom: Pixel

    @property
    def width(self) -> int:
        return max(0, self.right - self.left)

    @property
    def height(self) -> int:
        return max(0, self.bottom - self.top)

    @property
    def area(self) -> int:
        return self.width * self.height

    @property
    def center(self) -> Point:
        return Point(x=(self.left + self.right) // 2, y=(self.top + self.bottom) // 2)

    def contains(self, point: Point) -> bool:
        return self.left <= point.x < self.right and self.top <= point.y < self.bottom

    def intersection(self, other: "Bounds") -> "Bounds | None":
        """What both cover, or None where they do not meet."""
        left, top = max(self.left, other.left), max(self.top, other.top)
        right, bottom = min(self.right, other.right), min(self.bottom, other.bottom)
        return Bounds(left=left, top=top, right=right, bottom=bottom) if left < right and top < bottom else None


class Size(Wire, frozen=True, kw_only=True):
    width: Annotated[int, Meta(ge=0, le=100_000)]
    height: Annotated[int, Meta(ge=0, le=100_000)]
