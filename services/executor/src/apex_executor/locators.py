"""How the driver is asked for a target: by what the Scene knows of its identity.

Values in, values out: a strategy and its expression.
"""

from collections.abc import Iterable
from typing import Final

from appium.webdriver.common.appiumby import AppiumBy

from apex_schemas.steps import Target

_FIELDS: Final = frozenset(("field", "password"))
Locator = tuple[str, str]
"""Strategy and expression."""


def locator(target: Target, *, platform: str, with_text: bool = True) -> Locator | None:
    """How to look a target up; None when it has nothing to be recognised by.

    `with_text` False leaves out what may have changed since: an element that has nothing else is then None.
    """
    if platform == "ios":
        return _ios(target, with_text=with_text)
    known = (target.resource_id, target.description, *((target.text,) if with_text else ()))
    if not any(known):
        return None
    terms = [
        f".{method}({quoted(value)})"
        for method, value in (
            ("resourceId", target.resource_id),
            ("className", target.class_name),
            ("description", target.description),
            # A field's text changes by being typed into. Elsewhere it tells the rows of a list apart.
            ("text", target.text if with_text and target.role not in _FIELDS else None),
        )
        if value
    ]
    return either(["".join(terms)]) if terms else None


def in_all_windows(target: Target) -> tuple[Locator, Locator] | None:
    """An Android target by one name of its own: within the active window, and in all windows that the driver knows.

    `UiSelector` looks in the active window alone; ids and descriptions, asked for as such, are looked up in all of them
    where `enableMultiWindows` is set. None for a target that has neither.
    """
    if target.resource_id:
        return either([f".resourceId({quoted(target.resource_id)})"]), (AppiumBy.ID, target.resource_id)
    if target.description:
        here = either([f".description({quoted(target.description)})"])
        return here, (AppiumBy.ACCESSIBILITY_ID, target.description)
    return None


def either(terms: Iterable[str]) -> Locator:
    """What fits one of several `UiSelector`s."""
    return AppiumBy.ANDROID_UIAUTOMATOR, ";".join(f"new UiSelector(){each}" for each in terms)


def _ios(target: Target, *, with_text: bool) -> Locator | None:
    """An identifier may be shared by all rows of a list, which then differ by their labels."""
    name = target.resource_id or target.description or target.text
    label = target.description if target.resource_id and target.description != target.resource_id else None
    if not name or not (with_text or label):
        return None
    known = (("type", target.class_name), ("name", name), ("label", label if with_text else None))
    return AppiumBy.IOS_PREDICATE, " AND ".join(f"{key} == {quoted(value)}" for key, value in known if value)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
