"""The widgets of a web page inside an app, as UiAutomator2 shows them: views without packages in their ids.

``#name`` is the id of an HTML element; what has no id has none in the page source either.
"""

from __future__ import annotations

from collections.abc import Iterable

from apex_lab.phone.widgets import Handler, TextHandler, Widget


def web_page(title: str, children: Iterable[Widget]) -> Widget:
    """A WebView that scrolls, with its page in it."""
    body = Widget(cls="android.view.View", rid="#root", children=tuple(children), pad=12)
    inner = Widget(cls="android.webkit.WebView", text=title, children=(body,), rid="#page", scrolls=True, grow=True)
    return Widget(cls="android.webkit.WebView", children=(inner,), rid="webview", look="page", grow=True)


def heading(value: str) -> Widget:
    return Widget(cls="android.widget.TextView", text=value, look="title", height=36)


def paragraph(value: str) -> Widget:
    return Widget(cls="android.widget.TextView", text=value, look="text")


def link(value: str, on_tap: Handler, *, rid: str = "#link") -> Widget:
    return Widget(cls="android.view.View", desc=value, rid=rid, look="link", height=32, on_tap=on_tap)


def web_button(value: str, on_tap: Handler, *, rid: str, enabled: bool = True) -> Widget:
    return Widget(
        cls="android.widget.Button", text=value, rid=rid, look="button", height=40, on_tap=on_tap, enabled=enabled
    )


def checkbox(value: str, on: bool, on_tap: Handler, *, rid: str) -> Widget:
    return Widget(
        cls="android.widget.CheckBox", text=value, rid=rid, look="check", height=36, checked=on, on_tap=on_tap
    )


def web_field(hint: str, value: str, on_text: TextHandler, *, rid: str, password: bool = False) -> Widget:
    return Widget(
        cls="android.widget.EditText",
        text=value,
        hint=hint,
        rid=rid,
        look="field",
        height=44,
        on_text=on_text,
        password=password,
    )
