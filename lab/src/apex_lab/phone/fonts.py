"""Fonts for measuring and drawing: a system font with Arabic and Hebrew when there is one, else Pillow's own."""

from __future__ import annotations

from functools import lru_cache

from PIL import ImageFont, features

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

_CANDIDATES = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "Arial Unicode.ttf", "arial.ttf", "LiberationSans-Regular.ttf")
SHAPES_RTL = features.check("raqm") is True
"""Whether Pillow can lay out right-to-left text; without it the letters are drawn unjoined."""


@lru_cache(maxsize=64)
def font(size: int) -> Font:
    """The font at `size` pixels."""
    for name in _CANDIDATES:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


@lru_cache(maxsize=8192)
def text_width(text: str, size: int) -> int:
    """Pixels that one line of `text` takes."""
    return round(font(size).getlength(text))


@lru_cache(maxsize=4096)
def wrap(text: str, size: int, width: int) -> tuple[str, ...]:
    """`text` in lines that fit `width` pixels; a word longer than a line stays whole."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}" if line else word
            if line and text_width(longer, size) > width:
                lines.append(line)
                line = word
            else:
                line = longer
        lines.append(line)
    return tuple(lines)
