"""The coordinates of a source made one space: pixels among points, a portrait space behind a turned screen.

Consumes the neutral tree and what is known of the screen; emits each node's box in points, as the screen is turned.
Only XCUITest sends such sources; on Android every box is in pixels of the screen as it is turned.
"""

from collections.abc import Sequence

from apex_perception.nodes import Box, Node, Tree
from apex_perception.screen import Rotation

_FACTORS = (3.0, 2.0)
_LEAST = 40
_SLACK = 2.0


def in_points(tree: Tree, scale: float | None) -> tuple[list[Box | None], str | None]:
    """The boxes in one unit, and a note when some were in another.

    A container that is its parent's box times the screen's scale, on all four sides, is in pixels with all it holds.
    `scale` is pixels per point where it is known.
    """
    nodes = tree.nodes
    boxes = [node.box for node in nodes]
    if tree.dialect != "ios":
        return boxes, None
    factors: tuple[float, ...] = (scale,) if scale is not None and scale > 1 else _FACTORS
    note: str | None = None
    factor, end = 1.0, 0
    for index, node in enumerate(nodes):
        box = node.box
        if box is None:
            continue
        if index >= end and tree.ends[index] > index + 1:
            factor = _times(box, _around(nodes, boxes, node.parent), factors)
            if factor > 1:
                end, factors = tree.ends[index], (factor,)
                note = "some places were in pixels and the rest in points; all are in points now"
        if index < end:
            boxes[index] = _divided(box, factor)
    return boxes, note


def turned(boxes: Sequence[Box | None], portrait: tuple[int, int], rotation: Rotation) -> list[Box | None]:
    """Boxes of a portrait space of this size as the screen shows them, `rotation` degrees clockwise."""
    width, height = portrait
    match rotation:
        case 0:
            return list(boxes)
        case 90:
            return [b and (b[1], width - b[2], b[3], width - b[0]) for b in boxes]
        case 180:
            return [b and (width - b[2], height - b[3], width - b[0], height - b[1]) for b in boxes]
        case 270:
            return [b and (height - b[3], b[0], height - b[1], b[2]) for b in boxes]


def _around(nodes: Sequence[Node], boxes: Sequence[Box | None], index: int) -> Box | None:
    while index >= 0:
        box = boxes[index]
        if box is not None and box[2] - box[0] >= _LEAST and box[3] - box[1] >= _LEAST:
            return box
        index = nodes[index].parent
    return None


def _times(box: Box, around: Box | None, factors: tuple[float, ...]) -> float:
    """The factor by which a box is the box around it; 1 when it is by none."""
    for factor in factors if around is not None else ():
        if all(abs(side - other * factor) <= _SLACK * factor for side, other in zip(box, around or box, strict=True)):
            return factor
    return 1.0


def _divided(box: Box, factor: float) -> Box:
    left, top, right, bottom = (round(side / factor) for side in box)
    return left, top, right, bottom
