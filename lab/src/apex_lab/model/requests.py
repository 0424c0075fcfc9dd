"""Reading request bodies: JSON to typed requests, and content blocks to the text a model sees.

Shared by the three APIs. What does not decode is refused with the path in the provider's dotted notation.
"""

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from apex_lab.model.errors import RequestRefused
from apex_lab.model.tools import Json

T = TypeVar("T")

_WHERE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)
_NAMED = re.compile(r"Object (?P<how>missing required|contains unknown) field `(?P<name>[^`]*)`")


def decode(raw: bytes, kind: type[T]) -> T:
    """The body as a typed request.

    Raises:
        RequestRefused: no JSON, a field missing, unknown or of the wrong type.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as invalid:
        raise _refusal(str(invalid)) from invalid
    except msgspec.DecodeError as broken:
        raise RequestRefused(f"The request body is not valid JSON: {broken}") from broken


def _refusal(said: str) -> RequestRefused:
    match = _WHERE.match(said)
    path = (match["path"] or "" if match else "").replace("[", ".").replace("]", "")
    what = match["what"] if match else said
    if named := _NAMED.match(what):
        full = ".".join(part for part in (path, named["name"]) if part)
        if named["how"] == "missing required":
            return RequestRefused(f"{full}: Field required", param=full, code="missing_required_parameter")
        return RequestRefused(f"{full}: Extra inputs are not permitted", param=full, code="unknown_parameter")
    return RequestRefused(f"{path}: {what}", param=path or None, code="invalid_type")


def text_of(content: str | Sequence[Json]) -> str:
    """The text of a message's content, its text blocks joined by newlines; pictures and the rest say nothing here."""
    if isinstance(content, str):
        return content
    texts = (block.get("text") for block in content if block.get("type") in ("text", "input_text"))
    return "\n".join(text for text in texts if isinstance(text, str))
