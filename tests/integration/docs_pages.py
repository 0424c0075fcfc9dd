"""The pages of the documentation, as their fenced blocks: what is code in them, and what is to be run."""

import re
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if "adr" not in page.parts)
_FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """`prints` is the text block right behind it: each of its lines stands in what the commands write."""

    page: str
    language: str
    words: tuple[str, ...]
    code: str
    prints: tuple[str, ...] = ()

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block, each a command."""
        joined = self.code.replace("\\\n", " ")
        return [line.strip() for line in joined.splitlines() if line.strip() and not line.strip().startswith("#")]


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    name = str(page.relative_to(ROOT))
    matches = list(_FENCE.finditer(text))
    found: list[Block] = []
    for match, after in zip_longest(matches, matches[1:]):
        language, words, code = match[1], tuple(match[2].split()), match[3]
        adjacent = after is not None and not text[match.end() : after.start()].strip() and after[1] == "text"
        prints = tuple(after[3].splitlines()) if after is not None and adjacent else ()
        found.append(Block(name, language, words, code, prints))
    return found


def every_block() -> list[Block]:
    return [block for page in PAGES for block in blocks(page)]
