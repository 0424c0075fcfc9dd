"""Where the content of something that scrolls goes on, as far as the page source shows it for certain.

iOS and pages say where things are beyond the edge. Android cuts places at the edge, where a row lower than its like
shows that there is more of it; a list that ends with a whole row says nothing.
"""

from collections.abc import Sequence
from statistics import median
from typing import Literal

from apex_perception.nodes import Box, Tree

Side = Literal["above", "below", "left", "right"]
_SLACK = 2
_CUT = 0.9
_MOST_LOOKED_AT = 3_000


def beyond(tree: Tree, index: int, boxes: Sequence[Box | None]) -> tuple[Side, ...]:
    """The sides of node `index` beyond which its content certainly goes on. `boxes` are not clipped."""
    node, box = tree.nodes[index], boxes[index]
    if node.more or box is None:
        return node.more
    sides = _outside(box, [boxes[inner] for inner in range(index + 1, min(tree.ends[index], index + _MOST_LOOKED_AT))])
    if not sides and tree.dialect == "android":
        sides = _cut_rows(tree, index, box, boxes)
    return tuple(side for side in ("above", "below", "left", "right") if side in sides)


def _outside(box: Box, inner: Sequence[Box | None]) -> set[Side]:
    left, top, right, bottom = box
    sides: set[Side] = set()
    for each in inner:
        if each is None or each[0] >= each[2] or each[1] >= each[3]:
            continue
        if each[0] < right and left < each[2]:
            if each[1] < top - _SLACK:
                sides.add("above")
            if each[3] > bottom + _SLACK:
                sides.add("below")
        if each[1] < bottom and top < each[3]:
            if each[0] < left - _SLACK:
                sides.add("left")
            if each[2] > right + _SLACK:
                sides.add("right")
    return sides


def _cut_rows(tree: Tree, index: int, box: Box, boxes: Sequence[Box | None]) -> set[Side]:
    rows = [place for child in tree.children(index) if (place := boxes[child]) is not None]
    if len(rows) < 3:
        return set()
    sides: set[Side] = set()
    heights = [row[3] - row[1] for row in rows]
    if rows[0][3] <= rows[1][1] + _SLACK:  # one below the other
        usual = median(heights)
        if rows[0][1] <= box[1] + _SLACK and heights[0] < _CUT * usual:
            sides.add("above")
        if rows[-1][3] >= box[3] - _SLACK and heights[-1] < _CUT * usual:
            sides.add("below")
    elif rows[0][2] <= rows[1][0] + _SLACK:  # one beside the other
        widths = [row[2] - row[0] for row in rows]
        usual = median(widths)
        if rows[0][0] <= box[0] + _SLACK and widths[0] < _CUT * usual:
            sides.add("left")
        if rows[-1][2] >= box[2] - _SLACK and widths[-1] < _CUT * usual:
            sides.add("right")
    return sides
