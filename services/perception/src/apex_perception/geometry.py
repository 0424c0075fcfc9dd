"""Where things are and what of them can be touched: clipping, paint order, cover, the largest free rectangle.

All boxes here are in screen pixels. A descendant never covers its ancestor; what is painted later and takes touches
covers what is below it.
"""

from collections.abc import Iterable, Sequence

from apex_perception.nodes import Box, Node, Tree

_LIMIT = 100_000
_MOST_PIECES = 24
_MANY_COVERS = 100
_COLUMNS, _ROWS = 6, 48
_MANY_CELLS = 24
_CLIPPING = frozenset(("list", "scroll", "pager", "web"))


def meet(one: Box, other: Box) -> Box | None:
    """What both cover; None where they do not meet."""
    left, top = max(one[0], other[0]), max(one[1], other[1])
    right, bottom = min(one[2], other[2]), min(one[3], other[3])
    return (left, top, right, bottom) if left < right and top < bottom else None


def area(box: Box | None) -> int:
    return 0 if box is None else max(0, box[2] - box[0]) * max(0, box[3] - box[1])


def inside(inner: Box, outer: Box) -> bool:
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def scaled(boxes: Sequence[Box | None], factor: tuple[float, float]) -> list[Box | None]:
    """Boxes in pixels, kept within what a message can carry."""
    across, down = factor
    if across == down == 1.0:
        return [box if box is None or (min(box) >= -_LIMIT and max(box) <= _LIMIT) else _kept(box) for box in boxes]
    return [
        None
        if box is None
        else _kept((round(box[0] * across), round(box[1] * down), round(box[2] * across), round(box[3] * down)))
        for box in boxes
    ]


def _kept(box: Box) -> Box:
    left, top, right, bottom = (max(-_LIMIT, min(_LIMIT, side)) for side in box)
    return left, top, right, bottom


def visible(tree: Tree, boxes: Sequence[Box | None], screen: Box) -> list[Box | None]:
    """What of each box lies on the screen and within its ancestors; None where nothing does.

    Ancestors without a place or without area do not clip, nor do those of a page that let their content overflow. On
    iOS an ancestor that does not scroll lets what lies wholly outside of it be seen: views do not clip by themselves.
    """
    limits: list[Box] = []
    found: list[Box | None] = []
    lenient = tree.dialect == "ios"
    whole = screen if screen[2] > 0 and screen[3] > 0 else (-_LIMIT, -_LIMIT, _LIMIT, _LIMIT)
    nowhere = (0, 0, 0, 0)
    for node, box in zip(tree.nodes, boxes, strict=True):
        limit = limits[node.parent] if node.parent >= 0 else whole
        if box is None or (node.web and not node.shown):
            found.append(None)
            limits.append(limit)
            continue
        left = box[0] if box[0] > limit[0] else limit[0]
        top = box[1] if box[1] > limit[1] else limit[1]
        right = box[2] if box[2] < limit[2] else limit[2]
        bottom = box[3] if box[3] < limit[3] else limit[3]
        if left < right and top < bottom:
            clipped = (left, top, right, bottom)
            found.append(clipped)
            limits.append(clipped if node.clips else limit)
            continue
        if lenient and (on_screen := meet(box, whole)) and not _in_scroll(tree.nodes, node.parent):
            found.append(on_screen)
            limits.append(on_screen)
            continue
        found.append(None)
        empty = box[0] >= box[2] or box[1] >= box[3]
        limits.append(limit if empty or not node.clips else nowhere)
    return found


def _in_scroll(nodes: Sequence[Node], index: int) -> bool:
    while index >= 0:
        if nodes[index].kind in _CLIPPING:
            return True
        index = nodes[index].parent
    return False


def paint_ranks(tree: Tree, raised: dict[int, int]) -> Sequence[int]:
    """When each node is painted. `raised` nodes come after their siblings, higher numbers last.

    Siblings follow `drawing-order` where all of them state one, else the document.
    """
    nodes = tree.nodes
    if not raised and _painted_as_written(nodes):
        return range(len(nodes))
    ranks = [0] * len(nodes)
    stack = _painted_last_first(tree, -1, raised)
    rank = 0
    while stack:
        index = stack.pop()
        ranks[index] = rank
        rank += 1
        if tree.ends[index] > index + 1:
            stack += _painted_last_first(tree, index, raised)
    return ranks


