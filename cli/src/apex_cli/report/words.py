"""Text of other people in HTML: escaped, without control characters, each piece with a direction of its own."""

import html
from typing import Final

from apex_cli.text import lines, plain

_LONG: Final = 900
_BEGINNING: Final = 400


def inline(text: str) -> str:
    """One line, isolated from the direction of what stands around it."""
    return f'<bdi dir="auto">{html.escape(plain(text))}</bdi>'


def block(text: str, css: str) -> str:
    """A paragraph with its line breaks; what is long is folded behind its beginning."""
    whole = lines(text).strip()
    if len(whole) <= _LONG:
        return f'<p class="{css}" dir="auto">{html.escape(whole)}</p>'
    beginning = html.escape(whole[:_BEGINNING].rstrip())
    return (
        f'<details class="{css}"><summary dir="auto">{beginning}… '
        f"<b>all {len(whole):,} characters</b></summary>"
        f'<p dir="auto">{html.escape(whole)}</p></details>'
    )


def folded(title: str, text: str, css: str) -> str:
    whole = lines(text).strip()
    return (
        f'<details class="{css}"><summary>{title} <span class="dim">{len(whole):,} characters</span></summary>'
        f'<p dir="auto">{html.escape(whole)}</p></details>'
    )


def attribute(text: str) -> str:
    return html.escape(plain(text), quote=True)
