"""What a thing is called by kind: roles from classes, flags and surroundings, and the texts that name a page."""

from collections.abc import Sequence
from functools import lru_cache

from apex_perception.nodes import LAYOUT, Box, Tree

SPECIAL_KEYS = frozenset(
    "enter return done go next search send delete backspace join continue route".split()  # noqa: SIM905
) | {"hide keyboard", "dismiss keyboard", "new line"}
_ROLES = frozenset(
    ("field", "switch", "checkbox", "radio", "slider", "select", "tab", "link", "icon", "keyboard-key", "item", "row")
)
_LISTS = frozenset(("list", "scroll", "pager"))
_TAB_HINTS = ("tab_", "_tab", "navigation_bar_item", "bottom_nav")
_BAR_IDS = frozenset(("toolbar", "action_bar", "app_bar", "top_app_bar", "header", "title_bar"))
_SHEET_IDS = ("design_bottom_sheet", "bottom_sheet_dialog")
_TITLE_IDS = ("action_bar_title", "toolbar_title", "collapsing_toolbar", "title_bar_text", "page_title", "screen_title")


def of(tree: Tree, index: int, state: int | None, seen: Sequence[Box | None], screen: Box) -> str:
    """The role of a node that acts. `state` is the switch whose state it shows."""
    nodes = tree.nodes
    if state is not None:
        return nodes[state].kind or "switch"
    node = nodes[index]
    if node.checked is not None and node.kind not in ("switch", "checkbox", "radio"):
        return "checkbox"
    identifier = node.identifier.rpartition("/")[2]
    if node.kind in ("", "button", "text", "image") and (
        _in_tabs(tree, index) or (node.kind != "image" and identifier.startswith(_TAB_HINTS[:1]))
    ):
        return "tab"
    if node.kind in _ROLES:
        return node.kind
    if node.kind == LAYOUT:
        box = seen[index]
        wide = box is not None and 5 * (box[2] - box[0]) >= 3 * (screen[2] - screen[0])
        if wide and tree.ends[index] > index + 1:
            return "row"
        if _in_list(tree, index):
            return "item"
    return "button"


@lru_cache(maxsize=4_096)
def named_for(identifier: str) -> str:
    """What a developer's identifier says that a node is for: "title", "bar", "sheet", or nothing."""
    last = identifier.rpartition("/")[2]
    if last.endswith(_TITLE_IDS) and "search" not in last:
        return "title"
    if last in _BAR_IDS:
        return "bar"
    return "sheet" if last.endswith(_SHEET_IDS) else ""


def _in_tabs(tree: Tree, index: int) -> bool:
    for _ in range(3):
        index = tree.nodes[index].parent
        if index < 0:
            return False
        if tree.nodes[index].kind == "tabs":
            return True
    return False


def _in_list(tree: Tree, index: int) -> bool:
    parent = tree.nodes[index].parent
    return parent >= 0 and tree.nodes[parent].kind in _LISTS


def dialog_title(tree: Tree, dialog: int, acting: list[bool]) -> int | None:
    """The node that names a dialog: itself, its alertTitle, or its first text that is not inside a button."""
    if tree.nodes[dialog].name:
        return dialog
    first: int | None = None
    index = dialog
    while index < tree.ends[dialog]:
        node = tree.nodes[index]
        if acting[index]:
            index = tree.ends[index]
            continue
        if node.text and node.kind == "text":
            if node.identifier.endswith(("alertTitle", "alert_title", "dialog_title")):
                return index
            first = index if first is None else first
        index += 1
    return first


def titles(*, tree: Tree, bars: Sequence[int], seen: Sequence[Box | None], screen: Box) -> tuple[str, ...]:
    """Texts that name the page, the likeliest first: title ids, then bars at the top of the screen, then headings."""
    by_id: list[str] = []
    in_bars: list[str] = []
    for index, node in enumerate(tree.nodes):
        if not node.identifier or not node.shown or not seen[index]:
            continue
        use = named_for(node.identifier)
        if use == "title" and (node.text or node.name):
            by_id.append(node.text or node.name)
        elif use == "bar":
            in_bars += _first_text(tree, index)
    for bar in bars:
        box = seen[bar]
        if box is None or box[1] > screen[3] * 0.25 or tree.nodes[bar].kind != "bar":
            continue
        in_bars += _first_text(tree, bar) or ([tree.nodes[bar].name] if tree.nodes[bar].name else [])
    return tuple(dict.fromkeys((*by_id, *in_bars)))


def _first_text(tree: Tree, bar: int) -> list[str]:
    inside = (tree.nodes[index] for index in range(bar, tree.ends[bar]))
    found = next((node.text for node in inside if node.kind == "text" and node.text and node.shown), None)
    return [found] if found else []
