"""What a client can find on the screen: the page source as a tree, with a rectangle and an identity per element.

`android` turns placed windows into the dialect of the UiAutomator2 server: tags named after classes, its attributes
in its order. A view's identity is its place in its window, as the real driver's is the slot that a list reuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from apex_lab.phone.geometry import Point, Rect
from apex_lab.phone.layout import Node
from apex_lab.phone.windows import WindowKind
from apex_lab.phone.xmltree import Element, child, printable, root

Path = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """One element: where it is, who it is, and the placed widget behind it (None on a recorded phone)."""

    element: Element
    rect: Rect
    path: Path
    node: Node | None = None
    package: str = ""

    @property
    def tag(self) -> str:
        return str(self.element.tag)

    @property
    def middle(self) -> Point:
        """Where a click on the element goes: the middle of what can be seen of it."""
        return self.rect.center if self.node is None else self.node.rect.center


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One reading of the screen. `views` is keyed by element, in document order."""

    root: Element
    views: Mapping[Element, View]
    by_path: Mapping[Path, View] = field(default_factory=dict[Path, View])


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """A window on the screen. `serial` names the page instance, below 0 what the system shows around it."""

    root: Node
    package: str
    serial: int
    activity: str = ""
    kind: WindowKind | Literal["overlay", "bar", "keyboard"] = "page"
    rtl: bool = False
    focus: str = ""

    @property
    def modal(self) -> bool:
        """Whether it swallows touches beside it."""
        return self.kind == "dialog"


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowInfo:
    """A window as `mobile: listWindows` tells of it."""

    package: str
    rect: Rect
    kind: WindowKind | Literal["overlay", "bar", "keyboard"] = "page"
    active: bool = False


def android(windows: Iterable[Placed], toast: str, rotation: int, size: tuple[int, int]) -> Snapshot:
    """The page source of the given windows, in paint order."""
    top = root(
        "hierarchy",
        {
            "index": "0",
            "class": "hierarchy",
            "rotation": str(rotation),
            "width": str(size[0]),
            "height": str(size[1]),
        },
    )
    views: dict[Element, View] = {}
    for number, window in enumerate(windows):
        _add(top, window.root, window, (window.serial,), number, 1, views)
    if toast:
        child(
            top,
            "android.widget.Toast",
            {
                "index": str(len(top)),
                "package": "com.android.settings",
                "class": "android.widget.Toast",
                "text": printable(toast),
                "displayed": "true",
            },
        )
    return Snapshot(root=top, views=views, by_path={view.path: view for view in views.values()})


def _add(
    parent: Element, node: Node, window: Placed, path: Path, index: int, order: int, views: dict[Element, View]
) -> None:
    element = child(parent, node.widget.cls.replace("$", "."), attributes(node, window, index, order))
    views[element] = View(element=element, rect=node.rect, path=path, node=node, package=window.package)
    inside = () if node.widget.opaque else node.children
    for order_, each in enumerate(inside, start=1):
        _add(element, each, window, (*path, each.index), each.index, order_, views)


NAMES = (
    "index", "package", "class", "text", "content-desc", "resource-id", "checkable", "checked", "clickable", "enabled",
    "focusable", "focused", "long-clickable", "password", "scrollable", "selected", "bounds", "displayed", "hint",
    "a11y-important", "screenReaderFocusable", "input-type", "drawing-order", "showing-hint", "text-entry-key",
    "dismissable", "a11y-focused", "heading", "live-region", "context-clickable", "max-text-length", "content-invalid",
)  # fmt: skip
"""The attributes a node can have, in the server's order."""


def resource_id(rid: str, package: str) -> str:
    """``title`` → ``<package>:id/title``; an id with its package stays; ``#title`` is one of a web page: ``title``."""
    if rid.startswith("#"):
        return rid[1:]
    return rid if not rid or ":id/" in rid else f"{package}:id/{rid}"


def shown_text(node: Node) -> tuple[str, bool]:
    """The text an accessibility reader gets, and whether it is the hint; a password's letters are dots."""
    if node.hint is not None and not node.widget.text:
        return node.hint, True
    return ("•" * len(node.text) if node.widget.password else node.text), False


def attributes(node: Node, window: Placed, index: int, order: int) -> dict[str, str]:
    """The attributes of one node, in the server's order."""
    widget = node.widget
    text, hinting = shown_text(node)
    focused = bool(widget.rid) and widget.editable and widget.rid == window.focus
    found: dict[str, str | bool | int | None] = {
        "index": index,
        "package": window.package,
        "class": widget.cls,
        "text": printable(text),
        "content-desc": printable(node.desc) or None,
        "resource-id": resource_id(node.rid, window.package) or None,
        "checkable": widget.checked is not None,
        "checked": bool(widget.checked),
        "clickable": widget.clickable,
        "enabled": widget.enabled,
        "focusable": widget.clickable or widget.scrolls,
        "focused": focused,
        "long-clickable": widget.on_long is not None or widget.editable,
        "password": widget.password,
        "scrollable": widget.scrolls and node.reach > 0,
        "selected": widget.selected,
        "bounds": node.rect.bounds(),
        "displayed": True,
        "hint": None if node.hint is None else printable(node.hint),
        "a11y-important": bool(widget.text or widget.desc or widget.clickable or widget.hint),
        "screenReaderFocusable": False,
        "input-type": (129 if widget.password else 1) if widget.editable else None,
        "drawing-order": order,
        "showing-hint": hinting,
        "text-entry-key": widget.look == "key",
        "dismissable": False,
        "a11y-focused": False,
        "heading": widget.look == "title",
        "live-region": 0,
        "context-clickable": False,
        "max-text-length": widget.max_length if widget.max_length > 0 else None,
        "content-invalid": False,
    }
    return {key: _spell(value) for key, value in found.items() if value is not None}


def _spell(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
