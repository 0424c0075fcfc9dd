"""Where each widget lies: a widget tree and a screen become a tree of placed nodes.

Pure. What is outside the visible part of a scrolling container is left out and what is partly outside is clipped,
as Android does, so a node that is in the tree can be touched somewhere (unless another window lies over it).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from zlib import crc32

from apex_lab.phone.fonts import wrap
from apex_lab.phone.geometry import Point, Rect
from apex_lab.phone.widgets import Widget

TEXT_DP = {"title": 18, "small": 12, "button": 14, "key": 15, "bar": 18}


def text_px(widget: Widget, scale: float) -> int:
    """The height of the widget's letters, in pixels of a screen of `scale` pixels per dp."""
    return max(8, round(TEXT_DP.get(widget.look, 15) * scale))


@dataclass(frozen=True, kw_only=True)
class Style:
    """What a whole window is laid out with.

    `scale` is pixels per dp. `labels` renames texts, descriptions, hints and resource ids (faults: relabel).
    `seed` shuffles the lists that allow it. `offsets` are scroll positions in pixels by resource id. The
    widget whose resource id is `moving` shifts with every `tick` (faults: animate). `beyond`: how many children of a
    scrolling container stay in the tree, hidden, at each end.
    """

    scale: float
    rtl: bool = False
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    seed: int | None = None
    offsets: Mapping[str, int] = field(default_factory=dict[str, int])
    moving: str = ""
    tick: int = 0
    beyond: int = 0

    def px(self, dp: float) -> int:
        return round(dp * self.scale)

    def label(self, value: str) -> str:
        return self.labels.get(value, value)


@dataclass(slots=True)
class Node:
    """A placed widget. `rect` is its visible part, `frame` the whole of it; `index` its place among its siblings.

    `reach` is by how much a scrolling container can be moved, in all. `hidden`: it is there and cannot be seen.
    """

    widget: Widget
    rect: Rect
    frame: Rect
    index: int = 0
    text: str = ""
    desc: str = ""
    hint: str | None = None
    rid: str = ""
    reach: int = 0
    hidden: bool = False
    children: list[Node] = field(default_factory=list["Node"])

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def trail(self, point: Point) -> list[Node]:
        """The nodes under a point, outermost first: at each level the one painted last."""
        for child in reversed(self.children):
            if not child.hidden and child.rect.holds(point):
                return [self, *child.trail(point)]
        return [self]

    def enlarged(self, by: int) -> Node:
        """The same in finer units, for drawing."""
        if by == 1:
            return self
        children = [child.enlarged(by) for child in self.children]
        return replace(self, rect=self.rect.times(by), frame=self.frame.times(by), children=children)


def place(widget: Widget, frame: Rect, clip: Rect, style: Style, index: int = 0) -> Node:
    """`widget` filling `frame`, shown where `clip` allows."""
    if widget.drifts or (style.moving and widget.rid == style.moving):
        shift = 2 * (style.tick % 7)
        frame = frame._replace(left=frame.left + shift, right=frame.right + shift)
    node = Node(
        widget,
        frame.clip(clip),
        frame,
        index=index,
        text=style.label(widget.text),
        desc=style.label(widget.desc),
        hint=None if widget.hint is None else style.label(widget.hint),
        rid=style.label(widget.rid),
    )
    children = _ordered(widget, style)
    inner = frame.inset(style.px(widget.pad))
    match widget.arrange:
        case "frame":
            frames = [_gravitate(child, inner, style) for child in children]
        case "row":
            frames = _row(children, inner, style)
        case "grid":
            frames = _grid(children, inner, style)
        case "column":
            frames = _column(children, inner, style)
    if widget.scrolls and frames:
        node.reach = max(0, frames[-1].bottom - inner.bottom)
        shift = min(style.offsets.get(widget.rid, 0), node.reach)
        frames = [each._replace(top=each.top - shift, bottom=each.bottom - shift) for each in frames]
    window = node.rect
    seen = [not spot.clip(window).empty for spot in frames]
    kept = _beyond(seen, style.beyond) if widget.scrolls and style.beyond else seen
    for number, (child, spot) in enumerate(zip(children, frames, strict=True)):
        if seen[number]:
            recycled = "RecyclerView" in widget.cls and not style.beyond
            node.children.append(place(child, spot, window, style, len(node.children) if recycled else number))
        elif kept[number]:
            node.children.append(_hide(place(child, spot, spot, style, number)))
    return node


