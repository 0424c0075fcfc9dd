"""What `page.js` found on a web page: the visible parts of things in the viewport, in CSS pixels, tried by a hit test.

Consumes the script's JSON; emits the neutral tree. What covers what is not asked again: the page knows best.
"""

from typing import Literal

import msgspec

from apex_perception.errors import NoTree
from apex_perception.nodes import Box, Node, Tree, cut, ends_of

MARK = b'{"apex":"web"'


class _Thing(msgspec.Struct):
    parent: int
    kind: str
    box: tuple[float, float, float, float]
    text: str = ""
    name: str = ""
    value: str | None = None
    hint: str = ""
    id: str = ""
    cls: str = ""
    acts: bool = False
    scrolls: bool = False
    enabled: bool = True
    checked: bool | None = None
    selected: bool = False
    focused: bool = False
    password: bool = False
    hidden: bool = False
    tap: tuple[float, float] | None = None
    covered: bool = False
    more: tuple[Literal["above", "below", "left", "right"], ...] = ()


class Page(msgspec.Struct):
    """`ratio` is screen pixels per CSS pixel."""

    width: int
    height: int
    ratio: float
    nodes: list[_Thing]
    title: str = ""
    host: str = ""
    omitted: int = 0


def tree(data: bytes) -> tuple[Tree, float]:
    """The tree of a page and its pixels per unit. Raises NoTree when the script's answer cannot be read."""
    try:
        page = msgspec.json.decode(data, type=Page)
    except msgspec.MsgspecError as error:
        raise NoTree(f"the page script answered something else ({error})") from error
    nodes: list[Node] = []
    for index, thing in enumerate(page.nodes):
        parent = thing.parent if 0 <= thing.parent < index else -1
        nodes.append(_node(thing, parent, nodes[parent].depth + 1 if parent >= 0 else 0))
    found = Tree(
        nodes=nodes, ends=ends_of(nodes), dialect="web", size=(page.width, page.height), stated=True,
        app=page.host or None, title=page.title or None, omitted=page.omitted,
    )  # fmt: skip
    return found, page.ratio if page.ratio > 0 else 1.0


def _node(thing: _Thing, parent: int, depth: int) -> Node:
    left, top, right, bottom = (round(max(-1e6, min(1e6, side))) for side in thing.box)
    box: Box = min(left, right), min(top, bottom), max(left, right), max(top, bottom)
    editable = thing.kind == "field"
    return Node(
        parent, depth, thing.kind, box, text=cut(thing.text), name=cut(thing.name),
        value=None if thing.value is None else cut(thing.value), hint=cut(thing.hint), identifier=thing.id,
        raw_text="" if thing.password else thing.text, raw_name=thing.name, class_name=thing.cls,
        acts=thing.acts or editable, clickable=thing.acts, editable=editable, scrollable=thing.scrolls,
        enabled=thing.enabled, checked=thing.checked, selected=thing.selected, focused=thing.focused,
        password=thing.password, shown=not thing.hidden, clips=False, web=True, more=thing.more,
        tap=None if thing.tap is None else _shares(thing.tap, thing.box), covered=thing.covered,
    )  # fmt: skip


def _shares(point: tuple[float, float], box: tuple[float, float, float, float]) -> tuple[float, float]:
    wide, high = box[2] - box[0], box[3] - box[1]
    return (point[0] - box[0]) / wide if wide > 0 else 0.5, (point[1] - box[1]) / high if high > 0 else 0.5
