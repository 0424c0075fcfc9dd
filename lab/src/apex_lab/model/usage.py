"""Usage figures: tokens as bytes over four, and what a prompt cache would have charged.

Owns the memory of prefixes seen, the only thing that outlives a request. Anthropic's cache holds prefixes that end at
a breakpoint and finds them up to twenty blocks before a later breakpoint; OpenAI's finds any prefix in steps of 128
tokens.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

_LOOKBACK = 20
_STEP = 512
_REMEMBERED = 20_000
_LIVES = {"5m": 300.0, "1h": 3600.0}
IMAGE_TOKENS = 1500


class Piece(Struct, frozen=True, kw_only=True):
    """One block of a prompt in cache order. `mark` is the life of a breakpoint after it, or None."""

    content: bytes
    tokens: int
    mark: str | None = None


class Charge(Struct, frozen=True, kw_only=True):
    """Input tokens: `fresh` + `read` + `written` is the whole prompt."""

    fresh: int
    read: int = 0
    written: int = 0
    written_1h: int = 0

    @property
    def total(self) -> int:
        """All input tokens."""
        return self.fresh + self.read + self.written


def count_tokens(text: str | bytes) -> int:
    """About how many tokens a text is: a quarter of its UTF-8 bytes, at least one unless it is empty."""
    size = len(text if isinstance(text, bytes) else text.encode())
    return -(-size // 4)


def piece(block: object, mark: str | None = None) -> Piece:
    """A block of a prompt, any JSON value. An image counts a flat figure, not its base64."""
    content = msgspec.json.encode(block)
    image = isinstance(block, dict) and "image" in str(block.get("type", ""))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    return Piece(content=content, tokens=IMAGE_TOKENS if image else count_tokens(content), mark=mark)


class PrefixCache:
    """Prefixes seen, by hash, until they expire. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def clear(self) -> None:
        """Forget everything."""
        self._until.clear()

    def at_breakpoints(self, model: str, pieces: Sequence[Piece], *, minimum: int) -> Charge:
        """Anthropic's way; prefixes under `minimum` tokens are silently not cached."""
        digests, totals = _prefixes(model, pieces)
        marks = [index for index, each in enumerate(pieces) if each.mark is not None]
        if not marks:
            return Charge(fresh=totals[-1] if totals else 0)
        reach = {index for mark in marks for index in range(max(0, mark - _LOOKBACK), mark + 1)}
        hit = max((index for index in reach if self._alive(digests[index])), default=None)
        read = totals[hit] if hit is not None else 0
        written, hour = 0, 0
        for index in marks:
            if totals[index] < minimum:
                continue
            life = pieces[index].mark or "5m"
            self._keep(digests[index], _LIVES.get(life, _LIVES["5m"]))
            new = max(0, totals[index] - read - written)
            written += new
            hour += new if life == "1h" else 0
        return Charge(fresh=totals[-1] - read - written, read=read, written=written, written_1h=hour)

    def by_prefix(self, model: str, pieces: Sequence[Piece], *, minimum: int = 1024) -> Charge:
        """OpenAI's way: automatic, in steps of 128 tokens from 1,024 on."""
        whole = b"".join(each.content for each in pieces)
        total = sum(each.tokens for each in pieces)
        state = hashlib.sha256(model.encode())
        read = 0
        for end in range(_STEP, len(whole) + 1, _STEP):
            state.update(whole[end - _STEP : end])
            if end // 4 < minimum:
                continue
            digest = state.copy().digest()
            read = end // 4 if self._alive(digest) else read
            self._keep(digest, _LIVES["5m"])
        read = min(read, total)
        return Charge(fresh=total - read, read=read)

    def _alive(self, digest: bytes) -> bool:
        until = self._until.get(digest)
        return until is not None and until > self._clock()

    def _keep(self, digest: bytes, life: float) -> None:
        self._until[digest] = self._clock() + life
        self._until.move_to_end(digest)
        while len(self._until) > _REMEMBERED:
            self._until.popitem(last=False)


def _prefixes(model: str, pieces: Sequence[Piece]) -> tuple[list[bytes], list[int]]:
    state = hashlib.sha256(model.encode())
    digests: list[bytes] = []
    totals: list[int] = []
    total = 0
    for each in pieces:
        state.update(each.content)
        total += each.tokens
        digests.append(state.copy().digest())
        totals.append(total)
    return digests, totals
