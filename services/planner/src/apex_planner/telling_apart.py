"""Words for things that a line of text would not tell apart: where they are, or which of their like they are.

Consumes a Scene; emits words by element id. Things of one name that stand in rows of different names, or behind
different texts, are told apart by these already.
"""

from collections.abc import Mapping
from typing import NamedTuple

from apex_planner.text import label
from apex_schemas.geometry import Size
from apex_schemas.scene import Element, Scene

_MANY = 12
"""Of more things of one name than that, as the squares of a board, each is told by its number."""


class _Like(NamedTuple):
    element: Element
    context: tuple[str, str]
    """The name of what it is in, and what is said right before it."""


def told_apart(scene: Scene) -> Mapping[str, str]:
    """`top right`, `2 of 3`: for what acts and has no name, or the name of another in the same context."""
    names = {element.id: label(element.label) for element in scene.elements}
    groups: dict[tuple[str, str], list[_Like]] = {}
    before: dict[str | None, tuple[str, str]] = {}  # the last name said, and the last that was another
    for element in scene.elements:
        parent, name = element.parent, names[element.id]
        last, other = before.get(parent, ("", ""))
        if element.interactive and not element.scrollable and element.obstacle != "off_screen":
            context = names.get(parent or "", ""), other if last == name else last
            groups.setdefault((element.role, name), []).append(_Like(element, context))
        if name and name != last:
            before[parent] = name, last
    words: dict[str, str] = {}
    for (_, name), like in groups.items():
        if len(like) > 1 and len({each.context for each in like}) == len(like) and name:
            continue
        if len(like) > 1 or not (name or like[0].element.value or like[0].element.hint or like[0].element.editable):
            words.update(_places([each.element for each in like], scene.screen.size))
    return words


def _places(like: list[Element], size: Size) -> dict[str, str]:
    places = [_place(element, size) for element in like]
    if len(like) <= _MANY and "" not in places and len(set(places)) == len(places):
        return {element.id: place for element, place in zip(like, places, strict=True)}
    if len(like) == 1:
        return {}
    return {element.id: f"{number} of {len(like)}" for number, element in enumerate(like, start=1)}


def _place(element: Element, size: Size) -> str:
    """In which ninth of the screen its middle lies; for what is wide, in which third of the height."""
    box = element.bounds
    if box is None or not size.width or not size.height:
        return ""
    middle = box.center
    down = ("top", "middle", "bottom")[min(2, max(0, 3 * middle.y // size.height))]
    if 2 * box.width > size.width:
        return down
    across = ("left", "centre", "right")[min(2, max(0, 3 * middle.x // size.width))]
    return f"{down} {across}"
