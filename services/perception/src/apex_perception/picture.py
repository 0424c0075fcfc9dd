"""The size and kind of a screenshot, read from its first bytes; the picture itself is never decoded here."""

import io
import struct

import msgspec
from PIL import Image, UnidentifiedImageError

from apex_perception.errors import PictureUnreadable

_PNG = b"\x89PNG\r\n\x1a\n"


class PictureSize(msgspec.Struct, frozen=True, kw_only=True):
    width: int
    height: int
    media_type: str = "image/png"


def measure(picture: bytes) -> PictureSize:
    """Raises PictureUnreadable for anything but a PNG or JPEG with a size."""
    if picture.startswith(_PNG) and picture[12:16] == b"IHDR" and len(picture) >= 24:
        width, height = struct.unpack(">II", picture[16:24])
        if 0 < width <= 100_000 and 0 < height <= 100_000:
            return PictureSize(width=width, height=height)
    try:
        with Image.open(io.BytesIO(picture), formats=("PNG", "JPEG")) as image:
            media_type = "image/png" if image.format == "PNG" else "image/jpeg"
            return PictureSize(width=image.width, height=image.height, media_type=media_type)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise PictureUnreadable(len(picture), _reason(error)) from error


def _reason(error: Exception) -> str:
    return "it is neither" if isinstance(error, UnidentifiedImageError) else str(error) or "it is broken"


_LARGEST = 4 * 1024 * 1024


def portable(picture: bytes) -> bytes:
    """The picture as it came, or as JPEG of the same size where it would be too large a message.

    Raises PictureUnreadable.
    """
    if len(picture) <= _LARGEST:
        return picture
    try:
        with Image.open(io.BytesIO(picture), formats=("PNG", "JPEG")) as image:
            smaller = io.BytesIO()
            image.convert("RGB").save(smaller, "JPEG", quality=80)
            return smaller.getvalue()
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise PictureUnreadable(len(picture), _reason(error)) from error
