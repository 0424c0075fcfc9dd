"""The commands on elements: find, touch, type, read. Each takes what the client sent and answers the `value`."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from apex_lab.phone.commands import Call, Command, settle
from apex_lab.phone.errors import InvalidArgument, InvalidSelector, NoSuchElement, UnknownError
from apex_lab.phone.gestures import ELEMENT_KEY
from apex_lab.phone.locators import Locator, check_strategy, find
from apex_lab.phone.views import NAMES, View


async def _search(call: Call, within: View | None) -> tuple[Locator, list[View]]:
    session = call.session
    locator = Locator(call.text("using"), call.text("value"))
    check_strategy(locator, session.phone.platform)
    deadline = time.monotonic() + session.implicit_ms / 1000
    await settle(session)
    while True:
        found = find(session.snapshot(locator), locator, session.phone.package, within)
        if found or time.monotonic() >= deadline:
            return locator, found
        await asyncio.sleep(0.05)


async def find_one(call: Call) -> object:
    within = call.view() if "element" in call.path else None
    locator, found = await _search(call, within)
    if not found:
        raise NoSuchElement
    return {ELEMENT_KEY: call.session.hand_out(found[0], None if within else locator)}


async def find_all(call: Call) -> object:
    locator, found = await _search(call, call.view() if "element" in call.path else None)
    single = locator if len(found) == 1 else None
    return [{ELEMENT_KEY: call.session.hand_out(view, single)} for view in found]


async def active_element(call: Call) -> object:
    snapshot = call.session.snapshot()
    for element, view in snapshot.views.items():
        if "true" in (element.get("focused", ""), element.get("hasKeyboardFocus", "")):
            return {ELEMENT_KEY: call.session.hand_out(view, None)}
    raise NoSuchElement


async def click(call: Call) -> object:
    call.session.phone.tap(call.view().middle, call.session.id)
    return None


async def clear(call: Call) -> object:
    call.session.phone.set_text(call.view(), "", call.session.id, replace=True)
    return None


async def send_keys(call: Call) -> object:
    value = call.body.get("text", call.body.get("value"))
    if isinstance(value, list):
        value = "".join(str(each) for each in cast("list[object]", value))
    if not isinstance(value, str):
        raise InvalidArgument("Parameter 'text' is required: what to type")
    call.session.phone.set_text(call.view(), value, call.session.id, replace=False)
    return None


async def get_text(call: Call) -> object:
    element = call.view().element
    return element.get("text", "") or element.get("value", "") or element.get("label", "")


async def get_tag(call: Call) -> object:
    return call.view().element.get("class", "") or call.view().tag


ALIASES = {
    "className": "class", "contentDescription": "content-desc", "name": "content-desc", "resourceId": "resource-id",
    "longClickable": "long-clickable", "showingHintText": "showing-hint", "maxTextLength": "max-text-length",
    "inputType": "input-type", "drawingOrder": "drawing-order",
}  # fmt: skip


KNOWN = frozenset({*NAMES, "extras", "original-text", "contentSize", "error", "pane-title", "actions", "multiline"})


IOS_KNOWN = frozenset(
    {
        "type", "name", "label", "value", "enabled", "visible", "accessible", "selected", "hittable", "focused",
        "index", "rect", "frame", "placeholderValue", "accessibilityContainer", "UID", "hasKeyboardFocus", "traits",
    }
)  # fmt: skip


async def get_attribute(call: Call) -> object:
    """Quirks of the real drivers kept: on Android absent values of known attributes are the text "null"; text is
    never absent. On iOS an unknown attribute is an invalid selector."""
    element, name = call.view().element, call.path["name"]
    if call.session.phone.platform == "iOS":
        if name not in IOS_KNOWN:
            raise InvalidSelector(
                f"The attribute '{name}' is unknown. Valid attribute names are: {', '.join(sorted(IOS_KNOWN))}"
            )
        if name == "hittable":
            return str(call.session.phone.hit(call.view())).lower()
        return element.get(name, "") or None
    wanted = name if element.get(name, "") else ALIASES.get(name, name)
    value = element.get(wanted, "")
    if name == "name" and not value:
        return element.get("text", "")
    if not value and wanted not in KNOWN:
        raise UnknownError(
            f"'{name}' attribute is unknown for the element. Only the following attributes are supported: "
            + ", ".join(sorted(KNOWN))
        )
    return value or ("" if wanted == "text" else "null")


async def get_rect(call: Call) -> object:
    return call.view().rect.wire()


def flag(name: str, other: str = "") -> Command:
    """A command that answers whether an attribute of the element is true."""

    async def answer(call: Call) -> object:
        element = call.view().element
        return (element.get(name, "") or element.get(other, "")) == "true"

    return answer
