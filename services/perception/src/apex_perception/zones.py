"""The parts of a screen that are known for what they are: windows, dialogs, keyboard, bars of the system.

Decides what is painted above what where the source does not say so, and what a modal dialog shuts off.
"""

import re
from collections.abc import Sequence

import msgspec

from apex_perception.geometry import area, inside
from apex_perception.nodes import Box, Tree

_IME = re.compile(r"inputmethod|keyboard|swiftkey|\.ime\b|pinyin", re.IGNORECASE)
_MOST_WINDOWS = 8
_SYSTEM_UI = "com.android.systemui"


class Zones(msgspec.Struct, frozen=True, kw_only=True):
    """Indexes of nodes. `raised` are painted after their siblings; `modals` shut off what lies below them."""

    keyboards: tuple[int, ...] = ()
    status_bars: tuple[int, ...] = ()
    dialogs: tuple[int, ...] = ()
    bars: tuple[int, ...] = ()
    raised: dict[int, int] = {}


def find(tree: Tree, boxes: Sequence[Box | None], screen: Box) -> Zones:
    match tree.dialect:
        case "ios":
            native = _ios(tree)
        case "android":
            native = _android(tree, boxes, screen)
        case _:
            native = Zones()
    # A page says by role what a dialog is, and by its hit test what is above what.
    pages = [(index, node.kind) for index, node in enumerate(tree.nodes) if node.web and node.shown and node.kind]
    dialogs = tuple(index for index, kind in pages if kind == "dialog" and boxes[index])
    bars = tuple(index for index, kind in pages if kind in ("bar", "tabs"))
    if not dialogs and not bars:
        return native
    return msgspec.structs.replace(native, dialogs=(*native.dialogs, *dialogs), bars=(*native.bars, *bars))


def _ios(tree: Tree) -> Zones:
    kinds: dict[str, list[int]] = {"keyboard": [], "status-bar": [], "dialog": [], "bar": [], "tabs": []}
    for index, node in enumerate(tree.nodes):
        if node.kind in kinds and not node.web and (node.shown or node.kind in ("keyboard", "bar", "tabs")):
            kinds[node.kind].append(index)
    raised = {index: 1 for index in (*kinds["bar"], *kinds["tabs"])}
    for level, name in ((2, "dialog"), (3, "keyboard")):
        for index in kinds[name]:
            at = index
            while at >= 0:  # the window that it stands in comes to the front with it
                raised[at] = max(raised.get(at, 0), level)
                at = tree.nodes[at].parent
    return Zones(
        keyboards=tuple(kinds["keyboard"]), status_bars=tuple(kinds["status-bar"]), dialogs=tuple(kinds["dialog"]),
        bars=(*kinds["bar"], *kinds["tabs"]), raised=raised,
    )  # fmt: skip


def _android(tree: Tree, boxes: Sequence[Box | None], screen: Box) -> Zones:
    nodes = tree.nodes
    keyboards: list[int] = []
    status_bars: list[int] = []
    dialogs: list[int] = []
    raised: dict[int, int] = {}
    roots = [(index, box) for index in tree.children(-1) if (box := boxes[index]) is not None]
    largest = sorted(roots, key=lambda root: area(root[1]), reverse=True)[:_MOST_WINDOWS]
    for index, box in roots:
        package = nodes[index].package
        if _IME.search(package) and len(roots) > 1 and box[1] > screen[3] * 0.2:
            keyboards.append(index)
            raised[index] = 2
        elif package == _SYSTEM_UI and box[3] - box[1] <= screen[3] * 0.1:
            raised[index] = 3
            if box[1] <= screen[1]:
                status_bars.append(index)
        elif _is_dialog(box, screen) and (len(roots) == 1 or _over_another(index, box, largest)):
            dialogs.append(index)
            raised[index] = 1
        elif area(box) < area(screen) * 0.85 and _over_another(index, box, largest):
            raised[index] = 1
    bars = [index for index, node in enumerate(nodes) if node.kind == "bar" and not node.order and not node.web]
    raised.update((index, 1) for index in bars if nodes[index].parent >= 0)
    if len(roots) == 1 and not bars:
        raised = {}
    return Zones(
        keyboards=tuple(keyboards), status_bars=tuple(status_bars), dialogs=tuple(dialogs), bars=tuple(bars),
        raised=raised,
    )  # fmt: skip


def _is_dialog(box: Box, screen: Box) -> bool:
    """A window that stands off both sides and is too wide for a picture in picture or a bubble."""
    wide = box[2] - box[0]
    stands_off = box[0] > screen[0] and box[2] < screen[2]
    return stands_off and wide >= 0.55 * (screen[2] - screen[0]) and area(box) < 0.85 * area(screen)


def _over_another(index: int, box: Box, roots: list[tuple[int, Box]]) -> bool:
    return any(other != index and area(larger) > area(box) and inside(box, larger) for other, larger in roots)