def _painted_as_written(nodes: Sequence[Node]) -> bool:
    """Whether no node states an earlier turn than a sibling before it, as on most screens."""
    last = [0] * (len(nodes) + 1)  # by parent; the root's children have -1
    for node in nodes:
        order = node.order
        if order:
            if order < last[node.parent]:
                return False
            last[node.parent] = order
    return True


def _painted_last_first(tree: Tree, index: int, raised: dict[int, int]) -> list[int]:
    children = tree.children(index)
    if len(children) < 2:
        return children
    nodes = tree.nodes
    ordered = all(nodes[child].order for child in children)
    if ordered or raised:
        children.sort(key=lambda child: (raised.get(child, 0), nodes[child].order if ordered else 0))
    children.reverse()
    return children


class Covers:
    """What takes touches, filed by where it is, so that a screen of thousands stays cheap to ask.

    Wide covers are kept apart and wide boxes are held against all, so that no question costs more than one pass.
    """

    def __init__(
        self, tree: Tree, seen: Sequence[Box | None], ranks: Sequence[int], screen: Box, covers: Iterable[int]
    ) -> None:
        self._ends, self._seen, self._ranks = tree.ends, seen, ranks
        self._wide = -(-(screen[2] if screen[2] > 0 else _LIMIT) // _COLUMNS)
        self._high = -(-(screen[3] if screen[3] > 0 else _LIMIT) // _ROWS)
        self._all = [index for index in covers if seen[index] is not None]
        self._all.sort(key=ranks.__getitem__, reverse=True)
        self._spread: list[int] = []
        self._cells: dict[tuple[int, int], list[int]] = {}
        for index in self._all:
            box = seen[index]
            cells = self._cells_of(box) if box is not None else []
            if len(cells) > _MANY_CELLS:
                self._spread.append(index)
                continue
            for cell in cells:
                self._cells.setdefault(cell, []).append(index)

    def over(self, index: int, box: Box) -> list[int]:
        """What is painted over a node's box, ancestors and descendants left out."""
        cells = self._cells_of(box)
        filed = (
            [self._all]
            if len(cells) > _MANY_CELLS
            else [self._spread, *[self._cells[cell] for cell in cells if cell in self._cells]]
        )
        rank, end, ends, ranks, seen = self._ranks[index], self._ends[index], self._ends, self._ranks, self._seen
        left, top, right, bottom = box
        found: dict[int, None] = {}
        for others in filed:
            for other in others:  # topmost first
                if ranks[other] <= rank:
                    break
                if index <= other < end or other <= index < ends[other] or other in found:
                    continue
                cover = seen[other]
                if cover is None:
                    continue
                if cover[0] < right and left < cover[2] and cover[1] < bottom and top < cover[3]:
                    found[other] = None
                    if inside(box, cover):
                        return [other]
        return list(found)

    def _cells_of(self, box: Box) -> list[tuple[int, int]]:
        columns = range(max(0, box[0]) // self._wide, max(0, box[2] - 1) // self._wide + 1)
        rows = range(max(0, box[1]) // self._high, max(0, box[3] - 1) // self._high + 1)
        return [(column, row) for column in columns for row in rows]


def largest_free(box: Box, covers: Iterable[Box]) -> Box | None:
    """The largest rectangle of `box` that no cover touches; None when nothing is free.

    Works on the set of maximal free rectangles; only the largest few are followed, which may miss a corner of a box
    under dozens of covers but never returns a covered one.
    """
    free = [box]
    for number, cover in enumerate(covers):
        pieces: list[Box] = []
        for piece in free:
            if meet(piece, cover) is None:
                pieces.append(piece)
                continue
            left, top, right, bottom = piece
            if cover[0] > left:
                pieces.append((left, top, cover[0], bottom))
            if cover[2] < right:
                pieces.append((cover[2], top, right, bottom))
            if cover[1] > top:
                pieces.append((left, top, right, cover[1]))
            if cover[3] < bottom:
                pieces.append((left, cover[3], right, bottom))
        free = sorted(set(pieces), key=area, reverse=True)[: _MOST_PIECES if number < _MANY_COVERS else 4]
        if not free:
            return None
    return free[0]
