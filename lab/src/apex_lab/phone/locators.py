"""Finding elements: the strategies of both drivers, each turned into one XPath over the page source."""

from __future__ import annotations

import re
from dataclasses import dataclass

from apex_lab.phone.device import Platform
from apex_lab.phone.errors import InvalidSelector
from apex_lab.phone.predicates import condition
from apex_lab.phone.views import Snapshot, View
from apex_lab.phone.xmltree import literal, xpath

_CALL = re.compile(r"""\.?(\w+)\(\s*(?:"((?:[^"\\]|\\.)*)"|(true|false|\d+))?\s*\)""")
_PARTS = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|[^;"])+""")
_TEXTS = {"text": "@text", "description": "@content-desc", "className": "@class", "packageName": "@package"}
_FLAGS = ("checkable", "checked", "clickable", "enabled", "focusable", "focused", "scrollable", "selected")


@dataclass(frozen=True, slots=True)
class Locator:
    """A strategy and its value, as the client sent them."""

    using: str
    value: str

    def __str__(self) -> str:
        return f"By.{self.using}: {self.value}"


STRATEGIES: dict[Platform, frozenset[str]] = {
    "Android": frozenset({"xpath", "id", "accessibility id", "class name", "-android uiautomator"}),
    "iOS": frozenset({"xpath", "id", "name", "accessibility id", "class name", "-ios predicate string"}),
}


def check_strategy(locator: Locator, platform: Platform) -> None:
    """Raises InvalidSelector for a strategy of the other platform, as its driver does."""
    if locator.using not in STRATEGIES[platform]:
        raise InvalidSelector(f"Locator Strategy '{locator.using}' is not supported for this session")


def find(snapshot: Snapshot, locator: Locator, package: str, within: View | None = None) -> list[View]:
    """The views that a locator finds, in document order; raises InvalidSelector."""
    if locator.using == "-android uiautomator":
        chosen = _ui_selectors(locator.value)
    else:
        chosen = [(_expression(locator, package), None)]
    found = [view for expression, nth in chosen for view in _chosen(snapshot, expression, nth, within)]
    return list({id(view): view for view in found}.values())


def _chosen(snapshot: Snapshot, expression: str, nth: int | None, within: View | None) -> list[View]:
    start = within.element if within is not None else snapshot.root
    if within is not None and expression.startswith("//"):
        expression = f".{expression}"
    found = [snapshot.views[each] for each in xpath(start, expression) if each in snapshot.views]
    return found if nth is None else found[nth : nth + 1]


def _expression(locator: Locator, package: str) -> str:
    value = locator.value
    match locator.using:
        case "xpath":
            return value
        case "name":
            return f"//*[@name={literal(value)}]"
        case "id":
            full = value if ":id/" in value else f"{package}:id/{value}"
            return f"//*[@resource-id={literal(full)} or @resource-id={literal(value)} or @name={literal(value)}]"
        case "accessibility id":
            return f"//*[@content-desc={literal(value)} or @name={literal(value)}]"
        case "class name":
            return f"//*[@class={literal(value)} or @type={literal(value)}]"
        case "-ios predicate string":
            return f"//*[@type][{condition(value)}]"
        case _:
            raise InvalidSelector(f"Locator Strategy '{locator.using}' is not supported for this session")


def _ui_selectors(text: str) -> list[tuple[str, int | None]]:
    """Several of them stand behind one another, with ``;`` between."""
    parts = [part for part in _PARTS.findall(text) if part.strip()]
    return [_ui_selector(part) for part in parts or [text]]


def _ui_selector(text: str) -> tuple[str, int | None]:
    """``new UiSelector().resourceId("..").text("..")`` and the like, as XPath."""
    head = re.match(r"\s*new\s+UiSelector\(\)", text)
    if head is None:
        raise InvalidSelector(f"Could not parse expression `{text}`: only `new UiSelector()...` is understood here")
    rest = text[head.end() :].strip()
    conditions: list[str] = []
    nth: int | None = None
    at = 0
    while at < len(rest):
        call = _CALL.match(rest, at)
        if call is None:
            raise InvalidSelector(f"Could not parse expression `{text}` at `{rest[at:]}`")
        at = call.end()
        name, string, bare = call.group(1), call.group(2), call.group(3)
        if name in ("instance", "index") and bare and bare.isdigit():
            if name == "instance":
                nth = int(bare)
            else:
                conditions.append(f"@index='{bare}'")
        else:
            conditions.append(_condition(name, string, bare, text))
    return "//*" + "".join(f"[{each}]" for each in conditions), nth


def _condition(name: str, string: str | None, bare: str | None, text: str) -> str:
    if string is not None:
        value = re.sub(r"\\(.)", r"\1", string)
        if name in _TEXTS:
            return f"{_TEXTS[name]}={literal(value)}"
        if name == "resourceId":
            return f"@resource-id={literal(value)}"
        for ending, function in (("Contains", "contains"), ("StartsWith", "starts-with")):
            if name.endswith(ending) and name.removesuffix(ending) in _TEXTS:
                return f"{function}({_TEXTS[name.removesuffix(ending)]}, {literal(value)})"
    elif bare in ("true", "false") and (name in _FLAGS or name == "longClickable"):
        return f"@{'long-clickable' if name == 'longClickable' else name}='{bare}'"
    raise InvalidSelector(f"Could not parse expression `{text}`: UiSelector has no `{name}` here")
