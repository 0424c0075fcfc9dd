"""Placed windows as XCUITest shows them: the app with all its windows, in points, and the keyboard.

The same widgets as on Android under the types of iOS. Frames are whole, also where a list cuts them off, and rows
beyond the ends of a list are there with ``visible="false"``, as the real driver gives them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from apex_lab.phone.geometry import Rect
from apex_lab.phone.layout import Node
from apex_lab.phone.views import Path, Placed, Snapshot, View, shown_text
from apex_lab.phone.xmltree import Element, child, printable, root

PREFIX: Final = "XCUIElementType"
_TYPES: Final[Mapping[str, str]] = {
    "Button": "Button",
    "ImageButton": "Button",
    "TextView": "StaticText",
    "TextClock": "StaticText",
    "Chronometer": "StaticText",
    "EditText": "TextField",
    "Switch": "Switch",
    "CheckBox": "Switch",
    "ImageView": "Image",
    "ProgressBar": "ProgressIndicator",
    "RecyclerView": "Table",
    "ScrollView": "ScrollView",
    "WebView": "WebView",
    "KeyboardView": "Keyboard",
    "Key": "Key",
    "BottomNavigationView": "TabBar",
    "BottomNavigationItemView": "Button",
}
_BY_LABEL: Final = frozenset({"NavigationBar", "Alert", "Sheet", "Icon", "Cell"})
"""What seldom has an identifier of its own: its name is its label."""
_SEVERAL_LINES_DP: Final = 60


def ios(windows: Iterable[Placed], app: str, bundle: str, size: tuple[int, int]) -> Snapshot:
    """The page source of an app: its windows in paint order, the keyboard last."""
    top = root("AppiumAUT", {})
    views: dict[Element, View] = {}
    whole = Rect(0, 0, *size)
    about = {"type": f"{PREFIX}Application", "name": app, "label": app, **_states(), **_frame(whole), "index": "0"}
    application = child(top, f"{PREFIX}Application", {**about, "bundleId": bundle})
    views[application] = View(element=application, rect=whole, path=(-100,))
    for number, window in enumerate(windows):
        about = {"type": f"{PREFIX}Window", **_states(), **_frame(whole), "index": str(number)}
        holder = child(application, f"{PREFIX}Window", about)
        views[holder] = View(element=holder, rect=whole, path=(window.serial,))
        body = window.root.children[0] if window.serial >= 0 else window.root
        _add(holder, body, window, (window.serial, 0), 0, "", views)
    return Snapshot(root=top, views=views, by_path={view.path: view for view in views.values()})


def _add(
    parent: Element, node: Node, window: Placed, path: Path, index: int, row: str, views: dict[Element, View]
) -> None:
    """`row` is the title of the row around the node: what a switch in it is called."""
    short = _short(node, window, path, str(parent.tag))
    tag = PREFIX + short
    if short == "Cell":
        row = next((text for each in node.walk() if (text := shown_text(each)[0])), "")
    element = child(parent, tag, {"type": tag, **_attributes(node, short, window, row, index)})
    views[element] = View(element=element, rect=node.frame, path=path, node=node, package=window.package)
    for number, each in enumerate(() if node.widget.opaque else node.children):
        _add(element, each, window, (*path, each.index), number, row, views)


def _short(node: Node, window: Placed, path: Path, parent: str) -> str:
    widget = node.widget
    if len(path) == 2 and window.modal:
        return "Alert"
    if widget.rid == "design_bottom_sheet":
        return "Sheet"
    short = _TYPES.get(widget.cls.rpartition(".")[2], "Other")
    if widget.rid == "action_bar":
        return "NavigationBar"
    if short == "TextField" and widget.password:
        return "SecureTextField"
    if short == "TextField" and (widget.height or 0) > _SEVERAL_LINES_DP:
        return "TextView"
    if widget.clickable and short in ("Other", "StaticText", "Image"):
        if widget.rid.startswith("#"):
            return "Link"
        if parent == f"{PREFIX}Table":
            return "Cell"
        return "Icon" if widget.rid == "icon" else "Button"
    return "Cell" if parent == f"{PREFIX}Table" and node.children else short


def _attributes(node: Node, short: str, window: Placed, row: str, index: int) -> dict[str, str]:
    widget = node.widget
    text, hinting = shown_text(node)
    label, value = node.desc or text, ""
    match short:
        case "TextField" | "SecureTextField" | "TextView":
            label, value = "", text
        case "StaticText":
            value = text
        case "Switch":
            label, value = label or row, "1" if widget.checked else "0"
        case "ProgressIndicator":
            value = f"{round(widget.portion * 100)}%"
        case "Cell" | "Button" | "Icon" | "Link" if not label:
            label = ", ".join(text for each in node.walk() if (text := shown_text(each)[0]))
        case "NavigationBar" | "Alert" | "Sheet":
            label = next((each.text for each in node.walk() if each.text), "")
        case _:
            pass
    own = node.rid if ":id/" not in node.rid and short not in _BY_LABEL else ""
    name = own.removeprefix("#") or label
    placeholder = node.hint if short in ("TextField", "SecureTextField") else None
    focused = bool(widget.rid) and widget.editable and widget.rid == window.focus
    found = {
        "value": value,
        "name": name,
        "label": label,
        **_states(enabled=widget.enabled, visible=not node.hidden, accessible=bool(label) and not node.children),
        **_frame(node.frame),
        "index": str(index),
        "placeholderValue": (placeholder or "") if hinting or placeholder else "",
        "selected": "true" if widget.selected else "",
        "hasKeyboardFocus": "true" if focused else "",
    }
    return {key: printable(text) for key, text in found.items() if text}


def _states(*, enabled: bool = True, visible: bool = True, accessible: bool = False) -> dict[str, str]:
    states = {"enabled": enabled, "visible": visible, "accessible": accessible}
    return {name: str(value).lower() for name, value in states.items()}


def _frame(rect: Rect) -> dict[str, str]:
    return {name: str(value) for name, value in rect.wire().items()}
