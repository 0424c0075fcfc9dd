"""What a screen is made of: one tree of widgets, from which layout, page source, picture and hit test all come.

A widget is a value; an app builds a fresh tree from its state whenever the screen is looked at. Sizes are in dp
(360 dp is the screen's short side). A handler is a method of the app; it changes the app's state, never the tree.
The functions below are the vocabulary: an app should need no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

Arrange = Literal["column", "row", "frame", "grid"]
Look = Literal[
    "none", "page", "bar", "card", "text", "title", "small", "button", "round", "icon", "switch", "field", "key",
    "dark", "piece", "progress", "link", "check",
]  # fmt: skip
Gravity = Literal["fill", "center", "bottom_end", "bottom", "end"]
Handler = Callable[[], None]
TOUCH_OUTSIDE = "touch_outside"
"""The resource id of the area beside a sheet, as Material calls it."""
TextHandler = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Widget:
    """One view. `rid` is the resource id without the package (``title`` becomes ``<package>:id/title``).

    `width`/`height` None: fills the row's rest, wraps the content; `grow` takes what the column has left.
    `on_text` makes it an editable field whose value is `text`; `scrolls` makes it a container with an offset.
    `opaque` hides what is inside from the page source: it is drawn and takes touches, as in a game. `drifts` makes it
    move with every read. `portion` is how much of a progress bar is full.
    """

    cls: str = "android.view.View"
    text: str = ""
    desc: str = ""
    rid: str = ""
    hint: str | None = None
    children: tuple[Widget, ...] = ()
    arrange: Arrange = "column"
    width: float | None = None
    height: float | None = None
    grow: bool = False
    pad: float = 0
    gravity: Gravity = "fill"
    look: Look = "none"
    enabled: bool = True
    checked: bool | None = None
    selected: bool = False
    password: bool = False
    max_length: int = -1
    scrolls: bool = False
    shuffles: bool = False
    opaque: bool = False
    drifts: bool = False
    portion: float = 0
    on_tap: Handler | None = None
    on_long: Handler | None = None
    on_text: TextHandler | None = None
    on_enter: Handler | None = None

    @property
    def editable(self) -> bool:
        return self.on_text is not None

    @property
    def clickable(self) -> bool:
        return self.on_tap is not None or self.editable


def column(*children: Widget, rid: str = "", pad: float = 0, grow: bool = False, look: Look = "none") -> Widget:
    """Children under each other."""
    return Widget(
        cls="android.widget.LinearLayout", rid=rid, children=children, pad=pad, grow=grow, look=look
    )  # fmt: skip


def row(*children: Widget, height: float | None = None, pad: float = 0, look: Look = "none") -> Widget:
    """Children beside each other, mirrored on a right-to-left screen."""
    return Widget(
        cls="android.widget.LinearLayout", arrange="row", children=children, height=height, pad=pad, look=look
    )


def space(height: float) -> Widget:
    return Widget(height=height)


def text(value: str, *, rid: str = "", look: Look = "text", height: float | None = None) -> Widget:
    return Widget(cls="android.widget.TextView", text=value, rid=rid, look=look, height=height)


def button(label: str, on_tap: Handler, *, rid: str = "", enabled: bool = True, width: float | None = None) -> Widget:
    return Widget(
        cls="android.widget.Button",
        text=label,
        rid=rid,
        look="button",
        height=44,
        width=width,
        enabled=enabled,
        on_tap=on_tap,
    )


def icon_button(desc: str, on_tap: Handler, *, rid: str = "") -> Widget:
    """A button that has a content description and no text."""
    return Widget(
        cls="android.widget.ImageButton", desc=desc, rid=rid, look="icon", width=48, height=48, on_tap=on_tap
    )  # fmt: skip


def bar(title: str, *actions: Widget, up: Handler | None = None) -> Widget:
    """The bar at the top: title, a way back when there is one, actions at the end."""
    back = (icon_button("Navigate up", up),) if up else ()
    label = Widget(cls="android.widget.TextView", text=title, rid="action_bar_title", look="title", height=28)
    return Widget(
        cls="android.view.ViewGroup",
        rid="action_bar",
        arrange="row",
        children=(*back, label, *actions),
        height=56,
        pad=6,
        look="bar",
    )


def item(
    title: str, on_tap: Handler | None = None, *, summary: str = "", rid: str = "", on_long: Handler | None = None
) -> Widget:
    """A row of a list: the row acts, its texts are children of it."""
    lines = [text(title, rid="android:id/title", height=22)]
    if summary:
        lines.append(text(summary, rid="android:id/summary", look="small", height=18))
    return Widget(
        cls="android.widget.LinearLayout",
        rid=rid,
        children=tuple(lines),
        height=64,
        pad=10,
        look="card",
        on_tap=on_tap,
        on_long=on_long,
    )


def switch_item(title: str, on: bool, on_tap: Handler, *, summary: str = "", enabled: bool = True) -> Widget:
    """A row with a switch. As in Android's settings the row acts and the switch is a child that cannot be clicked."""
    lines = [text(title, rid="android:id/title", height=22)]
    if summary:
        lines.append(text(summary, rid="android:id/summary", look="small", height=18))
    knob = Widget(
        cls="android.widget.Switch",
        rid="android:id/switch_widget",
        look="switch",
        width=48,
        height=28,
        checked=on,
        enabled=enabled,
    )
    return Widget(
        cls="android.widget.LinearLayout",
        arrange="row",
        children=(Widget(cls="android.widget.RelativeLayout", children=tuple(lines)), knob),
        height=64,
        pad=10,
        look="card",
        enabled=enabled,
        on_tap=on_tap,
    )


