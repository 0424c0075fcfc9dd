"""What a file is that was given as a page source and is none: told before anything is made of it.

Perception makes the best of whatever a phone sends, and would find a screen in a proxy's error page too. A phone
cannot send that through Appium; a person can save it by mistake.
"""

import html
import re
from typing import Final

from apex_cli.text import plain, shortened
from apex_schemas.scene import Scene

_KINDS: Final = (
    (b"\x89PNG\r\n", "a PNG picture: give it with --screenshot, beside the page source"),
    (b"\xff\xd8\xff", "a JPEG picture: give it with --screenshot, beside the page source"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "compressed by gzip: unpack it first"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program"),
)
_BROKEN: Final = 0.2
"""The share of characters that cannot be decoded from which on a file is no text."""
_PAGE_SCRIPT: Final = b'{"apex":"web"'
_TREE: Final = re.compile(
    r"<\s*(hierarchy|node|AppiumAUT|XCUIElementType\w+|UIA\w+|[A-Za-z_$][\w$]*(\.[\w$]+)+)[\s/>]|\bbounds=\\?[\"']"
)
_HTML: Final = re.compile(r"<(!doctype\s+)?html\b", re.IGNORECASE)
_HEADING: Final = re.compile(r"<(title|h1)\b[^>]*>(.*?)</\1", re.IGNORECASE | re.DOTALL)
_MARKUP: Final = re.compile(r"<[^>]*>")
_ERROR: Final = re.compile(
    r"^(http\s*)?(error\s*)?[45]\d\d\b|\b[45]\d\d\s+[A-Z]|^error\b|bad gateway|gateway time-?out|forbidden|"
    r"access denied|not found|service unavailable|internal server error|authentication required",
    re.IGNORECASE,
)
_WHERE: Final = "save it anew from `/session/<id>/source` of the Appium server"


def foreign(data: bytes, text: str) -> str | None:
    """What a file is, in words, when it is surely no page source; None when it may be one, or is empty.

    `text` is its content as perception decodes it.
    """
    for start, kind in _KINDS:
        if data.startswith(start):
            return f"it is {kind}"
    if not text.strip() or data.startswith(_PAGE_SCRIPT):
        return None
    if text.count("\ufffd") > _BROKEN * len(text):
        return f"it is {len(data):,} bytes that are neither text nor a picture; {_WHERE}"
    if _TREE.search(text):
        return None
    if _HTML.search(text):
        return _of_html(text)
    if text.lstrip().startswith("{"):
        return _of_json(text)
    what = "XML that describes no screen" if re.match(r"\s*<[?!\w]", text) else "text without a tree"
    return f"it is {what}: {_beginning(text)}; {_WHERE}"


def doubt(scene: Scene) -> str | None:
    """What is odd about a Scene of an HTML page, which may be what a browser shows all the same."""
    if scene.source == "web" and not any(element.interactive for element in scene.elements):
        return "this is an HTML page with nothing to act on: if no browser showed it, a proxy answered for the phone"
    return None


def _of_html(text: str) -> str | None:
    """An error page of a server or proxy. Any other page may be what a browser shows."""
    for _, inside in _HEADING.findall(text[:100_000]):
        words = " ".join(html.unescape(_MARKUP.sub(" ", inside)).split())
        if _ERROR.search(words):
            return f"it is an HTML page of a server or proxy on the way ({_quoted(words)}), and no screen; {_WHERE}"
    return None


def _of_json(text: str) -> str | None:
    if '"elements"' in text and '"screen"' in text:
        return "it is a Scene already: `apex plan --scene` reads it"
    if '"value"' in text:
        return None  # perhaps an answer of a WebDriver, with what went wrong in it
    return f"it is JSON without a page source: {_beginning(text)}; {_WHERE}"


def _beginning(text: str) -> str:
    return _quoted(text[:400])


def _quoted(text: str) -> str:
    return f"“{shortened(plain(text), 60)}”"
