"""What identifies what is shown, deaf to what changes by itself: clocks, progress, percentages, the system's bar."""

import hashlib
import re
from collections.abc import Iterable

from apex_schemas.scene import Element, Keyboard

_CLOCK = re.compile(r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:[\s\u200a\u202f]?[AaPp]\.?[Mm]\.?)?")
_PERCENT = re.compile(r"\d{1,3}(?:[.,]\d+)?\s?%")
_AGO = re.compile(r"\d+\s?(?:s|sec|secs|seconds?|min|mins|minutes?)\b", re.IGNORECASE)
_DEAF = frozenset(("status-bar", "progress", "canvas"))


def masked(text: str | None) -> str:
    """A text without the figures that change by themselves."""
    if not text or text.isalpha():
        return text or ""
    return _AGO.sub("#s", _PERCENT.sub("#%", _CLOCK.sub("#:#", text)))


def of(elements: Iterable[Element], *, page: str, keyboard: Keyboard | None) -> str:
    """16 hex digits. Places count, so that a moving screen is a changing one; ids and obstacles do not."""
    digest = hashlib.blake2b(masked(page).encode("utf-8", "replace"), digest_size=8)
    digest.update(b"keyboard" if keyboard is not None else b"")
    for element in elements:
        if element.role in _DEAF:
            digest.update(f"\0{element.role}".encode())
            continue
        box = element.bounds
        place = "" if box is None else f"{box.left},{box.top},{box.right},{box.bottom}"
        parts = (
            element.role, masked(element.label), "" if element.password else masked(element.value), place,
            f"{element.checked}{element.selected}{element.enabled}{element.focused}",
        )  # fmt: skip
        digest.update("\0".join(parts).encode("utf-8", "replace"))
    return digest.hexdigest()
