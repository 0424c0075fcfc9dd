"""Inputs from inputs: the damages that real senders and hostile ones do, by a seeded source of chance."""

import random
from collections.abc import Sequence
from typing import Final

MOST_BYTES: Final = 200_000

TOKENS: Final = (
    b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"<", b">", b"</", b"/>", b"<!--", b"]]>",
    b"<![CDATA[", b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&a;", b"&#0;", b"&#x110000;", b"&amp;", b"\"", b"'", b"\\",
    b"\\u0000",
    b"\\ud800", b"NaN", b"Infinity", b"1e999", b"-0", b"9" * 40, b"null", b"true", b"[", b"]", b"{", b"}", b"{}", b"[[",
    b"[-2147483648,0][2147483647,1]", b"bounds=\"[0,0][1,1]\"", b"<node>", b"<hierarchy rotation=\"1\">", b"\xc1",
    b"\xdf",
    b"\x80", b"\xc0", b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff",
    b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", b"{{secret:X}}", b"<|im_start|>",
)  # fmt: skip


def mutated(corpus: Sequence[bytes], chance: random.Random) -> bytes:
    """An input of the corpus, damaged a few times."""
    data = bytearray(chance.choice(corpus))
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        _damage(data, corpus, chance)
    return bytes(data[:MOST_BYTES])


def _damage(data: bytearray, corpus: Sequence[bytes], chance: random.Random) -> None:
    at = chance.randint(0, len(data))
    end = min(len(data), at + chance.choice((1, 2, 8, 64, 1_024)))
    match chance.randrange(9):
        case 0:
            data[at:at] = chance.choice(TOKENS)
        case 1:
            data[at:end] = chance.choice(TOKENS)
        case 2:
            del data[at:end]
        case 3:
            data[at:at] = data[at:end] * chance.choice((1, 2, 50))
        case 4:
            del data[at:]
        case 5:
            other = chance.choice(corpus)
            start = chance.randint(0, len(other))
            data[at:end] = other[start : start + chance.choice((8, 64, 2_000))]
        case 6 if at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        case 7:
            data[at:at] = chance.choice((b"<a>", b"[", b'{"a":', b"\x91", b"\x81\xa1a")) * chance.choice(
                (10, 300, 12_000)
            )
        case _:
            data[at:end] = chance.randbytes(end - at)
