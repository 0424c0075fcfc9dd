"""What is fuzzed: everything that reads bytes of others. A target returns, or raises what its reader says it raises;
anything else is a bug.
"""

import contextlib
from collections.abc import Callable
from typing import Final

import msgspec

from apex_perception.errors import NoTree
from apex_perception.perceive import View, perceive
from apex_planner.clients import anthropic_answer, chat_answer, responses_answer
from apex_planner.clients.reading import conclude
from apex_schemas import edge, envelope
from apex_schemas.errors import WireError
from apex_schemas.geometry import Size
from apex_schemas.scene import Scene
from apex_schemas.slots import parse_slot

_PICTURE: Final = View(picture=Size(width=1080, height=2400))
_PROVIDERS: Final = (anthropic_answer.read, chat_answer.read, responses_answer.read)


def page_source(data: bytes) -> None:
    """A page source: a Scene that can be written to the wire and read again, or one of NoTree's kinds."""
    for view in (View(), _PICTURE):
        try:
            scene = perceive(data, view)
        except NoTree:
            assert view is not _PICTURE, "with a picture there is a Scene, whatever the source"
            continue
        again = envelope.decode(envelope.encode(scene, task="1" * 32, device="d", turn=0, attempt="a")).body
        assert isinstance(again, Scene)
        assert again == scene


def message(data: bytes) -> None:
    """A stored message and a client's request: what can be read can be written again."""
    try:
        body = envelope.decode(data).body
        envelope.encode(body)
    except WireError:
        pass
    try:
        edge.decode_request(data)
        edge.digest(data)
    except WireError:
        pass
    with contextlib.suppress(WireError):
        parse_slot(data[:200].decode("utf-8", "replace"))


def answer(data: bytes) -> None:
    """A provider's answer, however broken: a decision or a fault, that fits on the wire."""
    raw = data.decode("utf-8", "replace")
    for read in _PROVIDERS:
        parts = read(raw)
        if parts is not None:
            reply = conclude(parts, provider="p", model="m")
            packed = msgspec.msgpack.encode(reply)
            assert msgspec.msgpack.decode(packed, type=type(reply)) == reply


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "page_source": page_source,
    "message": message,
    "answer": answer,
}
