"""The neutral tree: what every dialect is turned into before anybody asks what is on the screen."""

from typing import Literal

import msgspec

Box = tuple[int, int, int, int]
"""left, top, right, bottom; the last two are the first unit outside."""

LAYOUT = ""
"""The kind of a node that only holds others."""

TEXT_LIMIT = 500
"""Characters of a text that are kept; the rest is counted in the text's mark."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """One node in document order. `kind` is a role, or LAYOUT; `box` is in units of the page source.

    `text` is what can be read on it and `name` what it is called to readers of the screen; `value` is what it holds,
    None where it cannot hold anything. `identifier` and `raw_text` are as the phone gave them, to find it again. `web`
    marks what a page says of itself: `more` is where the content of a container goes on, `tap` a point that meets the
    thing (as shares of its box), `covered` that no point does.
    """

    parent: int
    depth: int
    kind: str
    box: Box | None
    text: str = ""
    name: str = ""
    value: str | None = None
    hint: str = ""
    identifier: str = ""
    raw_text: str = ""
    raw_name: str = ""
    class_name: str = ""
    package: str = ""
    acts: bool = False
    clickable: bool = False
    editable: bool = False
    scrollable: bool = False
    enabled: bool = True
    checked: bool | None = None
    selected: bool = False
    focused: bool = False
    focusable: bool = False
    password: bool = False
    shown: bool = True
    order: int = 0
    clips: bool = True
    web: bool = False
    more: tuple[Literal["above", "below", "left", "right"], ...] = ()
    tap: tuple[float, float] | None = None
    covered: bool = False


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """`ends[i]` is the index after the last descendant of node i. `size` and `turns` are the root's hints, if any.

    `size` is in units of the page source, `turns` in quarter turns; `stated` says that the size was the phone's own
    statement and not worked out from its nodes.
    """

    nodes: list[Node]
    ends: list[int]
    dialect: str
    size: tuple[int, int] | None = None
    stated: bool = False
    turns: int | None = None
    app: str | None = None
    title: str | None = None
    omitted: int = 0

    def children(self, index: int) -> list[int]:
        """Of a node, or of the root for -1."""
        found: list[int] = []
        at = index + 1
        end = len(self.nodes) if index < 0 else self.ends[index]
        while at < end:
            found.append(at)
            at = self.ends[at]
        return found


def ends_of(nodes: list[Node]) -> list[int]:
    """Where each subtree ends: one pass from the last node to the first."""
    ends = [index + 1 for index in range(len(nodes))]
    for index in range(len(nodes) - 1, -1, -1):
        parent = nodes[index].parent
        if parent >= 0 and ends[index] > ends[parent]:
            ends[parent] = ends[index]
    return ends


def cut(text: str) -> str:
    """A text of bounded length, with a mark that says how much is missing."""
    if len(text) <= TEXT_LIMIT:
        return text
    return f"{text[:TEXT_LIMIT]}… (+{len(text) - TEXT_LIMIT:,} characters)"
