"""A Scene as a drawing: boxes, labels and the point of the next act, as SVG. It stands for the picture wherever
people look, since the picture itself stays with perception and the planner.

Consumes a Scene; emits the text of one SVG element without scripts, links or fonts of its own.
"""

from collections.abc import Iterator
from html import escape

from apex_schemas.geometry import Bounds, Point
from apex_schemas.scene import Element, Scene

_WIDE = 360.0
_LONGEST = 60
_FORBIDDEN = {code: None for code in range(0x20)} | {0xFFFE: None, 0xFFFF: None}
_STYLE = (
    ".s{fill:#fff;stroke:#888}.e{fill:#4a7dbd14;stroke:#4a7dbd}.t{fill:none;stroke:none}.f{fill:#fff;stroke:#2b6a3f}"
    ".w{fill:#0000000a;stroke:#bbb;stroke-dasharray:4 3}.d{fill:#ffffffd9;stroke:#333;stroke-width:1.5}"
    ".o{stroke-dasharray:2 2;opacity:.5}.k{fill:#ddd;stroke:#999}.p{fill:#c33}.h{fill:none;stroke:#c33;stroke-width:2}"
    "text{font:9px sans-serif;fill:#222}.i{fill:#4a7dbd}"
)


def draw(scene: Scene, *, act: Point | None = None, target: str | None = None) -> str:
    """The SVG of a Scene, 360 units wide. `act` is where the phone is touched next, `target` the id of what is meant.

    A password's value is never drawn.
    """
    size = scene.screen.size
    scale = _WIDE / size.width if size.width else 1.0
    high = max(size.height * scale, 40.0)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE:g} {high:.1f}" width="{_WIDE:g}"'
            f' height="{high:.1f}" role="img" aria-label="{_text(scene.page)}">',
            f"<style>{_STYLE}</style>",
            f'<rect class="s" width="{_WIDE:g}" height="{high:.1f}"/>',
            *_keyboard(scene, scale),
            *(line for element in scene.elements for line in _element(element, scale, hit=element.id == target)),
            *_point(act, scale),
            "</svg>",
        )
    )


def _keyboard(scene: Scene, scale: float) -> Iterator[str]:
    if scene.keyboard is not None and scene.keyboard.bounds is not None:
        yield f'<rect class="k" {_box(scene.keyboard.bounds, scale)}/>'


def _element(element: Element, scale: float, *, hit: bool) -> Iterator[str]:
    box = element.bounds
    if box is None or element.obstacle == "off_screen":
        return
    classes = [_class(element), *(["o"] if element.obstacle else [])]
    yield f'<g><title>{_text(_told(element))}</title><rect class="{" ".join(classes)}" {_box(box, scale)} rx="2"/>'
    x, y = box.left * scale + 3, box.top * scale + min(10, max(8, box.height * scale / 2 + 3))
    words = element.value if element.editable and element.value and not element.password else element.label
    room = int(box.width * scale / 4.6) - (len(element.id) + 1 if element.interactive else 0)
    room -= 0 if element.checked is None else 3
    name = words if len(words) <= room else words[: room - 1] + "…" if room > 2 else ""
    ident = f'<tspan class="i">{element.id}</tspan> ' if element.interactive else ""
    if name or ident:
        yield f'<text x="{x:.1f}" y="{y:.1f}">{ident}{_text(name)}</text>'
    if element.checked is not None:
        mark = "☑" if element.checked else "☐"
        yield f'<text x="{box.right * scale - 12:.1f}" y="{y:.1f}">{mark}</text>'
    if hit:
        yield f'<rect class="h" {_box(box, scale)} rx="2"/>'
    yield "</g>"


def _class(element: Element) -> str:
    if element.role == "dialog":
        return "d"
    if element.editable:
        return "f"
    if element.interactive:
        return "e"
    return "w" if element.scrollable or element.role in ("canvas", "web", "image", "progress") else "t"


def _told(element: Element) -> str:
    words = [element.id, element.role, element.label[:_LONGEST], element.obstacle or ""]
    return " ".join(word for word in words if word)


def _point(act: Point | None, scale: float) -> Iterator[str]:
    if act is not None:
        x, y = act.x * scale, act.y * scale
        yield f'<circle class="h" cx="{x:.1f}" cy="{y:.1f}" r="9"/><circle class="p" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'


def _box(box: Bounds, scale: float) -> str:
    return (
        f'x="{box.left * scale:.1f}" y="{box.top * scale:.1f}"'
        f' width="{box.width * scale:.1f}" height="{box.height * scale:.1f}"'
    )


def _text(text: str) -> str:
    """Foreign text, safe inside SVG whatever it holds."""
    return escape(text.translate(_FORBIDDEN).encode("utf-8", "replace").decode(), quote=True)
