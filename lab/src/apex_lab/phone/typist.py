"""The cursor and the keyboard: which field text goes to, and what becomes of it there."""

from __future__ import annotations

from typing import Protocol

from apex_lab.phone.app import Page
from apex_lab.phone.errors import UnknownError
from apex_lab.phone.faults import Faults
from apex_lab.phone.screen import Screen
from apex_lab.phone.widgets import Widget

_CUTS = frozenset("+@$#&;")


class Typed(Protocol):
    """What typing needs of the phone."""

    faults: Faults

    @property
    def top(self) -> Page: ...
    def screen(self) -> Screen: ...
    def changed(self) -> None: ...


class Typist:
    """`serial` and `rid` name the field that has the cursor; `up` is whether the keyboard was called."""

    def __init__(self, phone: Typed) -> None:
        self._phone = phone
        self.serial, self.rid, self.up = 0, "", False

    @property
    def shown(self) -> bool:
        """Whether the keyboard is on the screen."""
        here = self.rid != "" and self.serial == self._phone.top.serial
        return here and self.up and not self._phone.faults.ime_left

    def focus(self, rid: str) -> None:
        self.serial, self.rid, self.up = self._phone.top.serial, rid, True

    def field(self) -> Widget | None:
        """The field that has the cursor."""
        if not self.rid or self.serial != self._phone.top.serial:
            return None
        nodes = self._phone.screen().active.root.walk()
        return next((node.widget for node in nodes if node.widget.rid == self.rid and node.widget.editable), None)

    def put(self, widget: Widget, before: str, text: str) -> None:
        """Makes `text`, as far as the faults let it through, the field's value, after what was there before."""
        value, limit = before + self._let_through(text), widget.max_length
        if widget.on_text is not None:
            widget.on_text(value[:limit] if limit > 0 else value)
        self._phone.changed()

    def clear(self, widget: Widget) -> None:
        if widget.on_text is not None and self._phone.faults.typing != "appended":
            widget.on_text("")
        self._phone.changed()

    def write(self, text: str) -> None:
        """Keys or a whole text, into the field that has the cursor."""
        widget = self.field()
        if widget is not None:
            self.put(widget, widget.text, text)

    def erase(self) -> None:
        widget = self.field()
        if widget is not None and widget.on_text is not None:
            widget.on_text(widget.text[:-1])
            self._phone.changed()

    def enter(self) -> None:
        widget = self.field()
        if widget is not None and widget.on_enter is not None:
            widget.on_enter()
        else:
            self.hide()
        self._phone.changed()

    def hide(self) -> None:
        self.up = False
        self._phone.changed()

    def _let_through(self, text: str) -> str:
        match self._phone.faults.typing:
            case "nothing":
                return ""
            case "truncated":
                return text[: next((at for at, letter in enumerate(text) if letter in _CUTS), len(text))]
            case "ascii_dropped":
                return "".join(letter for letter in text if letter.isascii())
            case "ascii_only" if not text.isascii():
                raise UnknownError(
                    "Error executing adbExec. Command 'adb shell input text' exited with code 255; Stderr: "
                    "'Exception occurred while executing: java.lang.NullPointerException: Attempt to get length of "
                    "null array'"
                )
            case "ascii_only" | "appended" | None:
                return text
