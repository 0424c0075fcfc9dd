"""Secrets on the screen: what was typed by name is taken out of the Scene before anybody else sees it.

Consumes a Scene, the events before it and a mask for values that this host knows; emits the Scene without them.
Pure. A field that a secret was typed into is from then on like a password's: filled or not, and no more; what it
shows is taken out of all other texts too. Where no field was named, every field is taken for it.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import structs

from apex_schemas.scene import Element, Region, Scene, SemanticScene
from apex_schemas.secrets import types_secret
from apex_schemas.steps import Target, WorldEvent

HIDDEN: Final = "•••"
_SHORTEST: Final = 4
"""What is shorter is taken out of its own field alone: it would be found in half of all texts."""

_UNTYPED: Final = ("SECRET_NOT_ALLOWED", "SECRET_UNKNOWN")

Mask = Callable[[str], str]


def typed_secrets(history: Sequence[WorldEvent]) -> tuple[WorldEvent, ...]:
    """The events that typed, or may have typed, a secret or a part of one."""
    return tuple(event for event in history if types_secret(event.action) and event.code not in _UNTYPED)


def redacted(scene: Scene, typed: Sequence[WorldEvent], mask: Mask) -> Scene:
    """The Scene with what `typed` put into fields hidden, and every text masked."""
    targets = [event.target for event in typed]
    hidden = [element.editable and any(_is_it(element, target) for target in targets) for element in scene.elements]
    shown = {text for element, hide in zip(scene.elements, hidden, strict=True) if hide for text in _shows(element)}

    def clean(text: str | None) -> str | None:
        if text is None:
            return None
        text = mask(text)  # first: the executor can put a value in the place of a name again, to find the element
        for each in sorted(shown, key=len, reverse=True):
            if len(each) >= _SHORTEST:
                text = text.replace(each, HIDDEN)
        return text

    elements = tuple(
        _cleaned(_hidden(element) if hide else element, clean)
        for element, hide in zip(scene.elements, hidden, strict=True)
    )
    scene = structs.replace(scene, elements=elements, page=clean(scene.page) or "")
    if not isinstance(scene, SemanticScene):
        return scene
    return structs.replace(scene, regions=_regions(scene.regions, clean), dialogs=_regions(scene.dialogs, clean))


def _is_it(element: Element, target: Target | None) -> bool:
    """Whether this is the field of the event: by what its developer calls it, else by its place."""
    if target is None:
        return True
    if target.resource_id or element.resource_id:
        return target.resource_id == element.resource_id and target.context == element.context
    if target.bounds is None or element.bounds is None or target.class_name != element.class_name:
        return target.bounds is None or element.bounds is None
    one, other = target.bounds, element.bounds
    return one.left < other.right and other.left < one.right and one.top < other.bottom and other.top < one.bottom


def _shows(element: Element) -> set[str]:
    return {text for text in (element.value, element.text) if text and text != element.hint and set(text) != {"•"}}


def _hidden(element: Element) -> Element:
    """As a password's field: whether it is filled is told, and its name where that is not what it shows."""
    shown = _shows(element)
    label = element.label if element.label not in shown else element.hint or ""
    value = HIDDEN if shown or element.value else element.value
    return structs.replace(element, password=True, label=label, value=value, text=None)


def _cleaned(element: Element, clean: Callable[[str | None], str | None]) -> Element:
    return structs.replace(
        element,
        label=clean(element.label) or "",
        value=clean(element.value),
        hint=clean(element.hint),
        text=clean(element.text),
        description=clean(element.description),
        resource_id=clean(element.resource_id),
    )


def _regions(regions: tuple[Region, ...], clean: Callable[[str | None], str | None]) -> tuple[Region, ...]:
    return tuple(structs.replace(region, label=clean(region.label) or "") for region in regions)
