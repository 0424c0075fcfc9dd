"""Where a finger meets a thing: the middle of its largest free visible part, or the point that a page tried itself.

Consumes places and what covers what; emits points in screen pixels, None for what is wholly covered.
"""

from collections.abc import Iterable, Sequence

from apex_perception.geometry import Covers, largest_free
from apex_perception.nodes import Box, Tree
from apex_schemas.geometry import Point

_SOLID = frozenset(("bar", "tabs", "dialog", "keyboard"))


def covers(tree: Tree, seen: Sequence[Box | None], acting: Sequence[bool], above: Iterable[int]) -> set[int]:
    """What takes the touches of what is painted below it: whatever acts, and windows and bars that lie `above`.

    What a page shows is left out: its hit test has told already what is covered.
    """
    nodes, ios = tree.nodes, tree.dialect == "ios"
    found = {
        index for index, acts in enumerate(acting) if acts and not nodes[index].web and (nodes[index].shown or ios)
    }
    for index in above:
        node = nodes[index]
        window = node.parent < 0 and not ios  # on iOS that is the application itself
        if seen[index] is not None and not node.web and (window or node.kind in _SOLID):
            found.add(index)
    return found


class Taps:
    """Finds tap points on one screen. `modal` is the dialog that shuts off what lies below it."""

    def __init__(
        self, tree: Tree, boxes: Sequence[Box | None], seen: Sequence[Box | None], ranks: Sequence[int],
        covers: Covers, *, modal: int | None,
    ) -> None:  # fmt: skip
        self._nodes, self._ends = tree.nodes, tree.ends
        self._boxes, self._seen, self._ranks, self._covers, self._modal = boxes, seen, ranks, covers, modal

    def point(self, index: int, box: Box, inner: Sequence[int]) -> Point | None:
        """For node `index`, whose visible part is `box`; `inner` are the nodes inside it that act by themselves."""
        node = self._nodes[index]
        if node.covered or (self._modal is not None and not self._reaches_past(index, self._modal)):
            return None
        over = [cover for other in self._covers.over(index, box) if (cover := self._seen[other]) is not None]
        if node.tap is not None and (whole := self._boxes[index]) is not None:
            tried = _at(node.tap, whole, box)
            if not any(_holds(cover, tried) for cover in over):
                return tried
        free = largest_free(box, over) if over else box
        if free is None:
            return None
        parts = [part for other in inner if (part := self._seen[other]) is not None]
        if parts:  # what acts inside it is left free if that leaves anything; it never covers
            free = largest_free(box, (*over, *parts)) or free
        return Point(x=(free[0] + free[2]) // 2, y=(free[1] + free[3]) // 2)

    def _reaches_past(self, index: int, modal: int) -> bool:
        """Whether a modal dialog leaves a node alone: it lies in it, around it, or is painted above it."""
        inside = modal <= index < self._ends[modal] or index <= modal < self._ends[index]
        return inside or self._ranks[index] > self._ranks[modal]


def _at(share: tuple[float, float], whole: Box, part: Box) -> Point:
    """The point at these shares of a box, kept within the part of it that is seen."""
    x = whole[0] + int(share[0] * (whole[2] - whole[0]))
    y = whole[1] + int(share[1] * (whole[3] - whole[1]))
    return Point(x=min(max(x, part[0]), part[2] - 1), y=min(max(y, part[1]), part[3] - 1))


def _holds(box: Box, point: Point) -> bool:
    return box[0] <= point.x < box[2] and box[1] <= point.y < box[3]
