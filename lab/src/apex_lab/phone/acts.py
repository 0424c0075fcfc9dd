"""The act log: every input that reached a phone, in order, with whose session it came by and what it hit."""

from __future__ import annotations

import time
from typing import Literal

import msgspec

ActKind = Literal[
    "tap", "long_press", "swipe", "text", "clear", "key", "launch", "terminate", "rotate", "hide_keyboard"
]  # fmt: skip


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """The widget an input landed on; `acted` is whether it did anything with it."""

    id: str
    cls: str = msgspec.field(name="class")
    text: str
    desc: str
    bounds: str
    package: str
    acted: bool


class Act(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One input. `n` counts from 1 without gaps; `at_ms` is Unix time; `screen` is where it landed."""

    n: int
    at_ms: int
    session: str
    kind: ActKind
    screen: str
    x: int | None = None
    y: int | None = None
    to_x: int | None = None
    to_y: int | None = None
    scrolled: int | None = None
    value: str | None = None
    hit: Hit | None = None


class ActLog:
    """Grows by one per input; reset empties it and the numbers go on."""

    def __init__(self) -> None:
        self._acts: list[Act] = []
        self._next = 1

    def add(
        self,
        kind: ActKind,
        session: str,
        screen: str,
        *,
        at: tuple[int, int] | None = None,
        to: tuple[int, int] | None = None,
        scrolled: int | None = None,
        value: str | None = None,
        hit: Hit | None = None,
    ) -> Act:
        act = Act(
            n=self._next,
            at_ms=time.time_ns() // 1_000_000,
            session=session,
            kind=kind,
            screen=screen,
            x=at[0] if at else None,
            y=at[1] if at else None,
            to_x=to[0] if to else None,
            to_y=to[1] if to else None,
            scrolled=scrolled,
            value=value,
            hit=hit,
        )
        self._next += 1
        self._acts.append(act)
        return act

    def since(self, n: int = 0) -> list[Act]:
        """The acts numbered above `n`."""
        return [act for act in self._acts if act.n > n]

    def clear(self) -> None:
        self._acts.clear()
