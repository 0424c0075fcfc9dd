"""A typed face for the little of lxml that the phone uses: build, write, read what phones send, ask by XPath."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Protocol, cast

from lxml import etree  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType, reportAttributeAccessIssue]

from apex_lab.phone.errors import InvalidSelector

_etree: _Lxml = cast("_Lxml", etree)
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Element(Protocol):
    """An lxml element; hashable by identity while a reference to its tree is kept."""

    tag: object
    text: str | None

    def get(self, key: str, default: str, /) -> str: ...
    def set(self, key: str, value: str, /) -> None: ...
    def iter(self) -> Iterator[Element]: ...
    def getparent(self) -> Element | None: ...
    def xpath(self, expression: str, /) -> object: ...
    def __iter__(self) -> Iterator[Element]: ...
    def __len__(self) -> int: ...


class _Parser(Protocol): ...


class _Lxml(Protocol):
    XPathError: type[Exception]
    XMLSyntaxError: type[Exception]

    def Element(self, tag: str, attrib: Mapping[str, str]) -> Element: ...  # noqa: N802
    def SubElement(self, parent: Element, tag: str, attrib: Mapping[str, str]) -> Element: ...  # noqa: N802
    def XMLParser(self, *, recover: bool, resolve_entities: bool, no_network: bool) -> _Parser: ...  # noqa: N802
    def fromstring(self, text: bytes, parser: _Parser) -> Element | None: ...
    def tostring(self, element: Element, *, encoding: str, xml_declaration: bool) -> bytes: ...


def root(tag: str, attributes: Mapping[str, str]) -> Element:
    return _etree.Element(tag, attributes)


def child(parent: Element, tag: str, attributes: Mapping[str, str]) -> Element:
    return _etree.SubElement(parent, tag, attributes)


def printable(value: str) -> str:
    """`value` with what XML 1.0 forbids replaced by ``?``, as the UiAutomator2 server does."""
    return _FORBIDDEN.sub("?", value)


ANDROID = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
IOS = '<?xml version="1.0" encoding="UTF-8"?>'


def write(element: Element, declaration: str = ANDROID) -> str:
    """The tree as a page source with the declaration that the platform's serializer writes."""
    body = _etree.tostring(element, encoding="utf-8", xml_declaration=False).decode()
    return f"{declaration}\n{body}"


def read(raw: bytes) -> Element | None:
    """What can be read of a page source; None when there is no tree in it. Nothing is fetched or expanded."""
    try:
        return _etree.fromstring(raw, _etree.XMLParser(recover=True, resolve_entities=False, no_network=True))
    except _etree.XMLSyntaxError:
        return None


def xpath(element: Element, expression: str) -> list[Element]:
    """The elements an XPath 1.0 expression finds; raises InvalidSelector when it cannot be read or finds no nodes."""
    try:
        found = element.xpath(expression)
    except _etree.XPathError as error:
        raise InvalidSelector(f"Cannot read the XPath '{expression}': {error}") from error
    if not isinstance(found, list):
        raise InvalidSelector(f"The XPath '{expression}' does not select elements")
    return [each for each in cast("list[Element]", found) if hasattr(each, "tag")]


def literal(value: str) -> str:
    """`value` as an XPath string, whatever quotes it holds."""
    if "'" not in value:
        return f"'{value}'"
    if '"' not in value:
        return f'"{value}"'
    parts = ', "\'", '.join(f"'{part}'" for part in value.split("'"))
    return f"concat({parts})"
