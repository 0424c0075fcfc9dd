"""What `page.js` found on a web page: things with places in the viewport, in CSS pixels.

Consumes the script's JSON; emits the neutral tree. What is fixed to the viewport is painted last.
"""

from typing import Literal

import msgspec

from apex_perception.errors import NoTree
from apex_perception.nodes import Box, Node, Tree, cut, ends_of

MARK = b'{"apex":"web"'
_FRONT = 1_000_000


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
    top: bool = False
    clip: bool = False
    more: tuple[Literal["above", "below", "left", "right"], ...] = ()


class Page(msgspec.Struct):
    """`ratio` is screen pixels per CSS pixel."""

    width: int
    height: int
    ratio: float
    nodes: list[_Thing]
    title: str = ""
    host: str = ""


def tree(data: bytes) -> tuple[Tree, float]:
    """The tree of a page and its pixels per unit. Raises NoTree when the script's answer cannot be read."""
    try:
        page = msgspec.json.decode(data, type=Page)
    except msgspec.MsgspecError as error:
        raise NoTree(f"the page script answered something else ({error})") from error
    nodes: list[Node] = []
    for index, thing in enumerate(page.nodes):
        parent = thing.parent if 0 <= thing.parent < index else -1
        nodes.append(_node(thing, parent, nodes[parent].depth + 1 if parent >= 0 else 0, index))
    found = Tree(
        nodes=nodes, ends=ends_of(nodes), dialect="web", size=(page.width, page.height), stated=True,
        app=page.host or None, title=page.title or None,
    )  # fmt: skip
    return found, page.ratio if page.ratio > 0 else 1.0


def _node(thing: _Thing, parent: int, depth: int, index: int) -> Node:
    left, top, right, bottom = (round(max(-1e6, min(1e6, side))) for side in thing.box)
    box: Box = min(left, right), min(top, bottom), max(left, right), max(top, bottom)
    editable = thing.kind == "field"
    return Node(
        parent, depth, thing.kind, box, text=cut(thing.text), name=cut(thing.name),
        value=None if thing.value is None else cut(thing.value), hint=thing.hint, identifier=thing.id,
        raw_text="" if thing.password else thing.text, raw_name=thing.name, class_name=thing.cls,
        acts=thing.acts or editable, clickable=thing.acts, editable=editable, scrollable=thing.scrolls,
        enabled=thing.enabled, checked=thing.checked, selected=thing.selected, focused=thing.focused,
        password=thing.password, order=index + 1 + (_FRONT if thing.top else 0), clips=thing.clip or thing.scrolls,
        more=thing.more,
    )  # fmt: skip
