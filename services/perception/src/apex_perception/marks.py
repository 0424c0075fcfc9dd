"""What is new or different on a page since the turn before: marks for a model that sees one screen at a time.

Consumes two Scenes; emits the later one with marks. Nothing is marked on another page, nor where most of it is new:
then the whole screen is news. Clocks and progress are none, as in the fingerprint.
"""

from collections import Counter

from msgspec import structs

from apex_perception.fingerprint import masked
from apex_schemas.scene import Element, Scene

_MOST = 0.5
_UNMARKED = frozenset(("status-bar", "progress", "canvas", "keyboard-key"))

_Key = tuple[object, ...]


def against(before: Scene | None, scene: Scene) -> Scene:
    """`scene` with `change` set on what was not there in `before`, or was otherwise."""
    if before is None or before.page != scene.page or before.app != scene.app or not scene.elements:
        return scene
    same = Counter(map(_content, before.elements))
    changed: list[int] = []
    for number, element in enumerate(scene.elements):
        key = _content(element)
        if same[key] > 0:
            same[key] -= 1
        elif element.role not in _UNMARKED:
            changed.append(number)
    if not changed or len(changed) > max(1, _MOST * len(scene.elements)):
        return scene
    known = Counter(_identity(element) for element in _left(before, same))
    elements = list(scene.elements)
    for number in changed:
        key = _identity(elements[number])
        other = known[key] > 0
        known[key] -= other
        elements[number] = structs.replace(elements[number], change="changed" if other else "new")
    return structs.replace(scene, elements=tuple(elements))


def _left(before: Scene, unmatched: Counter[_Key]) -> list[Element]:
    """The elements of the Scene before that have no equal in the later one."""
    left: list[Element] = []
    open_ = Counter(unmatched)
    for element in before.elements:
        key = _content(element)
        if open_[key] > 0:
            open_[key] -= 1
            left.append(element)
    return left


def _content(element: Element) -> _Key:
    """All that makes it what it is but its place: a row that was scrolled is the same row."""
    value = bool(element.value) if element.password else masked(element.value)
    state = element.checked, element.selected, element.enabled
    return element.role, masked(element.label), value, *state, element.resource_id


def _identity(element: Element) -> _Key:
    """What stays when a thing changes: what a developer calls it and where it is."""
    box = element.bounds
    return element.role, element.resource_id, None if box is None else (box.left, box.top)
