"""Bytes to text: by byte order mark, by UTF-8, by the declared encoding, then by trial.

Phones declare UTF-8 and send something else. A trial is believed when the script that comes out is one that texts in
that encoding are made of, since most byte pairs mean something in every East Asian encoding.
"""

import codecs
import re

_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def decode(data: bytes) -> tuple[str, str | None]:
    """The text, and the step that was taken to get it (None when it was plain UTF-8). Never fails."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            step = None if encoding == "utf-8-sig" else f"decoded as {encoding}"
            return data.decode(encoding, "replace").removeprefix("\ufeff"), step
    try:
        return data.decode(), None
    except UnicodeDecodeError as error:
        if b"\0" in data[:4]:
            encoding = "utf-16-be" if data[:1] == b"\0" else "utf-16-le"
            return data.decode(encoding, "replace"), f"decoded as {encoding}"
        return _by_trial(data, error)


def _by_trial(data: bytes, error: UnicodeDecodeError) -> tuple[str, str]:
    joined = _with_surrogates(data)
    if joined is not None:
        return joined, "surrogates written as UTF-8 joined"
    replaced = data.decode("utf-8", "replace")
    broken = replaced.count("\ufffd")
    whole = sum(1 for character in replaced if character > "\x7f") - broken
    if broken * 4 <= whole or error.start >= len(data) - 4:
        return replaced, f"{broken} broken characters of UTF-8 replaced"
    declared = _DECLARED.search(data[:400])
    names = [declared[1].decode()] if declared and declared[1].lower() not in (b"utf-8", b"utf8") else []
    for name in (*names, "euc_kr", "cp932", "cp949", "gb18030", "big5", "cp1252"):
        try:
            text = data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
        if name in names or _is_plausible(name, text):
            return text, f"decoded as {name}"
    return replaced, f"{broken} broken characters of UTF-8 replaced"


def _with_surrogates(data: bytes) -> str | None:
    """UTF-8 in which surrogates were encoded one by one, as old serializers do with emoji."""
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return _SURROGATES.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def _is_plausible(encoding: str, text: str) -> bool:
    foreign = [character for character in text if character > "\x7f"]

    def share(low: str, high: str) -> float:
        return sum(1 for character in foreign if low <= character <= high) / len(foreign)

    match encoding:
        case "euc_kr" | "cp949":
            return share("\uac00", "\ud7a3") >= 0.8
        case "cp932":
            return share("\u3040", "\u30ff") >= 0.2
        case "gb18030" | "big5":
            return share("\u4e00", "\u9fff") >= 0.6
        case _:
            return share("\xa0", "\u20ac") >= 0.9
