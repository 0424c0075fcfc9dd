"""How the driver is asked for a target: by what the Scene knows of its identity.

Values in, values out: a strategy and its expression.
"""

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
        return _ios(target) if with_text else None
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
    return (AppiumBy.ANDROID_UIAUTOMATOR, "new UiSelector()" + "".join(terms)) if terms else None


def _ios(target: Target) -> Locator | None:
    name = target.resource_id or target.description or target.text
    if not name:
        return None
    kind = f"type == {quoted(target.class_name)} AND " if target.class_name else ""
    return AppiumBy.IOS_PREDICATE, f"{kind}name == {quoted(name)}"


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
