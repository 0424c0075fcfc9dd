"""A Scene as a person reads it: what was seen, how sure that is, and each element on a line."""

from rich.console import Group, RenderableType

from apex_cli.text import plain, quoted, styled
from apex_schemas.scene import Element, Scene


def shown_scene(scene: Scene) -> RenderableType:
    size = scene.screen.size
    lines = [
        styled((plain(scene.page), "bold"), f"  {plain(scene.app or 'unknown app')}"),
        styled(
            (f"{size.width}×{size.height} px, scale {scene.screen.scale:g}, rotation {scene.screen.rotation}°", "dim"),
            (f", from {scene.source}, {len(scene.elements)} elements", "dim"),
            (f", {scene.omitted} left out" if scene.omitted else "", "yellow"),
            (", keyboard shown" if scene.keyboard else "", "dim"),
        ),
        *(styled(("mended: " + plain(step), "yellow")) for step in scene.recovery),
        *(_element(element) for element in scene.elements),
    ]
    return Group(*lines)


def _element(element: Element) -> RenderableType:
    box = element.bounds
    where = f"  {box.left},{box.top} {box.width}×{box.height}" if box else "  nowhere"
    if element.tap_point is not None:
        where += f", tap at {element.tap_point.x},{element.tap_point.y}"
    return styled(
        (f"{element.id:>5} ", "cyan"),
        "  " * min(element.depth, 8),
        (plain(element.role), "bold" if element.interactive else ""),
        f" {quoted(element.label, 80)}" if element.label else "",
        f" = {quoted(element.value, 60)}" if element.value and not element.password else "",
        (_states(element), "magenta"),
        (where, "dim"),
        (f"  {element.obstacle}" if element.obstacle else "", "yellow"),
    )


def _states(element: Element) -> str:
    states = {
        "on": element.checked is True,
        "off": element.checked is False,
        "selected": element.selected,
        "focused": element.focused,
        "disabled": not element.enabled,
        "password": element.password,
        "scrolls": element.scrollable,
    }
    return "".join(f" {name}" for name, holds in states.items() if holds)
