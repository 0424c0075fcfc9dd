"""Draws placed windows, so that what is seen lies exactly where the page source says it lies; gives PNG bytes.

Equal screens give equal pictures, so the newest ones are kept by what is on them, for all phones together.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Sequence
from zlib import crc32

from PIL import Image, ImageDraw

from apex_lab.phone.fonts import SHAPES_RTL, font_for, text_width, wrap
from apex_lab.phone.geometry import Rect
from apex_lab.phone.layout import Node, text_px
from apex_lab.phone.views import Placed, shown_text

Colour = tuple[int, int, int]

INK: Colour = (28, 30, 33)
GREY: Colour = (110, 115, 122)
PAPER: Colour = (246, 247, 249)
LINE: Colour = (214, 217, 222)
BLUE: Colour = (26, 95, 180)
NIGHT: Colour = (24, 30, 44)
WHITE: Colour = (255, 255, 255)
ICONS: tuple[Colour, ...] = ((26, 95, 180), (38, 133, 84), (190, 90, 30), (140, 60, 150), (180, 50, 60), (20, 120, 130))

_KEEP = 48
_drawn: OrderedDict[object, bytes] = OrderedDict()


def draw(windows: Sequence[Placed], toast: str, size: tuple[int, int], density: float, ratio: int = 1) -> bytes:
    """The screen as PNG, `ratio` pixels a window unit; a modal window dims what lies under it."""
    key = (size, ratio, toast, tuple((w.kind, w.rtl, _trace(w.root, w.focus)) for w in windows))
    known = _drawn.get(key)
    if known is not None:
        _drawn.move_to_end(key)
        return known
    size, scale = (size[0] * ratio, size[1] * ratio), density * ratio
    image = Image.new("RGB", size, PAPER)
    for window in windows:
        if window.kind in ("dialog", "sheet"):
            image = Image.blend(image, Image.new("RGB", size, (0, 0, 0)), 0.45)
        _paint(ImageDraw.Draw(image), window.root.enlarged(ratio), window, scale)
    if toast:
        _toast(ImageDraw.Draw(image), toast, size, scale)
    png = encode(image)
    _drawn[key] = png
    while len(_drawn) > _KEEP:
        _drawn.popitem(last=False)
    return png


def encode(image: Image.Image) -> bytes:
    """A picture with few colours as a small PNG."""
    out = io.BytesIO()
    image.quantize(64, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(out, "PNG", compress_level=1)
    return out.getvalue()


def put_text(pen: ImageDraw.ImageDraw, spot: tuple[int, int], text: str, size: int, fill: Colour) -> None:
    """One line of text with its upper left corner at `spot`, right-to-left letters joined where Pillow can."""
    rtl = SHAPES_RTL and any("\u0590" <= letter <= "\u08ff" for letter in text)
    pen.text(spot, text, fill=fill, font=font_for(text, size), direction="rtl" if rtl else None)


def _trace(node: Node, focus: str) -> object:
    widget = node.widget
    return (
        node.rect,
        node.frame,
        shown_text(node),
        node.desc,
        widget.look,
        widget.checked,
        widget.enabled,
        widget.selected,
        widget.portion,
        bool(focus) and widget.rid == focus,
        tuple(_trace(child, focus) for child in node.children),
    )


def _paint(pen: ImageDraw.ImageDraw, node: Node, window: Placed, scale: float) -> None:
    box = node.rect
    if box.empty or node.hidden:
        return
    edge = (box.left, box.top, box.right - 1, box.bottom - 1)
    radius = round(6 * scale)
    label = ""
    ink = INK if node.widget.enabled else GREY
    middle = False
    match node.widget.look:
        case "page":
            pen.rectangle(edge, fill=PAPER)
        case "bar":
            pen.rectangle(edge, fill=WHITE)
            pen.line((box.left, box.bottom - 1, box.right, box.bottom - 1), fill=LINE)
        case "card":
            pen.rectangle(edge, fill=WHITE, outline=LINE)
        case "button":
            pen.rounded_rectangle(edge, radius, fill=BLUE if node.widget.enabled else GREY)
            label, ink, middle = node.text, WHITE, True
        case "round":
            pen.ellipse(edge, fill=BLUE)
            label, ink, middle = "+", WHITE, True
        case "icon":
            tint = ICONS[crc32((node.desc or node.text).encode()) % len(ICONS)]
            pen.rounded_rectangle(_square(box, scale), radius, fill=tint)
            label, ink, middle = (node.desc or node.text)[:1], WHITE, True
        case "switch":
            pen.rounded_rectangle(edge, box.height // 2, fill=BLUE if node.widget.checked else GREY)
            left = box.right - box.height if node.widget.checked else box.left
            pen.ellipse((left + 2, box.top + 2, left + box.height - 3, box.bottom - 3), fill=WHITE)
        case "field":
            focused = bool(window.focus) and node.widget.rid == window.focus
            pen.rectangle(edge, fill=WHITE, outline=BLUE if focused else LINE, width=2)
            label, hinting = shown_text(node)
            ink = GREY if hinting else INK
        case "key":
            pen.rounded_rectangle(edge, radius, fill=WHITE, outline=LINE)
            label, middle = node.text or node.desc, True
        case "text" | "title":
            label = node.text
        case "small":
            label, ink = node.text, GREY
        case "link":
            label, ink = node.desc or node.text, BLUE
        case "check":
            label = ("☑ " if node.widget.checked else "☐ ") + node.text
        case "dark":
            pen.rectangle(edge, fill=NIGHT)
        case "piece":
            pen.ellipse(edge, fill=ICONS[crc32(node.desc.encode()) % len(ICONS)], outline=WHITE)
            label, ink, middle = node.text, WHITE, True
        case "progress":
            pen.rectangle(edge, fill=LINE)
            pen.rectangle((*edge[:2], box.left + round((box.width - 1) * node.widget.portion), edge[3]), fill=BLUE)
        case "none":
            pass
    if label:
        _letters(pen, node, label, ink, middle, window.rtl, scale)
    for child in node.children:
        _paint(pen, child, window, scale)


def _letters(
    pen: ImageDraw.ImageDraw, node: Node, label: str, ink: Colour, middle: bool, rtl: bool, scale: float
) -> None:
    size = text_px(node.widget, scale)
    pad = round((10 if node.widget.look == "field" else 2) * scale)
    frame = node.frame
    lines = wrap(label, size, max(1, frame.width - 2 * pad))
    tall = round(size * 1.35)
    top = frame.top + max(0, (frame.height - tall * len(lines)) // 2)
    for line in lines:
        wide = text_width(line, size)
        left = frame.left + pad
        if middle:
            left = frame.left + (frame.width - wide) // 2
        elif rtl:
            left = frame.right - pad - wide
        if node.rect.top <= top + size // 2 < node.rect.bottom:
            put_text(pen, (left, top), line, size, ink)
        top += tall


def _square(box: Rect, scale: float) -> tuple[int, int, int, int]:
    side = min(box.width, box.height) - round(12 * scale)
    left, top = box.left + (box.width - side) // 2, box.top + (box.height - side) // 2
    return (left, top, left + side, top + side)


def _toast(pen: ImageDraw.ImageDraw, toast: str, size: tuple[int, int], scale: float) -> None:
    letters = round(14 * scale)
    wide = text_width(toast, letters) + round(32 * scale)
    left, top = (size[0] - wide) // 2, size[1] - round(120 * scale)
    pen.rounded_rectangle((left, top, left + wide, top + round(40 * scale)), round(20 * scale), fill=INK)
    put_text(pen, (left + round(16 * scale), top + round(10 * scale)), toast, letters, WHITE)
