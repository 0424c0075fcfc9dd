"""What a finger lands on, in the placed windows: the topmost window, and in it the innermost widget that acts. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from apex_lab.phone.acts import Hit
from apex_lab.phone.geometry import Point
from apex_lab.phone.layout import Node
from apex_lab.phone.screen import Screen
from apex_lab.phone.views import Placed, resource_id, shown_text
from apex_lab.phone.widgets import Handler, Widget


@dataclass(frozen=True, kw_only=True, slots=True)
class Aim:
    """`hit` for the act log; `press` is what happens, `field` the editable widget that gets the cursor instead."""

    hit: Hit | None = None
    press: Handler | None = None
    field: Widget | None = None


def under(screen: Screen, point: Point) -> tuple[Placed | None, list[Node]]:
    """The window under a point and its nodes there, outermost first; a modal window swallows what is beside it."""
    for window in reversed(screen.windows):
        if window.root.rect.holds(point):
            return window, window.root.trail(point)
        if window.modal:
            return window, []
    return None, []


def aim(screen: Screen, point: Point, *, held: bool = False) -> Aim:
    """What a tap (or, `held`, a long press) does; a long press on what knows none is a tap, as on Android."""
    window, trail = under(screen, point)
    if window is None:
        return Aim()
    if not trail:
        return Aim(press=screen.cancel)
    node = next((each for each in reversed(trail) if each.widget.clickable or (held and each.widget.on_long)), None)
    if node is None or not node.widget.enabled:
        return Aim(hit=describe(node or trail[-1], window, acted=False))
    widget = node.widget
    if widget.editable:
        return Aim(hit=describe(node, window, acted=True), field=widget)
    press = widget.on_long if held and widget.on_long else widget.on_tap
    return Aim(hit=describe(node, window, acted=True), press=press)


def describe(node: Node, window: Placed, *, acted: bool) -> Hit:
    """A node for the act log, by its true id, with the texts inside it."""
    return Hit(
        id=resource_id(node.widget.rid, window.package),
        cls=node.widget.cls,
        text=" ".join(filter(None, (shown_text(each)[0] for each in node.walk()))),
        desc=node.widget.desc,
        bounds=node.rect.bounds(),
        package=window.package,
        acted=acted,
    )


def way_back(screen: Screen) -> Handler | None:
    """What the first button of the navigation bar does, where there is one: the way back on iOS."""
    bar = next((node for node in screen.active.root.walk() if node.widget.rid == "action_bar"), None)
    first = next((node for node in bar.walk() if node.widget.on_tap), None) if bar else None
    return first.widget.on_tap if first is not None and first.widget.desc == "Navigate up" else None
