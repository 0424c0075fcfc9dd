"""A typed face for two C parsers: markup to a flat list of tags in document order. Nothing is fetched or expanded.

Expat reads what is well-formed, a third faster than libxml2, which recovers what is not. Both hand attributes over as
dictionaries, which is what the time goes into.
"""

from typing import Protocol, cast
from xml.parsers import expat

import msgspec
from lxml import etree  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType, reportAttributeAccessIssue]

MAX_TAGS = 30_000
TEXT = "#text"
"""The tag of a piece of text, which stands in the attribute of the same name."""


class Tag(msgspec.Struct, frozen=True, gc=False):
    name: str
    attributes: dict[str, str]
    parent: int
    depth: int


class Markup(msgspec.Struct, frozen=True):
    """`ends[i]` is the index after the last descendant of tag i. `omitted` counts what exceeded MAX_TAGS."""

    tags: list[Tag]
    ends: list[int]
    omitted: int = 0


class _Parser(Protocol):
    pass


class _Lxml(Protocol):
    XMLSyntaxError: type[Exception]

    def XMLParser(  # noqa: N802
        self, *, target: object, recover: bool, resolve_entities: str, no_network: bool, load_dtd: bool,
        huge_tree: bool, remove_comments: bool, remove_pis: bool,
    ) -> _Parser: ...  # fmt: skip
    def HTMLParser(self, *, target: object, no_network: bool, encoding: str) -> _Parser: ...  # noqa: N802
    def fromstring(self, text: bytes, parser: _Parser) -> Markup: ...


_lxml = cast("_Lxml", etree)


class _Collector:
    """Receives the parser's events. What lies beyond MAX_TAGS is counted and left out."""

    def __init__(self, *, with_text: bool) -> None:
        self.tags: list[Tag] = []
        self.ends: list[int] = []
        self.open: list[int] = []
        self.skipped = 0
        self.skipping = 0
        self.with_text = with_text
        self.text: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self.text:
            self._put_text()
        if self.skipping or len(self.tags) >= MAX_TAGS:
            self.skipped += 1
            self.skipping += 1
            return
        open_ = self.open
        self.tags.append(Tag(name, attributes, open_[-1] if open_ else -1, len(open_)))
        self.ends.append(0)
        open_.append(len(self.ends) - 1)

    def end(self, name: str) -> None:
        if self.text:
            self._put_text()
        if self.skipping:
            self.skipping -= 1
        elif self.open:
            self.ends[self.open.pop()] = len(self.tags)

    def data(self, text: str) -> None:
        if self.with_text and not self.skipping:
            self.text.append(text)

    def _put_text(self) -> None:
        """One tag for a run of text, which the parser hands over in pieces."""
        whole = "".join(self.text)
        self.text.clear()
        if whole.strip():
            self.start(TEXT, {TEXT: whole})
            self.end(TEXT)

    def close(self) -> Markup:
        while self.open:
            self.ends[self.open.pop()] = len(self.tags)
        return Markup(self.tags, self.ends, self.skipped)


def read_xml(text: str) -> Markup | None:
    """The tags of a text of one root; None when it is not well-formed or holds what XML 1.0 forbids.

    `text` begins with the root, so that no document type can declare an entity: after a root it is an error.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return None
    tags: list[Tag] = []
    ends: list[int] = []
    open_: list[int] = [-1]
    more = 0  # beyond MAX_TAGS: counted, and open at present
    over = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal more, over
        if over or len(tags) >= MAX_TAGS:
            more, over = more + 1, over + 1
            return
        open_.append(len(tags))
        tags.append(Tag(name, attributes, open_[-2], len(open_) - 2))
        ends.append(0)

    def end(name: str) -> None:
        nonlocal over
        if over:
            over -= 1
        else:
            ends[open_.pop()] = len(tags)

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(data, True)
    except expat.ExpatError:
        return None
    return Markup(tags, ends, more)


def recover_xml(text: str) -> Markup:
    """The tags of a text as far as they can be made out. With `resolve_entities=False` libxml2 would hand `&amp;` in
    attributes on as `&#38;`; there is no document type here that could declare others."""
    collector = _Collector(with_text=False)
    parser = _lxml.XMLParser(
        target=collector, recover=True, resolve_entities="internal", no_network=True, load_dtd=False,
        huge_tree=True, remove_comments=True, remove_pis=True,
    )  # fmt: skip
    try:
        return _lxml.fromstring(text.encode("utf-8", "replace"), parser)
    except (_lxml.XMLSyntaxError, UnicodeDecodeError):  # the second: a reference to half a pair, in the midst of damage
        return collector.close()


def read_html(text: str) -> Markup | None:
    """The tags of an HTML page and its pieces of text; any text has some."""
    collector = _Collector(with_text=True)
    try:
        return _lxml.fromstring(
            text.encode("utf-8", "replace"), _lxml.HTMLParser(target=collector, no_network=True, encoding="utf-8")
        )
    except (_lxml.XMLSyntaxError, UnicodeDecodeError):
        return collector.close()
