"""XCUITest's tags with x, y, width and height in points; the older UIA tags and tvOS carry the same attributes."""

from collections.abc import Callable

from apex_perception.markup import Markup, Tag
from apex_perception.nodes import LAYOUT, Box, Node, Tree, cut, ends_of

_PREFIXES = ("XCUIElementType", "UIA")
_KINDS = {
    "Application": "app",
    "Window": "app",
    "Button": "button",
    "Cell": "row",
    "TableCell": "row",
    "CollectionCell": "item",
    "StaticText": "text",
    "TextField": "field",
    "SecureTextField": "field",
    "SearchField": "field",
    "SearchBar": "field",
    "TextView": "field",
    "ComboBox": "select",
    "PopUpButton": "select",
    "PickerWheel": "select",
    "Switch": "switch",
    "Toggle": "switch",
    "CheckBox": "checkbox",
    "RadioButton": "radio",
    "Slider": "slider",
    "Stepper": "slider",
    "ProgressIndicator": "progress",
    "ActivityIndicator": "progress",
    "Image": "image",
    "Icon": "icon",
    "Link": "link",
    "MenuItem": "item",
    "Tab": "tab",
    "Key": "keyboard-key",
    "Keyboard": "keyboard",
    "Alert": "dialog",
    "Sheet": "dialog",
    "ActionSheet": "dialog",
    "Dialog": "dialog",
    "NavigationBar": "bar",
    "Toolbar": "bar",
    "TabBar": "tabs",
    "StatusBar": "status-bar",
    "Table": "list",
    "TableView": "list",
    "CollectionView": "list",
    "ScrollView": "scroll",
    "WebView": "web",
    "Map": "canvas",
}
_ACTING = frozenset(
    "button row item field select switch checkbox radio slider icon link tab keyboard-key".split()  # noqa: SIM905
)
_FAR = 1_000_000
"""Points; a place beyond that is no place, and times a scale no number."""
_SCROLLING = frozenset(("list", "scroll", "web"))
_HOLDING = frozenset(("field", "select", "slider", "progress"))


def tree(markup: Markup) -> Tree:
    """The neutral tree, without the tags around the application."""
    nodes: list[Node] = []
    kept: list[int] = []
    depths: list[int] = []
    size: tuple[int, int] | None = None
    app: str | None = None
    for tag in markup.tags:
        above = kept[tag.parent] if tag.parent >= 0 else -1
        short = _short(tag.name)
        if short is None:
            kept.append(above)
            depths.append(0)
            continue
        depth = depths[tag.parent] + 1 if above >= 0 else 0
        node = _node(tag, short, above, depth)
        if short == "Application":
            size = size or (node.box[2:] if node.box and node.box[2] > 0 and node.box[3] > 0 else None)
            app = app or tag.attributes.get("bundleId") or node.name or None
        kept.append(len(nodes))
        depths.append(depth)
        nodes.append(node)
    from_windows = [node.box[2:] for node in nodes if node.box and node.depth < 3 and node.box[2] and node.box[3]]
    return Tree(
        nodes=nodes, ends=ends_of(nodes), dialect="ios", size=size or max(from_windows, default=None),
        stated=size is not None, app=app, omitted=markup.omitted,
    )  # fmt: skip


def _short(name: str) -> str | None:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    return None


def _node(tag: Tag, short: str, parent: int, depth: int) -> Node:
    get = tag.attributes.get
    kind = _KINDS.get(short, LAYOUT)
    identifier, label, value = get("name", "").strip(), get("label", "").strip(), get("value", "").strip()
    hint = cut((get("placeholderValue") or get("placeholder") or "").strip())
    shown, enabled = get("visible") != "false", get("enabled") != "false"
    password = short == "SecureTextField"
    if password:
        # Without a name the label is no name that a developer gave: it may be what was typed.
        label = label if identifier else ""
        held: str | None = "" if not value or value == hint else "•••"
    elif kind in _HOLDING:
        held = "" if value == hint and kind == "field" else value
    else:
        held = value or None
    checked = value.lower() in ("1", "true", "on") if kind in ("switch", "checkbox", "radio") else None
    name = label or identifier
    text = (label or value or identifier) if kind == "text" else ""
    if kind == "text" or checked is not None or held == name:
        held = None
    acts = kind in _ACTING
    traits = get("traits", "")
    selected = get("selected") == "true" or "Selected" in traits or (kind == "button" and value == "1")
    if kind == "button" and value == "1":
        held = None
    if get("hittable") == "false" and not shown:
        acts = False
    # By position: with so many fields that takes an eighth of the time that names take.
    return Node(
        parent, depth, kind, _box(get), cut(text), "" if text else cut(name),
        None if held is None else cut(held),  # value
        hint, identifier,
        "" if password else (value if kind in _HOLDING else label),  # raw_text
        label,  # raw_name
        tag.name,  # class_name
        "",  # package
        acts, acts,  # clickable
        kind == "field",  # editable
        kind in _SCROLLING, enabled, checked, selected,
        get("focused") == "true" or get("hasFocus") == "true" or get("hasKeyboardFocus") == "true",
        False,  # focusable
        password, shown,
    )  # fmt: skip


def _box(get: Callable[[str, str], str]) -> Box | None:
    try:
        x, y = int(get("x", "")), int(get("y", ""))
        right, bottom = x + int(get("width", "")), y + int(get("height", ""))
    except ValueError:  # parts of points, or none at all
        try:
            left, top, width, height = (float(get(name, "nan")) for name in ("x", "y", "width", "height"))
            x, y, right, bottom = round(left), round(top), round(left + width), round(top + height)
        except (ValueError, OverflowError):
            return None
    if x > right or y > bottom or x < -_FAR or y < -_FAR or right > _FAR or bottom > _FAR:
        x, right = sorted((max(-_FAR, min(_FAR, x)), max(-_FAR, min(_FAR, right))))
        y, bottom = sorted((max(-_FAR, min(_FAR, y)), max(-_FAR, min(_FAR, bottom))))
    return x, y, right, bottom
