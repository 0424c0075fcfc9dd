"""Nodes to the Elements of a Scene: one for each thing that can be acted on, one for each text that nobody took up.

Consumes the neutral tree and the screen; emits Elements in document order, `e1` first, and what the page is named by.
"""

from collections.abc import Sequence

import msgspec

from apex_perception import acting, labels, regions, roles, scrolling, tapping, zones
from apex_perception.geometry import Covers, area, paint_ranks, visible
from apex_perception.nodes import TEXT_LIMIT, Box, Tree
from apex_perception.regions import Regions
from apex_perception.tapping import Taps
from apex_schemas.geometry import Bounds, Point
from apex_schemas.scene import Element, Keyboard, Screen

MAX_ELEMENTS = 300
_MOST_OFF_SCREEN = 20
_READABLE_SEPARATOR = ", "
_LEAST_OPAQUE, _LEAST_OPAQUE_OF_PAGE = 0.02, 0.001
_SAID_AS_THEY_ARE = frozenset(("image", "progress", "canvas", "web"))


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """`dialog` is the title of the dialog on top, if there is one; `titles` are texts in bars, by likelihood."""

    elements: tuple[Element, ...]
    regions: Regions
    keyboard: Keyboard | None
    omitted: int
    dialog: str | None
    titles: tuple[str, ...]


def elements(tree: Tree, screen: Screen, boxes: Sequence[Box | None]) -> Seen:
    """All that is on the screen, at most MAX_ELEMENTS; the rest is counted. `boxes` are the nodes' in pixels."""
    return _Builder(tree, screen, boxes).build()


class _Entry(msgspec.Struct, gc=False):
    index: int
    label: str
    role: str
    interactive: bool


