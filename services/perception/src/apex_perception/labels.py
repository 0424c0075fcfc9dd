"""What things are called: a thing that acts takes the texts inside it; one without a name takes those beside it.

Consumes the tree and what acts in it; emits, by node, the pieces of its label, and which nodes were taken up in it.
"""

import re
from collections.abc import Sequence
from itertools import accumulate

from apex_perception.nodes import LAYOUT, Box, Node, Tree

_MOST_PIECES = 12
_NAMED_BESIDE = frozenset(("field", "select", "slider", "progress"))
_HOLDERS = frozenset(("app", "bar", "tabs", "list", "scroll", "web"))
"""On iOS their name is a developer's, or that of what they hold."""
_NAMED_IN_ROW = frozenset(("switch", "checkbox", "radio"))
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\-.:]+")
_MEANINGLESS = re.compile(
    r"(?:id|view|layout|container|button|btn|root|content|item|text|input|edit|\d+|[0-9a-f]{6,})+\Z", re.IGNORECASE
)


class Labels:
    """Built once a Scene. `pieces[i]` names node i; `taken` are nodes that need no line of their own."""

    def __init__(self, tree: Tree, acting: list[bool], places: Sequence[Box | None], readable: list[bool]) -> None:
        self._tree, self._nodes, self._acting, self._places = tree, tree.nodes, acting, places
        self._ios = tree.dialect == "ios"
        self._readable = readable
        self._acting_before = list(accumulate(acting, initial=0))
        self.owner = self._owners()
        self.pieces: dict[int, list[str]] = {}
        self.taken: set[int] = set()
        self.free: list[int] = []
        self._take_up()

    def _owners(self) -> list[int]:
        """By node, its nearest ancestor that acts; -1 for none."""
        owner: list[int] = []
        for node in self._nodes:
            parent = node.parent
            owner.append(-1 if parent < 0 else parent if self._acting[parent] else owner[parent])
        return owner

    def own(self, index: int) -> list[str]:
        """What a node says by itself: what is written on it, and what it is called where that says more."""
        node = self._nodes[index]
        if node.text and node.name:
            if says(node.name, node.text):
                return [node.name]
            return [node.text] if says(node.text, node.name) else [node.text, node.name]
        return [node.text or node.name] if node.text or node.name else []

    def _take_up(self) -> None:
        inner: dict[int, list[int]] = {}
        for index, node in enumerate(self._nodes):
            if self._acting[index]:
                self.pieces[index] = self.own(index)
            elif (node.text or node.name) and self._readable[index] and not (self._ios and node.kind in _HOLDERS):
                if self.owner[index] >= 0:
                    inner.setdefault(self.owner[index], []).append(index)
                elif not self._sums_up(index):
                    self.free.append(index)
        for owner, texts in inner.items():
            if len(texts) > _MOST_PIECES:
                self.free += texts
                continue
            self.taken.update(texts)
            if not self._nodes[owner].editable:
                self._add_pieces(owner, texts)
        self.free.sort()

    def _add_pieces(self, owner: int, texts: list[int]) -> None:
        pieces = self.pieces[owner]
        pictures = [index for index in texts if self._nodes[index].kind == "image"]
        for index in texts:
            if index not in pictures:
                for piece in self.own(index):
                    add_piece(pieces, piece)
        value = self._nodes[owner].value
        if value:
            pieces[:] = [piece for piece in pieces if not says(value, piece)]
        if not (self._ios and pieces):
            for index in pictures:
                add_piece(pieces, self._nodes[index].name or self._nodes[index].text)

    def _sums_up(self, index: int) -> bool:
        """Whether a layout's name repeats what lies inside it, as readers of the screen get it from React Native."""
        node, nodes = self._nodes[index], self._nodes
        if node.kind != LAYOUT or node.text:
            return False
        for inner in range(index + 1, self._tree.ends[index]):
            name = nodes[inner].text or nodes[inner].name
            if name and (self._ios or name == node.name):
                return True
        return False

    def name_the_nameless(self) -> None:
        """Give fields, sliders and switches without a name of their own the texts that stand beside them."""
        free = self.free
        at = 0
        for index in sorted(self.pieces):
            if self.pieces[index]:
                continue
            node = self._nodes[index]
            while at < len(free) and free[at] < index:
                at += 1
            if node.kind in _NAMED_IN_ROW:
                self._name_in_row(index)
            elif node.editable and node.hint:
                self.pieces[index] = [node.hint]
            elif node.kind in _NAMED_BESIDE:
                self._name_beside(index, free[max(0, at - 6) : at])

    def _name_in_row(self, index: int) -> None:
        """The texts of the smallest container that has some, if it holds no second switch."""
        nodes, ends = self._nodes, self._tree.ends
        above, levels = nodes[index].parent, 0
        while above >= 0 and levels < 5:
            inside = range(above + 1, ends[above])
            if len(inside) > 60 or sum(1 for other in inside if nodes[other].checked is not None) > 1:
                return
            pieces: list[str] = []
            for other in inside:
                node = nodes[other]
                if other == index or not self._readable[other] or not (node.text or node.name):
                    continue
                if self._acting[other] and node.kind in ("button", "image") and not node.text:
                    continue
                add_piece(pieces, node.text or node.name)
                if not self._acting[other]:
                    self.taken.add(other)
            if pieces:
                self.pieces[index] = pieces[:3]
                return
            above, levels = nodes[above].parent, levels + 1

    def _name_beside(self, index: int, before: list[int]) -> None:
        """The last line of text before it, if that stands above or on its left."""
        box = self._places[index]
        line: list[int] = []
        for other in reversed(before):
            place = self._places[other]
            if other in self.taken or place is None or box is None or self._acts_between(other, index):
                break
            if self._is_title(other):
                break
            beside = place[2] <= box[0] + 4 and place[1] < box[3] and place[3] > box[1]
            high = box[3] - box[1]
            above = place[3] <= box[1] + high // 2 and box[1] - place[3] <= high and place[0] < box[2]
            first = self._places[line[-1]] if line else place
            same_line = first is not None and place[1] < first[3] and place[3] > first[1]
            if not (beside or above) or not same_line or self._nodes[other].kind != "text":
                break
            line.append(other)
        self.taken.update(line)
        for other in reversed(line):
            add_piece(self.pieces[index], self._nodes[other].text)

    def _is_title(self, index: int) -> bool:
        """A text in a bar, or one that calls itself a title, names the page and not the field below it."""
        if "title" in self._nodes[index].identifier:
            return True
        while index >= 0:
            if self._nodes[index].kind == "bar":
                return True
            index = self._nodes[index].parent
        return False

    def _acts_between(self, first: int, last: int) -> bool:
        return self._acting_before[last] > self._acting_before[first + 1]


def add_piece(pieces: list[str], text: str) -> None:
    """Append a text unless it has been said, or is a sign beside words."""
    if pieces and not any(map(str.isalnum, text)):
        return
    if text and not any(says(piece, text) for piece in pieces):
        pieces.append(text)


def says(whole: str, part: str) -> bool:
    """Whether `part` stands in `whole` as words of its own."""
    whole, part = whole.casefold(), part.casefold()
    if whole == part:
        return True
    at = whole.find(part) if part else -1
    while at >= 0:
        end = at + len(part)
        if (at == 0 or not whole[at - 1].isalnum()) and (end == len(whole) or not whole[end].isalnum()):
            return True
        at = whole.find(part, at + 1)
    return False


def from_identifier(node: Node) -> str:
    """Words out of a developer's identifier, for what has no other name; empty when it holds no words."""
    last = node.identifier.rpartition("/")[2]
    words = " ".join(word.lower() for word in _CAMEL.split(last) if word)
    return words if len(words) > 2 and not _MEANINGLESS.match(words.replace(" ", "")) else ""
