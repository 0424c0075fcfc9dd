"""Which nodes a person could act on, and which of them are one thing together.

Emits flags by node. A switch that only shows the state of the row around it is merged into that row; a wrapper around
half the screen is no button.
"""

from collections.abc import Sequence

import msgspec

from apex_perception.geometry import area
from apex_perception.nodes import LAYOUT, Box, Tree
from apex_perception.zones import Zones

_WRAPPER = 0.5
_PLACES = frozenset(("list", "bar", "tabs", "keyboard", "status-bar"))


class Acting(msgspec.Struct, frozen=True, kw_only=True):
    """`state_of[row]` is the switch whose state a row shows; `keys` act inside a keyboard; `wrappers` are left out."""

    flags: list[bool]
    state_of: dict[int, int]
    keys: list[int]
    wrappers: int


def find(tree: Tree, seen: Sequence[Box | None], zones: Zones, screen: Box) -> Acting:
    nodes, ends = tree.nodes, tree.ends
    flags = [node.acts for node in nodes]
    keys: list[int] = []
    for zone in (*zones.keyboards, *zones.status_bars):
        for index in range(zone, ends[zone]):
            if flags[index] and zone in zones.keyboards:
                keys.append(index)
            flags[index] = False
    if tree.dialect == "ios":
        _by_place(tree, flags)
    _by_focus(tree, flags, zones)
    wrappers = _drop_wrappers(tree, flags, seen, screen)
    return Acting(flags=flags, state_of=_merge(tree, flags), keys=keys, wrappers=wrappers)


def _by_place(tree: Tree, flags: list[bool]) -> None:
    """On iOS: keys and tabs outside of keyboards and tab bars are none; what is disabled and hidden inside a cell is
    decoration; a layout with a name and nothing inside is what an app built from other parts, most often a button."""
    nodes, ends = tree.nodes, tree.ends
    around: list[str] = []
    for index, node in enumerate(nodes):
        above = around[node.parent] if node.parent >= 0 else ""
        around.append(node.kind if node.kind in _PLACES else above)
        if node.web:
            continue
        if flags[index]:
            odd = (node.kind == "keyboard-key" and above != "keyboard") or (node.kind == "tab" and above != "tabs")
            hidden = not node.shown and not node.enabled and _acts_around(tree, index, flags)
            flags[index] = not odd and not hidden
        elif node.kind == LAYOUT and node.name and node.shown and not above and ends[index] == index + 1:
            flags[index] = not _acts_around(tree, index, flags)


def _by_focus(tree: Tree, flags: list[bool], zones: Zones) -> None:
    """What can be focused and has a name acts, where nothing around or inside it does; on a screen where nothing acts
    at all, as on television, whatever can be focused does."""
    nodes, ends = tree.nodes, tree.ends
    focusable = [index for index, node in enumerate(nodes) if node.focusable and not node.scrollable]
    none_acts = not any(flags)
    quiet = [range(zone, ends[zone]) for zone in (*zones.keyboards, *zones.status_bars)]
    for index in focusable:
        node = nodes[index]
        if flags[index] or any(index in zone for zone in quiet) or node.kind in ("list", "scroll", "pager", "web"):
            continue
        if not (node.name or node.text or (none_acts and not _holds_focusable(tree, index))):
            continue
        if not _acts_around(tree, index, flags) and not any(flags[index + 1 : ends[index]]):
            flags[index] = True


def _holds_focusable(tree: Tree, index: int) -> bool:
    return any(node.focusable for node in tree.nodes[index + 1 : tree.ends[index]])


def _acts_around(tree: Tree, index: int, flags: list[bool]) -> bool:
    index = tree.nodes[index].parent
    while index >= 0:
        if flags[index]:
            return True
        index = tree.nodes[index].parent
    return False


def _drop_wrappers(tree: Tree, flags: list[bool], seen: Sequence[Box | None], screen: Box) -> int:
    most = _WRAPPER * area(screen)
    dropped = 0
    for index, node in enumerate(tree.nodes):
        if (
            flags[index]
            and node.kind == LAYOUT
            and not (node.name or node.text)
            and area(seen[index]) > most
            and any(flags[index + 1 : tree.ends[index]])
        ):
            flags[index] = False
            dropped += 1
    return dropped


def _merge(tree: Tree, flags: list[bool]) -> dict[int, int]:
    """Rows and the one switch inside them: on Android the row is tapped, on iOS the switch."""
    nodes = tree.nodes
    owner: list[int] = []
    switches: dict[int, list[int]] = {}
    others: dict[int, int] = {}
    for index, node in enumerate(nodes):
        parent = node.parent
        mine = -1 if parent < 0 else parent if flags[parent] else owner[parent]
        owner.append(mine)
        if mine >= 0 and flags[index]:
            if node.checked is not None:
                switches.setdefault(mine, []).append(index)
            else:
                others[mine] = others.get(mine, 0) + 1
    merged: dict[int, int] = {}
    for row, inside in switches.items():
        switch = nodes[inside[0]]
        if len(inside) != 1 or nodes[row].checked is not None or nodes[row].editable:
            continue
        if tree.dialect == "ios":
            if nodes[row].kind in ("row", "item") and not others.get(row):
                flags[row] = False  # the switch takes its name from the row that it stands in
        elif not switch.clickable:
            flags[inside[0]] = False
            merged[row] = inside[0]
    return merged
