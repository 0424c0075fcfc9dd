"""A page inside an app: what the page says of itself in the place of what the phone made of it.

Consumes the native tree and the answer of `page.js` from the session's web context; emits one tree. Places in the page
are CSS pixels of its viewport and become units of the native source, inside the view that shows the page.
"""

import re

import msgspec

from apex_perception.dialects import web
from apex_perception.geometry import area
from apex_perception.nodes import Box, Node, Tree, ends_of

_NEAR = 0.25
_PACKAGE = re.compile(rb"<[^<>]*android\.webkit\.WebView[^<>]*?\spackage=\"([\w.]{1,200})\"")


def merge(native: Tree, answer: bytes) -> Tree:
    """The native tree with the page in its largest web view; as it was when there is none, or the page shows nothing.

    Raises NoTree when the answer cannot be read.
    """
    page, _ = web.tree(answer)
    host = host_of(native)
    if host is None or not page.nodes or page.size is None or min(page.size) <= 0:
        return native
    box = native.nodes[host].box
    assert box is not None
    placed = _placed(page, box, host, native.nodes[host].depth + 1)
    end = native.ends[host]
    shift = len(placed) - (end - host - 1)
    after = [
        node if node.parent < end else msgspec.structs.replace(node, parent=node.parent + shift)
        for node in native.nodes[end:]
    ]
    view = msgspec.structs.replace(native.nodes[host], scrollable=False, acts=False, focusable=False, text="", name="")
    nodes = [*native.nodes[:host], view, *placed, *after]
    return msgspec.structs.replace(
        native, nodes=nodes, ends=ends_of(nodes), omitted=native.omitted + page.omitted,
        title=native.title or page.title,
    )  # fmt: skip


def app_of(source: bytes) -> str | None:
    """The package around the first web view of an Android source, after which its web context is called."""
    found = _PACKAGE.search(source)
    return found[1].decode(errors="replace") if found else None


def host_of(native: Tree) -> int | None:
    """The largest web view that has a place; what lies inside another is part of it."""
    found = [
        index
        for index, node in enumerate(native.nodes)
        if node.kind == "web" and node.shown and area(node.box) > 0 and not _in_web(native, node.parent)
    ]
    return max(found, key=lambda index: area(native.nodes[index].box), default=None)


def _in_web(native: Tree, index: int) -> bool:
    while index >= 0:
        if native.nodes[index].kind == "web":
            return True
        index = native.nodes[index].parent
    return False


def _placed(page: Tree, box: Box, host: int, depth: int) -> list[Node]:
    """The page's nodes below the host. They carry nothing to be looked up by: the phone knows them by other names."""
    assert page.size is not None
    across, down = (box[2] - box[0]) / page.size[0], (box[3] - box[1]) / page.size[1]
    if abs(across / down - 1) < _NEAR:  # a page has square pixels; its height may be without a bar that comes and goes
        down = across
    left, top = box[0], box[1]
    placed: list[Node] = []
    for node in page.nodes:
        at = node.box
        placed.append(
            msgspec.structs.replace(
                node,
                parent=host if node.parent < 0 else node.parent + host + 1,
                depth=node.depth + depth,
                box=None if at is None else (
                    left + round(at[0] * across), top + round(at[1] * down),
                    left + round(at[2] * across), top + round(at[3] * down),
                ),
                identifier="", raw_text="", raw_name="", class_name="",
            )
        )  # fmt: skip
    return placed
