"""The soft keyboard, drawn and hit like any window; the page source shows it only with `enableMultiWindows`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from apex_lab.phone.widgets import Handler, Widget

PACKAGE = "com.android.inputmethod.latin"
HEIGHT_DP = 250
_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")


def keyboard(write: Callable[[str], None], erase: Handler, enter: Handler, hide: Handler) -> Widget:
    """Four rows of letters and one of commands; each key calls what it does."""
    rows = [_keys(*(_key(letter, partial(write, letter)) for letter in letters)) for letters in _ROWS]
    rows[-1] = _keys(*rows[-1].children, _key("⌫", erase, "Delete"))
    rows.append(
        _keys(
            _key("▼", hide, "Hide keyboard"),
            _key("@", partial(write, "@")),
            _key("space", partial(write, " "), "Space"),
            _key(".", partial(write, ".")),
            _key("↵", enter, "Enter"),
        )
    )
    return Widget(
        cls="android.inputmethodservice.KeyboardView", rid="keyboard_view", children=tuple(rows), pad=2, look="card"
    )


def _keys(*keys: Widget) -> Widget:
    return Widget(cls="android.widget.LinearLayout", arrange="row", children=keys, height=48)


def _key(label: str, press: Handler, desc: str = "") -> Widget:
    return Widget(cls="android.inputmethodservice.Key", text=label, desc=desc, look="key", height=44, on_tap=press)
