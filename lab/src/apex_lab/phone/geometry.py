"""Rectangles in window units (Android: pixels; iOS: points); right and bottom are exclusive, as in Android's bounds."""

from __future__ import annotations

from typing import NamedTuple


class Point(NamedTuple):
    """A place on the screen, in window units (Android: pixels; iOS: points)."""

    x: int
    y: int


class Rect(NamedTuple):
    """A rectangle; empty when it has no area."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def height(self) -> int:
        return self.bottom - self.top

    @property
    def empty(self) -> bool:
        return self.right <= self.left or self.bottom <= self.top

    @property
    def center(self) -> Point:
        return Point((self.left + self.right) // 2, (self.top + self.bottom) // 2)

    def holds(self, point: Point) -> bool:
        return self.left <= point.x < self.right and self.top <= point.y < self.bottom

    def clip(self, other: Rect) -> Rect:
        """The part of this rectangle inside the other; may be empty."""
        return Rect(
            max(self.left, other.left),
            max(self.top, other.top),
            min(self.right, other.right),
            min(self.bottom, other.bottom),
        )

    def inset(self, by: int) -> Rect:
        return Rect(self.left + by, self.top + by, self.right - by, self.bottom - by)

    def times(self, by: int) -> Rect:
        """In finer units: points to pixels."""
        return Rect(self.left * by, self.top * by, self.right * by, self.bottom * by)

    def bounds(self) -> str:
        """As a page source writes it: ``[left,top][right,bottom]``."""
        return f"[{self.left},{self.top}][{self.right},{self.bottom}]"

    def wire(self) -> dict[str, int]:
        """As the WebDriver protocol writes a rect."""
        return {"x": self.left, "y": self.top, "width": self.width, "height": self.height}
