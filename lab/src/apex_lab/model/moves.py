"""What a playbook can want in a turn, before it is written as a tool call.

Values only. `intent` follows "Next:" in the answer and is also the model's memory: it comes back in the history as
part of the rationale. `expect` says what the next screen should show.
"""

from typing import Literal

from msgspec import Struct

from apex_lab.model.screen import Element

Way = Literal["up", "down", "left", "right"]


class Tap(Struct, frozen=True, kw_only=True):
    """Touch an element that has an id."""

    element: Element


class Type(Struct, frozen=True, kw_only=True):
    """Replace what a field holds; without a field, the focused one."""

    text: str
    element: Element | None = None


class Swipe(Struct, frozen=True, kw_only=True):
    """Show what lies further in a direction of the content; `size` is the screen's, pixels.

    `short` keeps to the upper half, above a keyboard.
    """

    towards: Way
    size: tuple[int, int]
    short: bool = False


class Launch(Struct, frozen=True, kw_only=True):
    """Open an app by package or label."""

    app: str


class Terminate(Struct, frozen=True, kw_only=True):
    """Close an app by package or label."""

    app: str


class Finish(Struct, frozen=True, kw_only=True):
    """End the task. `evidence` is a label on the screen that shows it."""

    success: bool
    reason: str
    answer: str | None = None
    evidence: str | None = None


Act = Tap | Type | Swipe | Launch | Terminate | Finish


class Move(Struct, frozen=True, kw_only=True):
    """An act with the reason for it."""

    act: Act
    intent: str
    expect: str


def finish(success: bool, reason: str, *, answer: str | None = None, evidence: str | None = None) -> Move:
    """The move that ends the task."""
    return Move(
        act=Finish(success=success, reason=reason, answer=answer, evidence=evidence),
        intent=f"finish the task as {'done' if success else 'not possible'}: {reason}",
        expect="The task ends.",
    )
