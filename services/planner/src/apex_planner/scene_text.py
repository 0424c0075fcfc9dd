"""The Scene as a model reads it: one short line for each thing, inside a fence that nothing on the screen can close.

Ids are given to what can be acted on; plain text stands without. Values of password fields are never written.
"""

import json
from collections.abc import Iterator
from typing import Final

from apex_planner.text import cut, label, plain
from apex_schemas.geometry import Size
from apex_schemas.scene import Element, Scene

OPAQUE_ROLES: Final = frozenset(("canvas", "web"))
"""Surfaces that the tree cannot see into. They are listed, since a point in them can be named."""


def write_scene(scene: Scene, *, seen: Size | None = None) -> str:
    """The fenced text of a Scene, ending with the closing fence. `seen` is the size of the picture that goes along:
    then that is the size in which points are named."""
    return "\n".join((_opening(scene, seen or scene.screen.size), *_lines(scene), "</screen>"))


def quoted(text: str) -> str:
    """A label in JSON quotes, cleaned and cut."""
    return json.dumps(label(text), ensure_ascii=False)


def _opening(scene: Scene, size: Size) -> str:
    parts = [f"<screen app={quoted(scene.app or '')} page={quoted(scene.page)}", f'size="{size.width}x{size.height}"']
    if scene.keyboard is not None:
        parts.append('keyboard="shown"')
    if scene.source == "screenshot-only":
        parts.append('elements="none: see the picture"')
    return " ".join(parts) + ">"


def _lines(scene: Scene) -> Iterator[str]:
    depths: dict[str, int] = {}
    said: dict[str, str] = {}
    before = ""
    for element in scene.elements:
        depth = depths.get(element.parent or "", -1) + 1
        line = _line(element)
        shown = label(element.label)
        repeats = not has_id(element) and shown in (said.get(element.parent or ""), before)
        if line is None or repeats:
            depths[element.id] = depth - 1  # its children stand where it would have stood
            said[element.id] = said.get(element.parent or "", "")
            continue
        depths[element.id], said[element.id], before = depth, shown, shown
        yield "  " * depth + line
    if scene.omitted:
        yield f"({scene.omitted} more not listed)"


def has_id(element: Element) -> bool:
    """Whether the element is offered to the model by its id."""
    return element.interactive or element.editable or element.scrollable or element.role in OPAQUE_ROLES


def _line(element: Element) -> str | None:
    """None for what neither says nor does anything."""
    if not has_id(element):
        name = label(element.label)
        return f"text {quoted(name)}{_percent(element)}" if name else None
    words = [element.id, plain(element.role).replace(" ", "-") or "element"]
    name = label(element.label)
    if name and not (element.password and element.label in (element.value, element.text)):
        words.append(quoted(name))
    words.extend(_states(element))
    return " ".join(words)


def _percent(element: Element) -> str:
    """A value beside a label that is no field: progress, a rating."""
    return f" ={quoted(element.value)}" if element.value and element.value != element.label else ""


def _states(element: Element) -> Iterator[str]:
    if element.password:
        yield "password"
        yield "filled" if element.value else "empty"
    elif element.editable:
        yield f"={quoted(element.value)}" if element.value else "empty"
    elif element.value and element.value != element.label:
        yield f"={quoted(element.value)}"
    if element.hint and not element.value and plain(element.hint) != plain(element.label):
        yield f"hint={json.dumps(cut(plain(element.hint), 40), ensure_ascii=False)}"
    if element.checked is not None:
        yield "on" if element.checked else "off"
    flags = (
        (element.selected, "selected"),
        (element.focused, "focused"),
        (not element.enabled, "disabled"),
        (element.scrollable, "scrolls"),
        (element.obstacle == "off_screen", "off-screen"),
        (element.obstacle == "occluded", "covered"),
    )
    yield from (word for holds, word in flags if holds)
