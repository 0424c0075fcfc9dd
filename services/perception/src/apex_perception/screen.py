"""The screen of a Scene: its size in pixels, its rotation, and how many pixels one unit of the page source is.

The size comes from the device when it is known, else from the source's own statement, else from how far its nodes
reach. The factor is picture pixels by window units, checked on both axes, never assumed.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from apex_perception.nodes import Box, Tree
from apex_schemas.geometry import Size
from apex_schemas.scene import Screen

_CLOSE = 0.02
Rotation = Literal[0, 90, 180, 270]
_DEGREES: tuple[Rotation, ...] = (0, 90, 180, 270)


class Resolved(NamedTuple):
    """`factor` is pixels per unit of the source, by axis. `notes` say what was not known. `turn` is how far the places
    have to be turned, when they are those of an upright phone whose screen is not."""

    screen: Screen
    factor: tuple[float, float]
    notes: tuple[str, ...]
    turn: Rotation = 0


def resolve(
    tree: Tree,
    boxes: Sequence[Box | None],
    *,
    window: Size | None = None,
    scale: float | None = None,
    rotation: Rotation | None = None,
    picture: Size | None = None,
) -> Resolved:
    """`boxes` are the nodes' places in one unit. `window` is the device's size in that unit or in pixels: which, is
    told by the source."""
    notes: list[str] = []
    degrees = rotation if rotation is not None else _DEGREES[tree.turns or 0]
    hint = tree.size
    units = (window.width, window.height) if window and window.width and window.height else None
    if units is None and hint is not None:
        units = hint
        # A root's own statement is as good as the device's; an extent is a guess.
        notes.append("screen size taken from the page source" + ("" if tree.stated else ", as far as its nodes reach"))
    if units is None:
        units = (picture.width, picture.height) if picture else (0, 0)
        notes.append("screen size taken from the picture" if picture else "screen size unknown")
    units, in_pixels = _in_units(units, hint, scale, tree)
    turn = _turn(units, tree, degrees, picture)
    units = (max(units), min(units)) if turn else _turned(units, tree, boxes, degrees)
    if turn:
        degrees = turn
        notes.append("places are those of an upright phone; turned as the screen is")
    factor = scale or in_pixels or 1.0, scale or in_pixels or 1.0
    if picture is not None and units[0] and units[1]:
        factor = _by_picture(units, picture, scale, notes)
        turned = not _close(picture.width, units[0] * factor[0]) and _close(picture.width, units[1] * factor[1])
        size = Size(width=picture.height, height=picture.width) if turned else picture
    else:
        size = Size(width=min(round(units[0] * factor[0]), 100_000), height=min(round(units[1] * factor[1]), 100_000))
    return Resolved(Screen(size=size, scale=min(factor[0], 16.0), rotation=degrees), factor, tuple(notes), turn)


def _in_units(
    units: tuple[int, int], hint: tuple[int, int] | None, scale: float | None, tree: Tree
) -> tuple[tuple[int, int], float | None]:
    """The window in units of the source, when it was given in pixels; and the factor that showed it."""
    if hint is None or tree.dialect != "ios":
        return units, None
    for factor in (scale,) if scale else (3.0, 2.0):
        if factor > 1 and any(_close(units[0], side * factor) for side in hint) and _same_shape(units, hint):
            return (hint if _close(units[0], hint[0] * factor) else (hint[1], hint[0])), factor
    return units, None


def _same_shape(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return _close(max(one) / min(one), max(other) / min(other)) if min(*one, *other) > 0 else False


def _turn(units: tuple[int, int], tree: Tree, degrees: Rotation, picture: Size | None) -> Rotation:
    """How far an iOS source is behind its screen: it says upright where the picture, or the window of a phone that is
    said to be turned, lies on its side."""
    if tree.dialect != "ios" or not tree.stated or tree.size is None or tree.size[0] >= tree.size[1]:
        return 0
    sideways = degrees in (90, 270)
    lies = picture.width > picture.height if picture else sideways and units[0] > units[1]
    if not lies or not _same_shape(units, tree.size):
        return 0
    return degrees if sideways else 90


def _turned(units: tuple[int, int], tree: Tree, boxes: Sequence[Box | None], degrees: Rotation) -> tuple[int, int]:
    """Width and height exchanged when the nodes show that the size was read before the screen was turned."""
    width, height = units
    near = [box for node, box in zip(tree.nodes, boxes, strict=True) if box is not None and node.depth < 4]
    right, bottom = max((box[2] for box in near), default=0), max((box[3] for box in near), default=0)
    fits = right <= width * (1 + _CLOSE) and bottom <= height * (1 + _CLOSE)
    fits_turned = right <= height * (1 + _CLOSE) and bottom <= width * (1 + _CLOSE)
    if not fits and fits_turned and (degrees in (90, 270) or right > width):
        return height, width
    if fits and fits_turned and degrees in (90, 270) and width < height and tree.dialect == "android":
        return height, width
    return units


def _by_picture(units: tuple[int, int], picture: Size, scale: float | None, notes: list[str]) -> tuple[float, float]:
    across, down = picture.width / units[0], picture.height / units[1]
    if not _close(across, down):
        turned = picture.height / units[0], picture.width / units[1]
        if _close(*turned):
            notes.append("the picture is turned against the window")
            across, down = turned
        elif scale is not None:
            notes.append(f"the picture's shape is not the window's; scale {scale:g} as given")
            return scale, scale
        elif 0.8 < across / down < 1.25:
            # A window without the system bars: the width is whole, the height is not.
            across = down = max(across, down) if abs(across - round(across)) < _CLOSE else min(across, down)
            notes.append("the window is smaller than the picture; one scale for both axes")
        else:
            notes.append("the picture's shape is not the window's; both axes scaled by themselves")
    if scale is not None and not _close(scale, across):
        notes.append(f"scale {scale:g} was given, the picture shows {across:.3g}")
    return across, down


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= _CLOSE * max(abs(one), abs(other))