def _beyond(seen: list[bool], count: int) -> list[bool]:
    """`seen` with `count` more at each end."""
    if True not in seen:
        return seen
    first, last = seen.index(True), len(seen) - 1 - seen[::-1].index(True)
    return [first - count <= number <= last + count for number in range(len(seen))]


def _hide(node: Node) -> Node:
    for each in node.walk():
        each.hidden = True
    return node


def height_of(widget: Widget, width: int, style: Style) -> int:
    """The pixels a widget needs at a given width."""
    if widget.height is not None:
        return style.px(widget.height)
    inside = width - 2 * style.px(widget.pad)
    if widget.children:
        match widget.arrange:
            case "row":
                tall = max(
                    (height_of(c, r.width, style) for c, r in _shares(widget.children, inside, style)), default=0
                )
            case "grid":
                tall = style.px(96) * -(-len(widget.children) // max(1, inside // style.px(84)))
            case "frame":
                tall = max(height_of(child, inside, style) for child in widget.children)
            case "column":
                tall = sum(height_of(child, inside, style) for child in widget.children)
    elif widget.text:
        size = text_px(widget, style.scale)
        tall = round(len(wrap(style.label(widget.text), size, max(1, inside))) * size * 1.35)
    else:
        tall = 0
    return tall + 2 * style.px(widget.pad)


def _ordered(widget: Widget, style: Style) -> tuple[Widget, ...]:
    if style.seed is None or not widget.shuffles:
        return widget.children
    order = list(widget.children)
    random.Random(style.seed ^ crc32(widget.rid.encode())).shuffle(order)
    return tuple(order)


def _shares(children: tuple[Widget, ...], width: int, style: Style) -> list[tuple[Widget, Rect]]:
    """Each child of a row with the horizontal part it gets (reading order, from 0)."""
    fixed = sum(style.px(child.width) for child in children if child.width is not None)
    free = sum(child.width is None for child in children)
    part = max(0, width - fixed) // free if free else 0
    spots: list[tuple[Widget, Rect]] = []
    left = 0
    for child in children:
        wide = part if child.width is None else style.px(child.width)
        spots.append((child, Rect(left, 0, left + wide, 0)))
        left += wide
    return spots


def _row(children: tuple[Widget, ...], inner: Rect, style: Style) -> list[Rect]:
    frames: list[Rect] = []
    for child, spot in _shares(children, inner.width, style):
        tall = min(inner.height, height_of(child, spot.width, style)) or inner.height
        top = inner.top + (inner.height - tall) // 2
        left = inner.right - spot.right if style.rtl else inner.left + spot.left
        frames.append(Rect(left, top, left + spot.width, top + tall))
    return frames


def _column(children: tuple[Widget, ...], inner: Rect, style: Style) -> list[Rect]:
    heights = [0 if child.grow else height_of(child, inner.width, style) for child in children]
    rest = max(0, inner.height - sum(heights))
    frames: list[Rect] = []
    top = inner.top
    for child, tall in zip(children, heights, strict=True):
        bottom = top + (rest if child.grow else tall)
        width = inner.width if child.width is None else min(inner.width, style.px(child.width))
        left = inner.right - width if style.rtl else inner.left
        frames.append(Rect(left, top, left + width, bottom))
        top = bottom
    return frames


def _grid(children: tuple[Widget, ...], inner: Rect, style: Style) -> list[Rect]:
    columns = max(1, inner.width // style.px(84))
    wide, tall = inner.width // columns, style.px(96)
    frames: list[Rect] = []
    for number in range(len(children)):
        line, column = divmod(number, columns)
        left = inner.right - (column + 1) * wide if style.rtl else inner.left + column * wide
        frames.append(Rect(left, inner.top + line * tall, left + wide, inner.top + (line + 1) * tall))
    return frames


def _gravitate(child: Widget, inner: Rect, style: Style) -> Rect:
    if child.gravity == "fill":
        return inner
    wide = inner.width if child.width is None else style.px(child.width)
    tall = height_of(child, wide, style)
    match child.gravity:
        case "center":
            left, top = inner.left + (inner.width - wide) // 2, inner.top + (inner.height - tall) // 2
        case "bottom":
            left, top = inner.left, inner.bottom - tall
        case "end":
            left, top = (inner.left if style.rtl else inner.right - wide), inner.top + (inner.height - tall) // 3
        case "bottom_end":
            margin = style.px(16)
            left = inner.left + margin if style.rtl else inner.right - wide - margin
            top = inner.bottom - tall - margin
    return Rect(left, top, left + wide, top + tall)
