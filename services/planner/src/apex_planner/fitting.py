"""A screenshot made as small as it is sent (see `view`). Takes Pictures, gives Pictures; the work is Pillow's."""

import io
from typing import Final

from msgspec import structs

from apex_planner.errors import PictureUnreadable
from apex_planner.view import fit
from apex_schemas.decision import Picture

_JPEG_QUALITY: Final = 90


def fitted(picture: Picture) -> Picture:
    """The picture as it is sent: as it is where it fits, else smaller, as a JPEG. Its hash stays the original's.

    Takes tens of milliseconds of processor time. Raises PictureUnreadable.
    """
    wanted = fit(picture.size)
    if wanted == picture.size:
        return picture
    try:
        from PIL import Image  # not loaded by a planner that is shown no pictures
    except ImportError as error:
        raise PictureUnreadable(picture.sha256, "Pillow is not installed") from error
    try:
        with Image.open(io.BytesIO(picture.data), formats=("PNG", "JPEG", "WEBP")) as opened:
            opened.draft("RGB", (wanted.width, wanted.height))
            whole = opened.convert("RGB")
            small = whole.resize(  # pyright: ignore[reportUnknownMemberType]
                (wanted.width, wanted.height), Image.Resampling.LANCZOS
            )
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise PictureUnreadable(picture.sha256, str(error) or type(error).__name__) from error
    written = io.BytesIO()
    small.save(written, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
    return structs.replace(
        picture,
        data=written.getvalue(),
        media_type="image/jpeg",
        size=wanted,
        original_bytes=picture.original_bytes or len(picture.data),
    )
