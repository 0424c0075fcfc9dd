"""NSPredicate strings, as ``-ios predicate string`` sends them, turned into a condition of XPath. Pure.

Comparisons of attributes with texts, numbers and booleans, joined by AND, OR, NOT and brackets; LIKE and MATCHES are
not here.
"""

from __future__ import annotations

import re
from typing import Final

from apex_lab.phone.errors import InvalidSelector
from apex_lab.phone.xmltree import literal

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign>(?:==|!=|<>|>=|<=|=|<|>)(?:\[c?d?\])?|&&|\|\||[()!])"""
    r"""|(?P<word>[\w.]+(?:\[c?d?\])?))"""
)
_NAMES: Final = {
    "isEnabled": "enabled", "isVisible": "visible", "isAccessible": "accessible", "isSelected": "selected",
    "wdName": "name", "wdLabel": "label", "wdValue": "value", "wdType": "type", "wdEnabled": "enabled",
    "wdVisible": "visible",
}  # fmt: skip
_ATTRIBUTES: Final = frozenset(
    {"type", "name", "label", "value", "enabled", "visible", "accessible", "selected", "index", "placeholderValue"}
)
_FUNCTIONS: Final = {"CONTAINS": "contains({0}, {1})", "BEGINSWITH": "starts-with({0}, {1})"}
_BOOLEANS: Final = {"1": "true", "0": "false", "YES": "true", "NO": "false", "TRUE": "true", "FALSE": "false"}
_FLAGS: Final = frozenset({"enabled", "visible", "accessible", "selected"})
_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def condition(predicate: str) -> str:
    """The XPath condition; raises InvalidSelector for what cannot be read."""
    reader = _Reader(predicate)
    found = reader.either()
    reader.end()
    return found


class _Reader:
    """Recursive descent over the tokens; AND binds closer than OR."""

    def __init__(self, predicate: str) -> None:
        self._predicate = predicate
        self._tokens: list[str] = []
        at = 0
        while at < len(predicate.rstrip()):
            token = _TOKEN.match(predicate, at)
            if token is None:
                raise self._unread(predicate[at:])
            self._tokens.append(token.group().strip())
            at = token.end()
        self._at = 0

    def either(self) -> str:
        parts = [self._both()]
        while self._take("OR", "||"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else "(" + " or ".join(parts) + ")"

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._unread(" ".join(self._tokens[self._at :]))

    def _both(self) -> str:
        parts = [self._one()]
        while self._take("AND", "&&"):
            parts.append(self._one())
        return " and ".join(parts)

    def _one(self) -> str:
        if self._take("NOT", "!"):
            return f"not({self._one()})"
        if self._take("("):
            inner = self.either()
            if not self._take(")"):
                raise self._unread("a bracket that is not closed")
            return f"({inner})"
        return self._comparison()

    def _comparison(self) -> str:
        name = _NAMES.get(self._peek(), self._peek())
        if name not in _ATTRIBUTES:
            raise self._unread(f"no attribute '{name}'")
        self._at += 1
        operator, _, how = self._next().upper().partition("[")
        value = self._next()
        subject, wanted = f"@{name}", _wanted(name, value)
        if "C" in how:
            subject, wanted = (f"translate({each}, '{_UPPER}', '{_UPPER.lower()}')" for each in (subject, wanted))
        if operator in _FUNCTIONS:
            return _FUNCTIONS[operator].format(subject, wanted)
        if operator == "ENDSWITH":
            return f"substring({subject}, string-length({subject}) - string-length({wanted}) + 1) = {wanted}"
        match operator:
            case "==" | "=":
                return f"{subject} = {wanted}"
            case "!=" | "<>":
                return f"not({subject} = {wanted})"
            case "<" | ">" | "<=" | ">=":
                return f"number({subject}) {operator} number({wanted})"
            case _:
                raise self._unread(f"no operator '{operator}' here")

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise self._unread("its end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, *tokens: str) -> bool:
        found = self._peek().upper() in tokens
        self._at += found
        return found

    def _unread(self, where: str) -> InvalidSelector:
        return InvalidSelector(f"The predicate '{self._predicate}' cannot be read at: {where}")


def _wanted(name: str, value: str) -> str:
    if value[0] in "\"'":
        inner = value[1:-1]
        return literal(re.sub(r"\\(.)", lambda found: "\n" if found.group(1) == "n" else found.group(1), inner))
    return literal(_BOOLEANS.get(value.upper(), value) if name in _FLAGS else value)
