"""Text from phones, models and other people, made fit for a terminal.

What a screen says is data: control characters in it could move the cursor or recolour the terminal, and marks of
direction could make a line read otherwise than it is.
"""

import unicodedata
from typing import Final

from rich.console import Console
from rich.text import Text

_DIRECTION: Final = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}


_WIDTH: Final = 110
"""Of what is written to a file or a pipe, which has no width of its own."""


def console(*, stderr: bool = False) -> Console:
    """A console that colours nothing by itself, since most of what it prints is other people's text."""
    found = Console(stderr=stderr, highlight=False)
    return found if found.is_terminal else Console(stderr=stderr, highlight=False, width=_WIDTH)


def plain(text: str) -> str:
    """One line without control characters or marks of direction; white space becomes single spaces."""
    return "".join(" " if c.isspace() else c for c in " ".join(text.split()) if _harmless(c))


def lines(text: str) -> str:
    """As `plain`, with its line breaks and indents."""
    return "".join(c for c in text.replace("\r\n", "\n").expandtabs(4) if c == "\n" or _harmless(c))


def quoted(text: str, limit: int = 300) -> str:
    return f"“{shortened(plain(text), limit)}”"


def shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def styled(*parts: tuple[str, str] | str) -> Text:
    """A rich text of plain parts and (part, style) pairs. No markup is read in any of them."""
    return Text.assemble(*parts, overflow="fold")


def _harmless(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cs") and ord(character) not in _DIRECTION
