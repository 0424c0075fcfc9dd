"""Text that is not well-formed to text that is, in steps that can be named; every pass is linear in the text.

A `<` or `"` inside an attribute would make any parser lose the rest of the element, so that these are mended here,
before a parser is asked to recover by itself.
"""

import re
from html.entities import html5

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,10}));")
_PAIR = re.compile(r"&#(5[56][0-9]{3});&#(5[67][0-9]{3});")
_MOST_PASSES = 4
_DOCTYPE = re.compile(r"<!DOCTYPE[^>\[]{0,1000}(\[?)", re.IGNORECASE)
_START = re.compile(r"<(?=[A-Za-z_])")
_ATTRIBUTE_START = re.compile(r"\s[\w:.-]+\s*=\s*\"")
_ATTRIBUTE_END = re.compile(r"\"(?=\s+[\w:.-]+\s*=\s*\"|\s*[/?]?>)")
_STRAY_AMPERSAND = re.compile(r"&(?!#[0-9xX]|(?:amp|lt|gt|quot|apos);)")
_DECLARATION = re.compile(r"<\?xml[^>]{0,200}\?>")
_ENTITY = re.compile(r"&([A-Za-z]{2,31});")
_XML_ENTITIES = ("amp", "lt", "gt", "quot", "apos")
_TAG = re.compile(r"<(/?)([^\s<>/=\"'!?][^\s<>/=\"']*)")
_NAME = re.compile(r"[A-Za-z_][\w.-]*\Z")


def declares_entities(text: str) -> bool:
    """Whether the prolog has a document type with a subset of its own or outside: the road to entities."""
    found = _DOCTYPE.search(text)
    if found is None:
        return False
    return bool(found[1]) or re.search(r"\b(SYSTEM|PUBLIC)\b(?!\s+\"-//W3C//DTD X?HTML)", found[0]) is not None


def cut_out(text: str) -> tuple[str, list[str]]:
    """The tree without what stands around it: log lines, declarations, a document type. Empty when there is none."""
    start = _START.search(text)
    if start is None:
        return "", []
    end = text.rfind(">") + 1
    before, after = text[: start.start()], text[end:] if end > start.start() else ""
    before = re.sub(r"<\?.*?\?>|<!--.*?-->|<![^>]*>", "", before, flags=re.DOTALL)
    steps = [f"{len(part.strip())} characters {place} the tree cut off"
             for part, place in ((before, "before"), (after, "after")) if part.strip("\ufeff \t\r\n")]  # fmt: skip
    tree = text[start.start() : end] if end > start.start() else text[start.start() :]
    return _DECLARATION.sub("", tree) if "<?xml" in tree else tree, steps


def strip_forbidden(text: str) -> tuple[str, list[str]]:
    """Without the characters and references that XML 1.0 forbids; U+FFFD stays, referenced pairs become one."""
    stripped, count = _FORBIDDEN.subn("", text)
    removed, joined = [count, 0], [0]

    def allowed(reference: re.Match[str]) -> str:
        code = int(reference[1], 16) if reference[1] else int(reference[2])
        if code <= 0x10FFFF and not _FORBIDDEN.match(chr(code)):
            return reference[0]
        removed[1] += 1
        return ""

    def join(pair: re.Match[str]) -> str:
        high, low = int(pair[1]), int(pair[2])
        if not (0xD800 <= high < 0xDC00 <= low < 0xE000):
            return pair[0]
        joined[0] += 1
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)

    for _ in range(_MOST_PASSES if "&#" in stripped else 0):
        before = stripped
        stripped = _REFERENCE.sub(allowed, _PAIR.sub(join, stripped))
        if stripped == before:
            break  # else what is left may have become a reference
    total = sum(removed)
    steps = [f"{total} characters that XML forbids stripped"] if total else []
    if joined[0]:
        steps.append(f"{joined[0]} pairs of surrogate references joined")
    return stripped, steps


def mend(text: str) -> str:
    """With `<`, `"` and `&` inside attributes escaped, and tags whose names are no names called `node`."""
    pieces: list[str] = []
    at = 0
    ends = [found.start() for found in _ATTRIBUTE_END.finditer(text)]
    next_end = 0
    for start in _ATTRIBUTE_START.finditer(text):
        if start.start() < at:
            continue
        while next_end < len(ends) and ends[next_end] < start.end():
            next_end += 1
        if next_end == len(ends):
            break
        pieces += (text[at : start.end()], _escaped(text[start.end() : ends[next_end]]))
        at = ends[next_end]
    mended = "".join((*pieces, text[at:]))
    return _TAG.sub(lambda tag: tag[0] if _NAME.match(tag[2]) else f"<{tag[1]}node", mended)


def _escaped(value: str) -> str:
    if "<" not in value and '"' not in value and "&" not in value:
        return value
    if "&" in value:
        value = _STRAY_AMPERSAND.sub("&amp;", _ENTITY.sub(_meant, value))
    return value.replace("<", "&lt;").replace('"', "&quot;")


def _meant(entity: re.Match[str]) -> str:
    """The character behind an entity that HTML knows and XML does not."""
    return entity[0] if entity[1] in _XML_ENTITIES else html5.get(f"{entity[1]};", entity[0])


def without_torn_end(text: str) -> str:
    """Without a last tag that was cut in the middle."""
    last_open, last_close = text.rfind("<"), text.rfind(">")
    return text[:last_open] if last_open > last_close else text