class _Builder:
    def __init__(self, tree: Tree, screen: Screen, boxes: Sequence[Box | None]) -> None:
        self.tree, self.nodes, self.ends = tree, tree.nodes, tree.ends
        self.screen: Box = (0, 0, screen.size.width, screen.size.height)
        self.boxes = boxes
        self.seen = visible(tree, self.boxes, self.screen)
        self.zones = zones.find(tree, self.boxes, self.screen)
        self.acting = acting.find(tree, self.seen, self.zones, self.screen)
        self.ranks = paint_ranks(tree, self.zones.raised)
        places = [shown or box for shown, box in zip(self.seen, self.boxes, strict=True)]
        self.labels = labels.Labels(tree, self.acting.flags, places, self._readable())
        self.labels.name_the_nameless()
        native = [index for index in self.zones.dialogs if not self.nodes[index].web]
        self.modal = max(native, key=lambda index: self.ranks[index], default=None)
        self.omitted = tree.omitted + self.acting.wrappers
        self.keys = 0

    def build(self) -> Seen:
        entries = self._entries()
        self._name_overlays(entries)
        entries = [entry for entry in entries if not (entry.role == "text" and entry.index in self.labels.taken)]
        entries = self._within_budget(entries)
        above = (*self.zones.keyboards, *self.zones.dialogs, *self.zones.raised)
        covers = tapping.covers(self.tree, self.seen, self.acting.flags, above)
        taps = Taps(
            self.tree, self.boxes, self.seen, self.ranks, Covers(self.tree, self.seen, self.ranks, self.screen, covers),
            modal=self.modal,
        )  # fmt: skip
        made = self._elements(entries, taps)
        last = self.modal if self.modal is not None else max(self.zones.dialogs, default=None)
        top = next((entry.label for entry in entries if entry.index == last), None)
        bars = [index for index in self.zones.bars if not self.nodes[index].web]
        return Seen(
            elements=tuple(made.values()),
            regions=regions.find(self.tree, self.zones, self.seen, self.screen, made),
            keyboard=self._keyboard(),
            omitted=self.omitted,
            dialog=top,
            titles=roles.titles(tree=self.tree, bars=bars, seen=self.seen, screen=self.screen),
        )

    def _readable(self) -> list[bool]:
        """Texts that could be read: not those of keyboards, nor what is hidden though it lies on the screen."""
        alert = bool(self.zones.dialogs)
        ios = self.tree.dialect == "ios"
        flags = [
            node.shown or node.web or (ios and node.kind != "button" and (alert or self.seen[index] is None))
            for index, node in enumerate(self.nodes)
        ]
        for zone in (*self.zones.keyboards, *self.zones.status_bars):
            flags[zone : self.ends[zone]] = [False] * (self.ends[zone] - zone)
        return flags

    def _entries(self) -> list[_Entry]:
        by_index: dict[int, _Entry] = {}
        for index, pieces in self.labels.pieces.items():
            label = _READABLE_SEPARATOR.join(pieces) or labels.from_identifier(self.nodes[index])
            role = roles.of(self.tree, index, self.acting.state_of.get(index), self.seen, self.screen)
            by_index[index] = _Entry(index, label, role, True)
        for index in self.labels.free:
            if index not in self.labels.taken:
                node = self.nodes[index]
                role = node.kind if node.kind in _SAID_AS_THEY_ARE and self._opaque(index) else "text"
                by_index[index] = _Entry(index, node.text or node.name, role, False)
        for index, node in enumerate(self.nodes):
            if index not in by_index and (role := self._holder(index)):
                by_index[index] = _Entry(index, node.name, role, False)
        self._add_zones(by_index)
        return [by_index[index] for index in sorted(by_index) if self._worth(by_index[index])]

    def _opaque(self, index: int) -> bool:
        """Not a web view whose inside is known."""
        return self.nodes[index].kind != "web" or self.ends[index] == index + 1

    def _holder(self, index: int) -> str | None:
        """The role of what neither acts nor is read but has to be known: what scrolls, what is opaque, progress."""
        node = self.nodes[index]
        leaf = self.ends[index] == index + 1
        if node.kind in ("canvas", "web") and (leaf or node.kind == "canvas") and not node.scrollable:
            least = _LEAST_OPAQUE_OF_PAGE if node.web else _LEAST_OPAQUE
            return node.kind if area(self.seen[index]) > least * area(self.screen) else None
        if node.scrollable and self.seen[index] and node.shown and (self.tree.dialect != "ios" or self._goes_on(index)):
            return node.kind if node.kind in ("list", "pager", "web") else "scroll"
        if node.kind == "progress" and node.shown and self.seen[index] and not self._quiet(index):
            return "progress"
        return None

    def _goes_on(self, index: int) -> bool:
        """Whether content reaches beyond a container that may scroll."""
        box = self.boxes[index]
        inside = (self.boxes[inner] for inner in range(index + 1, self.ends[index]))
        return box is not None and any(
            inner is not None and (inner[3] > box[3] + 1 or inner[1] < box[1] - 1 or inner[2] > box[2] + 1)
            for inner in inside
        )

    def _quiet(self, index: int) -> bool:
        return any(zone <= index < self.ends[zone] for zone in (*self.zones.keyboards, *self.zones.status_bars))

    def _add_zones(self, by_index: dict[int, _Entry]) -> None:
        for zone in self.zones.dialogs:
            title = roles.dialog_title(self.tree, zone, self.acting.flags)
            if title is None and self.ends[zone] == zone + 1:
                continue
            if title is not None and title != zone:
                self.labels.taken.add(title)
            named = self.nodes[zone if title is None else title]
            by_index[zone] = _Entry(zone, named.text or named.name, "dialog", False)
        for zone in self.zones.status_bars:
            pieces: list[str] = []
            for index in range(zone, self.ends[zone]):
                labels.add_piece(pieces, self.nodes[index].text or self.nodes[index].name)
            if pieces:
                by_index[zone] = _Entry(zone, _READABLE_SEPARATOR.join(pieces), "status-bar", False)
        for index in self.acting.keys:
            label = self.nodes[index].text or self.nodes[index].name
            if label.casefold() in roles.SPECIAL_KEYS:
                by_index[index] = _Entry(index, label, "keyboard-key", True)
            else:
                self.keys += 1

    def _worth(self, entry: _Entry) -> bool:
        """Not a nameless wrapper around one thing that acts in nearly the same place; not an empty box."""
        node = self.nodes[entry.index]
        if entry.interactive and not entry.label and node.kind in ("", "row", "item", "button"):
            mine = area(self.seen[entry.index])
            for inner in range(entry.index + 1, self.ends[entry.index]):
                if self.acting.flags[inner] and area(self.seen[inner]) * 5 >= mine * 4:
                    return False
            if mine == 0 or not node.shown:
                return False
        return True

    def _name_overlays(self, entries: list[_Entry]) -> None:
        """A nameless touch area laid over texts, as some frameworks build their buttons, is called by them."""
        nameless = [e for e in entries if e.interactive and not e.label and self.nodes[e.index].kind == ""]
        for entry in nameless:
            box, parent = self.seen[entry.index], self.nodes[entry.index].parent
            if box is None or area(box) * 2 > area(self.screen) or self.ends[entry.index] > entry.index + 1:
                continue
            pieces: list[str] = []
            first = parent if parent >= 0 else 0
            for text in entries:
                place = self.seen[text.index]
                if text.role == "text" and first <= text.index < entry.index and place is not None and (
                    box[0] <= (place[0] + place[2]) // 2 < box[2] and box[1] <= (place[1] + place[3]) // 2 < box[3]
                ):  # fmt: skip
                    labels.add_piece(pieces, text.label)
                    self.labels.taken.add(text.index)
            entry.label = _READABLE_SEPARATOR.join(pieces)

    def _within_budget(self, entries: list[_Entry]) -> list[_Entry]:
        """What is on the screen before what is not, what acts before what is read."""
        off = [e for e in entries if self.seen[e.index] is None and self.boxes[e.index] is not None]
        off.sort(key=lambda e: (not e.interactive, self._distance(e.index)))
        left_out = {entry.index for entry in off[_MOST_OFF_SCREEN:]}
        if len(entries) - len(left_out) > MAX_ELEMENTS:
            ranked = sorted(
                (e for e in entries if e.index not in left_out),
                key=lambda e: (self.seen[e.index] is None, not e.interactive),
            )
            left_out.update(entry.index for entry in ranked[MAX_ELEMENTS:])
        self.omitted += len(left_out)
        return [entry for entry in entries if entry.index not in left_out]

    def _distance(self, index: int) -> int:
        box = self.boxes[index]
        if box is None:
            return 0
        left, top, right, bottom = self.screen
        return max(top - box[3], box[1] - bottom, left - box[2], box[0] - right, 0)

    def _elements(self, entries: list[_Entry], taps: Taps) -> dict[int, Element]:
        made: dict[int, Element] = {}
        open_: list[tuple[int, str]] = []  # ends and ids of the entries around the current one
        inner: dict[int, list[int]] = {}
        for index, owner in enumerate(self.labels.owner):
            if owner >= 0 and self.acting.flags[index]:
                inner.setdefault(owner, []).append(index)
        for number, entry in enumerate(entries, start=1):
            while open_ and open_[-1][0] <= entry.index:
                open_.pop()
            parent = open_[-1][1] if open_ else None
            id_ = f"e{number}"
            made[entry.index] = self._element(id_, entry, parent, len(open_), taps, inner.get(entry.index, ()))
            open_.append((self.ends[entry.index], id_))
        return made

    def _element(
        self, id_: str, entry: _Entry, parent: str | None, depth: int, taps: Taps, inner: Sequence[int]
    ) -> Element:
        node, index = self.nodes[entry.index], entry.index
        box = self.boxes[index]
        shown = self.seen[index]
        tap: Point | None = None
        obstacle = None
        if box is None:
            obstacle = "no_bounds"
        elif shown is None or (not node.shown and self.tree.dialect != "ios"):
            obstacle = "off_screen"
        else:
            tap = taps.point(index, shown, inner)
            obstacle = None if tap else "occluded"
        place = shown or box
        state = self.acting.state_of.get(index)
        return Element(
            id=id_, role=entry.role, label=entry.label, value=node.value, hint=node.hint or None,
            bounds=None if place is None else Bounds(left=place[0], top=place[1], right=place[2], bottom=place[3]),
            tap_point=tap, obstacle=obstacle, parent=parent, depth=depth, interactive=entry.interactive,
            editable=node.editable and entry.interactive, scrollable=node.scrollable and entry.role != "field",
            enabled=node.enabled,
            checked=self.nodes[state].checked if state is not None else node.checked if entry.interactive else None,
            selected=node.selected, focused=node.focused, password=node.password,
            resource_id=_whole(node.identifier), class_name=_whole(node.class_name),
            text=None if node.password else _whole(node.raw_text),
            description=_whole(node.raw_name),
            context="web" if node.web or self.tree.dialect in ("web", "html") else "native",
            more=scrolling.beyond(self.tree, index, self.boxes) if node.scrollable else (),
        )  # fmt: skip

    def _keyboard(self) -> Keyboard | None:
        for zone in self.zones.keyboards:
            box = self.seen[zone]
            if box is not None:
                return Keyboard(bounds=Bounds(left=box[0], top=box[1], right=box[2], bottom=box[3]), keys=self.keys)
        return None


def _whole(name: str) -> str | None:
    """What an element is found again by: as it is, or not at all."""
    return name if 0 < len(name) <= TEXT_LIMIT else None
