"""Whether what a model names as proof of its success is on the screen that it sees."""

import re
from typing import Final

from apex_planner.text import plain
from apex_schemas.scene import Element, Scene

_ID: Final = re.compile(r"\be\d{1,5}\b")
_SHORTEST: Final = 3


def is_on_screen(evidence: str | None, scene: Scene) -> bool:
    """True when the evidence names an id of the Scene, holds the text of an element, or is part of one."""
    named = plain(evidence or "").casefold().strip(" .\"'")
    if not named:
        return False
    if any(scene.element(found) is not None for found in _ID.findall(named)):
        return True
    return any(_within(text, named) or (len(named) >= _SHORTEST and named in text) for text in _texts(scene))


def _within(text: str, named: str) -> bool:
    """By whole words where the script has spaces between them."""
    return text in named and (not text.isascii() or re.search(rf"(?<!\w){re.escape(text)}(?!\w)", named) is not None)


def _texts(scene: Scene) -> set[str]:
    said: set[str] = {plain(scene.page).casefold()}
    for element in scene.elements:
        said |= {plain(text).casefold() for text in _of(element) if text}
    return {text for text in said if len(text) >= _SHORTEST or (text and not text.isascii())}


def _of(element: Element) -> tuple[str | None, ...]:
    if element.password:
        return (element.label,)
    return (element.label, element.value, element.text, element.description)
