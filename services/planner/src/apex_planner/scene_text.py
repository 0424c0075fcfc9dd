"""The Scene as a model reads it: one short line for each thing, inside a fence that nothing on the screen can close.

Ids are given to what can be acted on; plain text stands without. Values of password fields are never written. The
text is bounded: what a model needs least is left out first, and counted.
"""

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from apex_planner.telling_apart import told_apart
from apex_planner.text import cut, label, plain
from apex_schemas.geometry import Size
from apex_schemas.scene import Element, Scene

OPAQUE_ROLES: Final = frozenset(("canvas", "web"))
"""Surfaces that the tree cannot see into. They are listed, since a point in them can be named."""
_BUDGET_BYTES: Final = 9_000
"""Of a screen's lines, in UTF-8: some three bytes a token in any script. No screen of our corpus reaches a sixth."""


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


class _Line(NamedTuple):
    """`rank` orders what is left out when there is too much: the highest first, from the bottom of the screen."""

    text: str
    rank: int


def _lines(scene: Scene) -> Iterator[str]:
    lines = list(_listed(scene))
    omitted = scene.omitted
    spent = sum(len(line.text.encode()) + 1 for line in lines)
    if spent > _BUDGET_BYTES:
        dropped: set[int] = set()
        for number in sorted(range(len(lines)), key=lambda at: (-lines[at].rank, -at)):
            spent -= len(lines[number].text.encode()) + 1
            dropped.add(number)
            if spent <= _BUDGET_BYTES:
                break
        omitted += len(dropped)
        lines = [line for number, line in enumerate(lines) if number not in dropped]
    yield from (line.text for line in lines)
    if omitted:
        yield f"({omitted} more not listed)"


def _listed(scene: Scene) -> Iterator[_Line]:
    depths: dict[str, int] = {}
    said: dict[str, str] = {}
    before = ""
    places = told_apart(scene)
    for element in scene.elements:
        depth = depths.get(element.parent or "", -1) + 1
        line = _line(element)
        if line is not None and element.id in places:
            line = f"{line} ({places[element.id]})"
        shown = label(element.label)
        repeats = not has_id(element) and shown in (said.get(element.parent or ""), before)
        if line is None or repeats:
            depths[element.id] = depth - 1  # its children stand where it would have stood
            said[element.id] = said.get(element.parent or "", "")
            continue
        depths[element.id], said[element.id], before = depth, shown, shown
        yield _Line("  " * depth + line, _rank(element))


def _rank(element: Element) -> int:
    if element.obstacle == "off_screen":
        return 3
    if not has_id(element):
        return 2
    return 1 if element.obstacle else 0


def has_id(element: Element) -> bool:
    """Whether the element is offered to the model by its id."""
    return element.interactive or element.editable or element.scrollable or element.role in OPAQUE_ROLES


def _line(element: Element) -> str | None:
    """None for what neither says nor does anything."""
    if not has_id(element):
        name = label(element.label)
        change = f" {element.change}" if element.change else ""
        return f"text {quoted(name)}{_percent(element)}{change}" if name else None
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
    if element.more:
        yield f"(more {' and '.join(element.more)})"
    if element.change:
        yield element.change
