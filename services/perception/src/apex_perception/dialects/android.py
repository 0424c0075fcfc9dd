"""UiAutomator2's class-named tags and `<node>` dumps: the same attributes under two kinds of tag.

A class is looked at only to guess a role; names and queries are never built from it, since obfuscation makes it
anything.
"""

import re
from functools import lru_cache

from apex_perception.markup import Markup, Tag
from apex_perception.nodes import LAYOUT, Box, Node, Tree, cut, ends_of

_BOUNDS = re.compile(r"\s*\[\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*\]\s*\[\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*\]")
_ROOTS = frozenset(("apex-root", "AppiumAUT", "app", "hierarchy", "displays", "display", "window"))
_KINDS = (
    ("field", ("EditText", "AutoComplete", "TextInputEdit", "EditField")),
    ("switch", ("Switch", "ToggleButton")),
    ("checkbox", ("CheckBox", "CheckedTextView")),
    ("radio", ("RadioButton",)),
    ("slider", ("SeekBar", "Slider", "RatingBar")),
    ("progress", ("ProgressBar", "ProgressIndicator")),
    ("select", ("Spinner",)),
    ("tab", ("TabView", "NavigationBarItemView", "BottomNavigationItemView", "$Tab", "ActionBar.Tab")),
    ("button", ("Button", "Chip")),
    ("image", ("ImageView",)),
    ("web", ("WebView",)),
    ("canvas", ("SurfaceView", "TextureView", "VideoView", "MapView", "UnityPlayer", "FlutterView")),
    ("pager", ("ViewPager",)),
    ("scroll", ("ScrollView",)),
    ("list", ("RecyclerView", "ListView", "GridView")),
    ("tabs", ("TabWidget", "TabLayout", "BottomNavigationView", "NavigationBarView")),
    ("bar", ("Toolbar", "ActionBar", "AppBarLayout", "action_bar")),
    ("text", ("TextView", "DigitalClock", "TextClock", "Chronometer", "Toast")),
)
_ACT_BY_CLASS = frozenset(("field", "switch", "checkbox", "radio", "slider", "select", "button"))
_CHECKABLE = frozenset(("switch", "checkbox", "radio"))


def tree(markup: Markup) -> Tree:
    """The neutral tree. Tags that stand for no view (`hierarchy` and the like) vanish; their hints are kept."""
    nodes: list[Node] = []
    kept: list[int] = []  # by tag: the index of its node, or of its nearest ancestor that has one
    size, turns = None, None
    for tag in markup.tags:
        above = kept[tag.parent] if tag.parent >= 0 else -1
        if tag.name in _ROOTS and "bounds" not in tag.attributes:
            size, turns = size or _size(tag), turns if turns is not None else _turns(tag)
            kept.append(above)
            continue
        kept.append(len(nodes))
        nodes.append(_node(tag, above, nodes[above].depth + 1 if above >= 0 else 0))
    guessed = size or _extent(nodes)
    return Tree(
        nodes=nodes, ends=ends_of(nodes), dialect="android", size=guessed, stated=size is not None, turns=turns,
        app=next((node.package for node in nodes if node.package and node.package != "com.android.systemui"), None),
        omitted=markup.omitted,
    )  # fmt: skip


def _node(tag: Tag, parent: int, depth: int) -> Node:
    get = tag.attributes.get
    class_name = (get("class") if tag.name == "node" or "class" in tag.attributes else tag.name) or ""
    kind = kind_of(class_name)
    raw_text, raw_name = get("text", ""), get("content-desc", "")
    text = cut(raw_text.strip()) if raw_text else ""
    name = cut(raw_name.strip()) if raw_name else ""
    hint = cut(get("hint", "").strip())
    clickable = get("clickable") == "true"
    checkable = get("checkable") == "true"
    if kind == "checkbox" and not checkable and get("checkable") == "false" and not clickable:
        kind = "text"  # a CheckedTextView that shows a text only
    editable = kind == "field"
    password = get("password") == "true"
    acts = (
        clickable
        or checkable
        or editable
        or get("long-clickable") == "true"
        or (kind in _ACT_BY_CLASS and "clickable" not in tag.attributes)
    )
    value: str | None = None
    if editable:
        showing = get("showing-hint") or get("showing-hint-text")
        empty = not text or showing == "true" or (showing is None and hint != "" and text == hint)
        value, hint = ("", hint or text) if empty else (text, hint)
        text = ""
        if password:
            value = "•••" if value else ""
            raw_text = ""
    elif kind in ("slider", "progress"):
        value, text = text or None, ""
    elif password and text:
        text = raw_text = "•••"
    checked = get("checked") == "true" if checkable or kind in _CHECKABLE else None
    order = get("drawing-order")
    # By position: with so many fields that takes an eighth of the time that names take.
    return Node(
        parent, depth, kind, _box(get("bounds")), text, name, value, hint,
        get("resource-id", ""), raw_text, raw_name, class_name.strip(), get("package", ""),
        acts, clickable, editable,
        get("scrollable") == "true",  # scrollable
        get("enabled") != "false",  # enabled
        checked,
        get("selected") == "true",  # selected
        get("focused") == "true",  # focused
        get("focusable") == "true",  # focusable
        password,
        get("displayed") != "false" and get("visible-to-user") != "false",  # shown
        0 if order is None else _integer(order) or 0,  # order
    )  # fmt: skip


@lru_cache(maxsize=4_096)
def kind_of(class_name: str) -> str:
    short = class_name.rpartition(".")[2]
    for kind, words in _KINDS:
        if any(word in short for word in words):
            return kind
    return LAYOUT


@lru_cache(maxsize=16_384)  # the same screen is read at least twice
def _box(bounds: str | None) -> Box | None:
    """Normalised: reversed corners are put right. None when missing or unreadable."""
    found = _BOUNDS.match(bounds) if bounds else None
    if found is None:
        return None
    left, top, right, bottom = map(int, found.groups())
    if left > right:
        left, right = right, left
    if top > bottom:
        top, bottom = bottom, top
    return left, top, right, bottom


def _size(tag: Tag) -> tuple[int, int] | None:
    width, height = (_integer(tag.attributes.get(name, "")) for name in ("width", "height"))
    return (width, height) if width and height and width > 0 and height > 0 else None


def _turns(tag: Tag) -> int | None:
    turns = _integer(tag.attributes.get("rotation", ""))
    return None if turns is None else (turns // 90 if turns >= 90 else turns) % 4


def _extent(nodes: list[Node]) -> tuple[int, int] | None:
    """As far as the roots reach; nodes further down may reach beyond the screen."""
    boxes = [node.box for node in nodes if node.parent < 0 and node.box is not None]
    boxes = boxes or [node.box for node in nodes if node.box is not None]
    right = max((box[2] for box in boxes), default=0)
    bottom = max((box[3] for box in boxes), default=0)
    return (right, bottom) if right > 0 and bottom > 0 else None


@lru_cache(maxsize=4_096)
def _integer(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
