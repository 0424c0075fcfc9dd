"""Fonts for measuring and drawing: a system font with Arabic and Hebrew when there is one, else Pillow's own.

Chinese, Japanese and Korean are drawn with a font that has them where one is installed; else their letters are boxes.
"""

from __future__ import annotations

import re
from functools import lru_cache

from PIL import ImageFont, features

_PIECES = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\uffef] ?|[^ \u2e80-\u9fff\uac00-\ud7a3\uf900-\uffef]* ?(?<=.)")
"""A word with the space after it, or one letter of a script that has no spaces."""
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

_CANDIDATES = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "Arial Unicode.ttf", "arial.ttf", "LiberationSans-Regular.ttf")
_EAST_ASIAN = (
    "NotoSansCJK-Regular.ttc", "NotoSansCJKjp-Regular.otf", "wqy-microhei.ttc", "DroidSansFallbackFull.ttf",
    "Hiragino Sans GB.ttc", "PingFang.ttc", "msyh.ttc",
)  # fmt: skip
SHAPES_RTL = features.check("raqm") is True
"""Whether Pillow can lay out right-to-left text; without it the letters are drawn unjoined."""


@lru_cache(maxsize=64)
def font(size: int) -> Font:
    """The font at `size` pixels."""
    return _first(_CANDIDATES, size) or ImageFont.load_default(size)


@lru_cache(maxsize=64)
def _east_asian(size: int) -> Font:
    return _first(_EAST_ASIAN, size) or font(size)


def font_for(text: str, size: int) -> Font:
    """The font that has the letters of `text`, if any does."""
    return _east_asian(size) if any(map(is_east_asian, text)) else font(size)


def is_east_asian(letter: str) -> bool:
    """Whether a letter is Chinese, Japanese or Korean: such text is broken between any two of them."""
    return "\u2e80" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7a3" or "\uf900" <= letter <= "\uffef"


def _first(names: tuple[str, ...], size: int) -> Font | None:
    for name in names:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return None


@lru_cache(maxsize=8192)
def text_width(text: str, size: int) -> int:
    """Pixels that one line of `text` takes. East Asian letters are square, whether or not a font here has them."""
    square = sum(map(is_east_asian, text))
    rest = "".join(letter for letter in text if not is_east_asian(letter)) if square else text
    return round(font(size).getlength(rest)) + square * size


@lru_cache(maxsize=4096)
def wrap(text: str, size: int, width: int) -> tuple[str, ...]:
    """`text` in lines that fit `width` pixels; a word longer than a line stays whole."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in _PIECES.findall(paragraph):
            longer = line + piece
            if line and text_width(longer.rstrip(), size) > width:
                lines.append(line.rstrip())
                line = piece
            else:
                line = longer
        lines.append(line.rstrip())
    return tuple(lines)
