"""The NATS client of the bus, which also tells what the server itself put where it lies.

A read's reply subject may be one of a stream: the server then stores there, with its own rights, what it has read,
and the headers by which it says where that lay. Read from there it has them twice. Such a copy is nobody's word:
whoever asked for it may have no right to write there.
"""

from typing import Final

from nats.aio.client import Client

COPIED: Final = "Apex-Copied"
"""Added to the headers of what is read, where the server had read it before for somebody."""
_PLACE: Final = b"\r\nNats-Sequence:"


class CopyTellingClient(Client):
    """As its base; headers that name their place in a stream twice also hold COPIED."""

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        found = await super()._process_headers(headers)  # pyright: ignore[reportUnknownMemberType]
        if found is not None and headers is not None and bytes(headers).count(_PLACE) > 1:
            found[COPIED] = "1"
        return found