def field(
    hint: str,
    value: str,
    on_text: TextHandler,
    *,
    rid: str,
    password: bool = False,
    max_length: int = -1,
    on_enter: Handler | None = None,
    height: float = 52,
) -> Widget:
    """An editable field; shows its hint while it is empty. One higher than 60 dp is for several lines."""
    return Widget(
        cls="android.widget.EditText",
        text=value,
        hint=hint,
        rid=rid,
        look="field",
        height=height,
        on_text=on_text,
        on_enter=on_enter,
        password=password,
        max_length=max_length,
    )


def progress(portion: float, desc: str, *, rid: str) -> Widget:
    """A bar that is full by `portion`, from 0 to 1."""
    return Widget(
        cls="android.widget.ProgressBar",
        desc=desc,
        rid=rid,
        look="progress",
        height=12,
        portion=min(1, max(0, portion)),
    )


def tabs(chosen: str, choices: Iterable[tuple[str, Handler]]) -> Widget:
    """A bar of tabs, for the lower end of a page."""
    cells = tuple(
        Widget(
            cls="com.google.android.material.bottomnavigation.BottomNavigationItemView",
            rid=f"tab_{label.lower()}",
            selected=label == chosen,
            on_tap=on_tap,
            height=48,
            children=(text(label, rid="navigation_bar_item_label", look="title" if label == chosen else "small"),),
            pad=6,
        )
        for label, on_tap in choices
    )
    return Widget(
        cls="com.google.android.material.bottomnavigation.BottomNavigationView",
        rid="tabs",
        arrange="row",
        children=cells,
        height=56,
        look="bar",
    )


def recycler(rows: Iterable[Widget], *, rid: str, shuffles: bool = True) -> Widget:
    """A list that scrolls; only the rows in view are in the page source."""
    return Widget(
        cls="androidx.recyclerview.widget.RecyclerView",
        rid=rid,
        children=tuple(rows),
        grow=True,
        scrolls=True,
        shuffles=shuffles,
    )


def scroll_view(*children: Widget, rid: str) -> Widget:
    """A form that scrolls."""
    inside = Widget(cls="android.widget.LinearLayout", children=children, pad=12)
    return Widget(cls="android.widget.ScrollView", rid=rid, children=(inside,), grow=True, scrolls=True)


def floating(desc: str, on_tap: Handler, *, rid: str = "fab") -> Widget:
    """A round button over the lower end of the screen."""
    return Widget(
        cls="android.widget.ImageButton",
        desc=desc,
        rid=rid,
        look="round",
        width=56,
        height=56,
        gravity="bottom_end",
        on_tap=on_tap,
    )


def over(base: Widget, *above: Widget) -> Widget:
    """Widgets painted over another one."""
    return Widget(cls="android.widget.FrameLayout", arrange="frame", children=(base, *above), grow=True)


def grid(cells: Iterable[Widget], *, rid: str, shuffles: bool = True) -> Widget:
    """Equal cells, as many in a row as fit."""
    return Widget(
        cls="android.view.ViewGroup", rid=rid, arrange="grid", grow=True, children=tuple(cells), shuffles=shuffles
    )


def as_on_ios(widget: Widget) -> Widget:
    """The same where iOS differs: the switch takes the taps, not the row around it; what lies beside a sheet closes it
    without being an element.
    """
    if widget.rid == TOUCH_OUTSIDE:
        return Widget(children=(replace(widget, grow=True),), opaque=True)
    if not widget.children:
        return widget
    knob = next((child for child in widget.children if child.checked is not None and child.on_tap is None), None)
    if knob is not None and widget.on_tap is not None:
        acting = tuple(replace(each, on_tap=widget.on_tap) if each is knob else each for each in widget.children)
        return replace(widget, children=acting, on_tap=None)
    children = tuple(as_on_ios(child) for child in widget.children)
    same = all(new is old for new, old in zip(children, widget.children, strict=True))
    return widget if same else replace(widget, children=children)
