"""A Scene as a drawing: boxes with what is written on them, what was acted on, and where the finger went."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from apex_cli.report.words import attribute
from apex_cli.text import plain, shortened
from apex_schemas.geometry import Bounds
from apex_schemas.queries import SceneBox, TimelineScene, TimelineStep

_MOST: Final = 250
_LETTER: Final = 0.56
"""Of a letter's height, its usual width."""


def wireframe(step: TimelineStep) -> str:
    """An SVG in the screen's own pixels; a sentence where there is nothing to draw."""
    scene = step.scene
    if scene is None:
        return '<p class="nothing">no screen is on record for this turn</p>'
    if scene.boxes is None or not scene.width or not scene.height:
        return f'<p class="nothing">{scene.elements} elements; their places were not kept</p>'
    unit = max(scene.width, scene.height) / 1000
    parts = [*_boxes(scene, unit), *_keyboard(scene.keyboard, unit), *_act(step, unit)]
    about = f"screen of turn {step.turn}: {scene.elements} elements" + (
        f", {scene.omitted} left out" if scene.omitted else ""
    )
    return (
        f'<svg class="screen" viewBox="0 0 {scene.width} {scene.height}" role="img" aria-label="{attribute(about)}">'
        f'<rect class="glass" width="{scene.width}" height="{scene.height}"/>{"".join(parts)}</svg>'
    )


def _boxes(scene: TimelineScene, unit: float) -> Iterator[str]:
    drawn = [box for box in scene.boxes or () if box.interactive or box.label or box.value or box.checked is not None]
    for box in sorted(drawn[:_MOST], key=lambda each: -each.bounds.area):
        holds = any(other is not box and _inside(other.bounds, box.bounds) for other in drawn[:_MOST])
        css = "box" + ("" if box.enabled else " off") + (" can" if box.interactive else "")
        css += (" on" if box.checked else "") + (" focus" if box.focused else "")
        yield _rect(box.bounds, css, unit)
        yield from _writing(box, unit, at_top=holds)


def _inside(inner: Bounds, outer: Bounds) -> bool:
    return inner.area < outer.area and inner.intersection(outer) == inner


def _writing(box: SceneBox, unit: float, *, at_top: bool) -> Iterator[str]:
    mark = {True: "● ", False: "○ ", None: ""}[box.checked]
    words = plain(box.label) or plain(box.value or "")
    if not (words or mark):
        return
    bounds = box.bounds
    size = min(max(bounds.height * 0.5, unit * 9), unit * (14 if at_top else 20))
    fits = int(bounds.width / (size * _LETTER))
    if fits < 2 or bounds.height < unit * 8:
        return
    x = bounds.left + unit * 5
    y = bounds.top + (size * 1.2 if at_top else bounds.height / 2 + size * 0.35)
    yield (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size:.0f}">{attribute(mark + shortened(words, fits))}'
        f"<title>{attribute(f'{box.element} {box.role}: {words}')}</title></text>"
    )


def _keyboard(bounds: Bounds | None, unit: float) -> Iterator[str]:
    if bounds is not None:
        yield _rect(bounds, "keyboard", unit)
        size = unit * 30
        y = bounds.center.y + size / 3
        yield f'<text class="middle" x="{bounds.center.x}" y="{y:.0f}" font-size="{size:.0f}">keyboard</text>'


def _act(step: TimelineStep, unit: float) -> Iterator[str]:
    """What the act named, and the finger's place or way."""
    if step.target_bounds is not None:
        yield _rect(step.target_bounds, "target", unit)
    arguments = step.arguments or {}
    start, end = _point(arguments.get("start")), _point(arguments.get("end"))
    if start and end:
        yield (
            f'<line class="way" x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}" '
            f'stroke-width="{unit * 8:.0f}"/><circle class="finger" cx="{end[0]}" cy="{end[1]}" r="{unit * 16:.0f}"/>'
        )
    at = _point(arguments.get("at"))
    if at:
        yield (
            f'<circle class="halo" cx="{at[0]}" cy="{at[1]}" r="{unit * 42:.0f}" stroke-width="{unit * 5:.0f}"/>'
            f'<circle class="finger" cx="{at[0]}" cy="{at[1]}" r="{unit * 16:.0f}"/>'
        )


def _point(value: Mapping[str, Any] | None) -> tuple[int, int] | None:
    try:
        return (int(value["x"]), int(value["y"])) if value else None
    except (KeyError, TypeError, ValueError):
        return None


def _rect(bounds: Bounds, css: str, unit: float) -> str:
    return (
        f'<rect class="{css}" x="{bounds.left}" y="{bounds.top}" width="{bounds.width}" height="{bounds.height}" '
        f'rx="{unit * 6:.0f}"/>'
    )
