"""Foreign text made safe to quote: what a screen or a model wrote must not reach across the line it stands on."""

import re
import unicodedata
from typing import Final

LABEL_CHARACTERS: Final = 100
_FENCE: Final = re.compile(r"<(?=\s*/?\s*screen)", re.IGNORECASE)
_KEPT_FORMAT: Final = "\u200c\u200d"
"""Joiners: Persian, Indic scripts and composed emoji need them."""
_DROPPED: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})


def plain(text: str) -> str:
    """One line without control, format (bidi overrides among them), private or unpaired characters, and without
    anything that reads as the fence around the screen."""
    spaced = " ".join(text.split())
    if not spaced.isascii() or not spaced.isprintable():
        spaced = "".join(c for c in spaced if c in _KEPT_FORMAT or unicodedata.category(c) not in _DROPPED)
        spaced = " ".join(spaced.split())
    return _FENCE.sub("‹", spaced)


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, the last of them an ellipsis where something is missing."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def label(text: str) -> str:
    """A name as it is quoted on one line, at most LABEL_CHARACTERS long."""
    return cut(plain(text), LABEL_CHARACTERS)
