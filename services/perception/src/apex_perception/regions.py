"""The parts of a screen by meaning: app bar, navigation, lists, keyboard, dialogs. What makes a Scene a SemanticScene.

Consumes the neutral tree, its zones and the Elements made of it; emits Regions, which name Elements by their ids.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from apex_perception import roles
from apex_perception.nodes import Box, Tree
from apex_perception.zones import Zones
from apex_schemas.geometry import Bounds
from apex_schemas.scene import Element, Region

_LISTS = frozenset(("list", "scroll", "pager", "web"))
_TOP = 0.25
_LEAST_TABS = 3


class Regions(NamedTuple):
    regions: tuple[Region, ...]
    dialogs: tuple[Region, ...]


def find(tree: Tree, zones: Zones, seen: Sequence[Box | None], screen: Box, made: Mapping[int, Element]) -> Regions:
    """`made` are the Elements by node, in document order; `seen` the visible part of every node."""
    return _Finder(tree, seen, screen, made).find(zones)


class _Finder:
    def __init__(self, tree: Tree, seen: Sequence[Box | None], screen: Box, made: Mapping[int, Element]) -> None:
        self._tree, self._seen, self._screen, self._made = tree, seen, screen, made

    def find(self, zones: Zones) -> Regions:
        tree = self._tree
        found = [self._region("status_bar", index) for index in zones.status_bars]
        bars, tabs, sheets = {*zones.bars}, list[int](), list[int]()
        for index, node in enumerate(tree.nodes):
            if node.kind == "tabs":
                tabs.append(index)
            if node.identifier and (use := roles.named_for(node.identifier)):
                if use == "bar":
                    bars.add(index)
                elif use == "sheet":
                    sheets.append(index)
        for index in sorted(bars.difference(tabs)):
            box = self._seen[index]
            if box is not None and box[1] <= _TOP * self._screen[3] and not self._within(index, bars):
                found.append(self._region("app_bar", index))
        found += [self._region("navigation", index) for index in tabs]
        if not tabs:
            found.append(self._loose_tabs())
        for index, element in self._made.items():
            if element.scrollable and element.role in _LISTS:
                found.append(self._region("list", index))
        found += [self._region("keyboard", index) for index in zones.keyboards]
        dialogs = [self._region("dialog", index) for index in (*zones.dialogs, *sheets)]
        return Regions(tuple(r for r in found if r is not None), tuple(d for d in dialogs if d is not None))

    def _region(self, kind: str, index: int) -> Region | None:
        """None for what is not on the screen."""
        box = self._seen[index]
        if box is None:
            return None
        inside = [element for at, element in self._made.items() if index <= at < self._tree.ends[index]]
        own = self._made.get(index)
        node = self._tree.nodes[index]
        label = own.label if own is not None else node.name
        if not label and kind == "app_bar":
            label = next((element.label for element in inside if element.role == "text"), "")
        return Region(kind=kind, bounds=_bounds(box), label=label, elements=tuple(each.id for each in inside))

    def _within(self, index: int, others: set[int]) -> bool:
        return any(other < index < self._tree.ends[other] for other in others)

    def _loose_tabs(self) -> Region | None:
        """Tabs in a line of their own, where no container calls itself a navigation."""
        tabs = [(element.bounds, element.id) for element in self._made.values() if element.role == "tab"]
        boxes = [box for box, _ in tabs if box is not None]
        if len(boxes) < _LEAST_TABS or max(box.top for box in boxes) >= min(box.bottom for box in boxes):
            return None
        bounds = Bounds(
            left=min(box.left for box in boxes), top=min(box.top for box in boxes),
            right=max(box.right for box in boxes), bottom=max(box.bottom for box in boxes),
        )  # fmt: skip
        return Region(kind="navigation", bounds=bounds, elements=tuple(id_ for _, id_ in tabs))


def _bounds(box: Box) -> Bounds:
    return Bounds(left=box[0], top=box[1], right=box[2], bottom=box[3])
