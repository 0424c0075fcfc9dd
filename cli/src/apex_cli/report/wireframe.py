"""A Scene as a drawing: boxes with what is written on them, what was acted on, and where the finger went.

Consumes what the decision-log keeps of a Scene, or what is made of one in hand; emits SVG in the screen's own pixels,
for the page of a report or as a file of its own, without scripts, links or fonts.
"""

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Final

from apex_cli.report.words import attribute
from apex_cli.text import plain, shortened
from apex_schemas.geometry import Bounds
from apex_schemas.queries import SceneBox, TimelineScene, TimelineStep

_MOST: Final = 250
_LETTER: Final = 0.56
"""Of a letter's height, its usual width."""
_NO_XML: Final = {0xFFFE: None, 0xFFFF: None}


def wireframe(step: TimelineStep) -> str:
    """The screen of a turn and what was done on it; a sentence where there is nothing to draw."""
    scene = step.scene
    if scene is None:
        return '<p class="nothing">no screen is on record for this turn</p>'
    if scene.boxes is None or not scene.width or not scene.height:
        return f'<p class="nothing">{scene.elements} elements; their places were not kept</p>'
    about = f"screen of turn {step.turn}: {scene.elements} elements" + (
        f", {scene.omitted} left out" if scene.omitted else ""
    )
    return _svg(scene, about, "".join(_act(step, _unit(scene))))


def alone(scene: TimelineScene, title: str) -> str:
    """The drawing as a file: with its style, and the id of each element that can be acted on."""
    head = f"<style>{style()}</style>"
    size = f'width="{_WIDE}" height="{round(_WIDE * scene.height / max(1, scene.width))}"'
    svg = _svg(scene, title, "", ids=True, head=head, more=f' xmlns="http://www.w3.org/2000/svg" {size}')
    return svg.translate(_NO_XML)


_WIDE: Final = 420


def style() -> str:
    return resources.files("apex_cli").joinpath("report/wireframe.css").read_text("utf-8")


def _svg(scene: TimelineScene, about: str, act: str, *, ids: bool = False, head: str = "", more: str = "") -> str:
    unit = _unit(scene)
    parts = (*_boxes(scene, unit, ids), *_keyboard(scene.keyboard, unit))
    return (
        f'<svg class="screen" viewBox="0 0 {scene.width} {scene.height}" role="img" aria-label="{attribute(about)}"'
        f'{more}>{head}<rect class="glass" width="{scene.width}" height="{scene.height}"/>{"".join(parts)}{act}</svg>'
    )


def _unit(scene: TimelineScene) -> float:
    return max(scene.width, scene.height, 1) / 1000


def _boxes(scene: TimelineScene, unit: float, ids: bool) -> Iterator[str]:
    drawn = [box for box in scene.boxes or () if box.interactive or box.label or box.value or box.checked is not None]
    for box in sorted(drawn[:_MOST], key=lambda each: -each.bounds.area):
        holds = any(other is not box and _inside(other.bounds, box.bounds) for other in drawn[:_MOST])
        css = "box" + ("" if box.enabled else " off") + (" can" if box.interactive else "")
        css += (" on" if box.checked else "") + (" focus" if box.focused else "") + (" behind" if box.obstacle else "")
        yield _rect(box.bounds, css, unit)
        yield from _writing(box, unit, at_top=holds, ident=ids and box.interactive)


def _inside(inner: Bounds, outer: Bounds) -> bool:
    return inner.area < outer.area and inner.intersection(outer) == inner


def _writing(box: SceneBox, unit: float, *, at_top: bool, ident: bool) -> Iterator[str]:
    mark = {True: "● ", False: "○ ", None: ""}[box.checked]
    words = plain(box.label) or plain(box.value or "")
    if not (words or mark or ident):
        return
    bounds = box.bounds
    size = min(max(bounds.height * 0.5, unit * 9), unit * (14 if at_top else 20))
    fits = int(bounds.width / (size * _LETTER)) - (len(box.element) + 1 if ident else 0)
    if (fits < 2 or bounds.height < unit * 8) and not ident:
        return
    x = bounds.left + unit * 5
    y = bounds.top + (size * 1.2 if at_top else bounds.height / 2 + size * 0.35)
    told = attribute(mark + shortened(words, fits)) if fits >= 2 else ""
    name = f'<tspan class="id">{attribute(box.element)}</tspan> ' if ident else ""
    about = attribute(" ".join(filter(None, (f"{box.element} {box.role}: {words}", box.obstacle))))
    yield f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size:.0f}">{name}{told}<title>{about}</title></text>'


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
